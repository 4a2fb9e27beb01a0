import { later, systemClock } from '../clock.ts'
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'

/** Longer than the longest check of the server. */
const TIMEOUT_MS = 60_000
const MAX_ANSWER_BYTES = 16 * 1_048_576

export interface Exchange {
  status: number
  headers: IncomingHttpHeaders
  /** `undefined`: it is not JSON, or longer than 16 MiB. */
  json: unknown
}

/** `late`: no whole answer within 60 seconds. */
export type ExchangeFailure = 'aborted' | 'late' | 'failed'

export class ExchangeError extends Error {
  readonly failure: ExchangeFailure

  constructor(failure: ExchangeFailure, cause: unknown) {
    super(failure, { cause })
    this.failure = failure
  }
}

/** Sends one request and reads the answer; redirects are answers like others. Throws `ExchangeError`. */
export async function exchange(
  url: string,
  { body, signal, ...options }: RequestOptions & { body?: string | undefined },
): Promise<Exchange> {
  const { request } = await (url.startsWith('https:') ? import('node:https') : import('node:http'))
  const sent = request(url, { ...options, ...(signal && { signal }) })
  let isLate = false
  const cancel = later(systemClock, TIMEOUT_MS, () => {
    isLate = true
    sent.destroy()
  })
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('response', resolve).on('error', reject).end(body)
    })
    const { statusCode = 0, headers } = response
    return { status: statusCode, headers, json: await readJson(response) }
  } catch (error) {
    throw new ExchangeError(signal?.aborted ? 'aborted' : isLate ? 'late' : 'failed', error)
  } finally {
    cancel()
  }
}

async function readJson(response: IncomingMessage): Promise<unknown> {
  if (!/^application\/(problem\+)?json\b/.test(response.headers['content-type'] ?? '')) {
    response.destroy()
    return undefined
  }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    length += chunk.length
    if (length > MAX_ANSWER_BYTES) return undefined
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return undefined
  }
}
