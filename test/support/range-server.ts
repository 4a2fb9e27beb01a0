import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { serve } from './serve.ts'

/** What the service does with one request, if not what an honest one does. */
export type RangeAnswer = (req: IncomingMessage, res: ServerResponse, rest: string) => unknown

export type RangeServer = Awaited<ReturnType<typeof startRangeServer>>

export const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()

/** As long as the public service pads its answers: hashes that no password has, seen by nobody. */
export const padding = () =>
  Array.from({ length: 900 }, (_none, index) => `${sha1(`padding ${index}`).slice(5)}:0`)

/** A service for ranges of hashes that knows these passwords. The one that is asked about is in each answer. */
export async function startRangeServer(leaked: readonly string[]) {
  const hashes = leaked.map(sha1)
  const { url, close } = await serve((req, res) => {
    service.asked.push({ method: req.method, url: req.url, headers: req.headers })
    const prefix = req.url?.slice(-5)
    const rests = hashes.flatMap((hash) => (hash.startsWith(prefix ?? '') ? hash.slice(5) : []))
    if (service.answer) service.answer(req, res, rests[0] ?? '')
    else res.end([...rests.map((rest) => `${rest}:3`), ...padding()].join('\r\n'))
  })
  const service = {
    url: `${url}/range/`,
    asked: [] as Pick<IncomingMessage, 'method' | 'url' | 'headers'>[],
    /** `undefined`: it is honest. */
    answer: undefined as RangeAnswer | undefined,
    close,
  }
  return service
}
