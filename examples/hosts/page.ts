import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { AccountFlowsError } from '../../src/index.ts'

export type Page = (req: IncomingMessage, res: ServerResponse) => Promise<void>

const MAX_FORM_BYTES = 10_000

/** Too many people wait for their passwords to be checked, or your own check of passwords does not answer. */
const FOR_NOW = new Set<string>(['ERR_OVERLOADED', 'ERR_VALIDATOR_FAILED'])

/** Where a page does not work for now, its reader is asked to come back. */
export function askingToComeBack(page: Page): Page {
  return async (req, res) => {
    try {
      await page(req, res)
    } catch (error) {
      if (!(error instanceof AccountFlowsError) || !FOR_NOW.has(error.code)) throw error
      res.setHeader('Retry-After', '60')
      show(res, 503, 'This does not work just now. Wait a minute and try again.')
    }
  }
}

/** What was posted, also where a parser of the host has read it before. `undefined`: it is too long. */
export async function readForm(req: IncomingMessage): Promise<URLSearchParams | undefined> {
  const parsed: unknown = Reflect.get(req, 'body')
  if (typeof parsed === 'object' && parsed !== null)
    return new URLSearchParams(Object.entries(parsed).map(([name, value]) => [name, String(value)]))
  const length = Number(req.headers['content-length'])
  return length <= MAX_FORM_BYTES ? new URLSearchParams(await text(req)) : undefined
}

/** Another site must not sign people in to the account of its choice. */
export function isOurs({ headers }: IncomingMessage, ours: string): boolean {
  const { origin = ours, 'sec-fetch-site': site = 'none' } = headers
  // A page without a referrer sends `Origin: null`.
  if (site === 'same-origin') return [ours, 'null'].includes(origin)
  return site === 'none' && origin === ours
}

export function showTooMany(res: ServerResponse, waitSeconds: number): void {
  res.setHeader('Retry-After', waitSeconds)
  show(res, 429, `Too many wrong passwords. Try again in ${Math.ceil(waitSeconds / 60)} min.`)
}

export function show(res: ServerResponse, status: number, content: string): void {
  res.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8' })
  res.end(`<!doctype html><html lang="en"><title>Your account</title>${content}`)
}
