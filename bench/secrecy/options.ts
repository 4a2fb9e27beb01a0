import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

export interface Options {
  /** Pairs of each contrast. */
  pairs: number
  isShort: boolean
  /** Only contrasts whose title holds this text. */
  only: string
  isJson: boolean
  seed: number
  /** Somebody's own deployment. `undefined`: an example server of our own. */
  deployment: Deployment | undefined
}

export interface Deployment {
  /** Below it are the endpoints; ends with a slash. */
  oauthUrl: URL
  known: string[]
  unknown: string[]
  connections: number
}

export const USAGE = `npm run prove:secrecy -- [--pairs N] [--short] [--only TEXT] [--json] [--seed N]
npm run prove:secrecy -- --url OAUTH_BASE --known FILE --unknown FILE [--connections N] [--pairs N] …
docs/security.md says how to read what it prints.`

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      pairs: { type: 'string' },
      short: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      seed: { type: 'string' },
      url: { type: 'string' },
      known: { type: 'string' },
      unknown: { type: 'string' },
      connections: { type: 'string' },
    },
  })
  return {
    pairs: wholeNumber('--pairs', values.pairs, values.short ? 200 : 1_000),
    isShort: values.short,
    only: values.only,
    isJson: values.json,
    seed: wholeNumber('--seed', values.seed, Date.now() % 1_000_000_000),
    deployment: deploymentOf(values),
  }
}

function deploymentOf(values: {
  url?: string
  known?: string
  unknown?: string
  connections?: string
}): Deployment | undefined {
  const { url, known, unknown } = values
  if (url === undefined && known === undefined && unknown === undefined) return undefined
  if (url === undefined || known === undefined || unknown === undefined) {
    throw new Error('--url, --known and --unknown are given together.')
  }
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw new Error('--url must be an http or https address.')
  }
  const lists = { known: linesOf('--known', known), unknown: linesOf('--unknown', unknown) }
  const lengths = new Set([...lists.known, ...lists.unknown].map((line) => Buffer.byteLength(line)))
  if (lengths.size > 1) throw new Error('All identifiers must have the same number of bytes.')
  return {
    oauthUrl: new URL(url.replace(/\/*$/, '/')),
    ...lists,
    connections: wholeNumber('--connections', values.connections, 5),
  }
}

function linesOf(name: string, file: string): string[] {
  const lines = readFileSync(file, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== '')
  if (lines.length >= 2) return lines
  throw new Error(`${name} must name a file with two identifiers or more, one on a line.`)
}

function wholeNumber(name: string, value: string | undefined, byDefault: number): number {
  if (value === undefined) return byDefault
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value)
  throw new Error(`${name} must be a whole number above 0.`)
}
