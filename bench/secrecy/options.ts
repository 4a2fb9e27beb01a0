import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

export interface Options extends ReturnType<typeof readOptions> {}
export interface Deployment extends ReturnType<typeof deploymentOf> {}

export const USAGE = `npm run prove:secrecy -- [--pairs N] [--short] [--only TEXT] [--json] [--seed N]
npm run prove:secrecy -- --url OAUTH_BASE --known FILE --unknown FILE [--connections N] [--pairs N] …
docs/security.md says how to read what it prints.`

/** Throws an `Error` that says what is wrong. */
export function readOptions(args: string[]) {
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
      connections: { type: 'string', default: '5' },
    },
  })
  const { url, known, unknown, connections, short: isShort } = values
  const places = [url, known, unknown].filter((given) => given !== undefined)
  if (places.length === 1 || places.length === 2)
    throw new Error('--url, --known and --unknown are given together.')
  return {
    /** Of each contrast. */
    pairs: wholeNumber('--pairs', values.pairs ?? (isShort ? '200' : '1000')),
    isShort,
    /** Only contrasts whose title holds this text. */
    only: values.only,
    isJson: values.json,
    seed: wholeNumber('--seed', values.seed ?? String(Date.now() % 1_000_000_000)),
    /** `undefined`: example servers of our own. */
    deployment:
      url === undefined || known === undefined || unknown === undefined
        ? undefined
        : deploymentOf(url, known, unknown, wholeNumber('--connections', connections)),
  }
}

function deploymentOf(url: string, knownIn: string, unknownIn: string, connections: number) {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new Error('--url must be an http or https address.')
  const [known, unknown] = [linesOf('--known', knownIn), linesOf('--unknown', unknownIn)]
  const lengths = new Set([...known, ...unknown].map((line) => Buffer.byteLength(line)))
  if (lengths.size > 1) throw new Error('All identifiers must have the same number of bytes.')
  // Below it are the endpoints.
  return { oauthUrl: new URL(url.replace(/\/*$/, '/')), known, unknown, connections }
}

function linesOf(name: string, file: string): string[] {
  const lines = readFileSync(file, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== '')
  if (lines.length >= 2) return lines
  throw new Error(`${name} must name a file with two identifiers or more, one on a line.`)
}

function wholeNumber(name: string, value: string): number {
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value)
  throw new Error(`${name} must be a whole number above 0.`)
}
