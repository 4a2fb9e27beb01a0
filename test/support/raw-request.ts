import { once } from 'node:events'
import { request, IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { shownBy } from './user-agent.ts'

export interface RawRequest {
  method?: string
  /** What stands in the request line, as it is; the path of the URL by default. */
  target?: string
  headers?: Record<string, string | string[]>
  body?: string | Buffer
  /** In two pieces, and without its length. */
  isChunked?: boolean
}

export type RawAnswer = Awaited<ReturnType<typeof rawRequest>>

export const FORM = 'application/x-www-form-urlencoded'

/** A request with headers and bytes as they are given, also those that `fetch` sets or refuses; a POST of a form by default. */
export async function rawRequest(
  url: string,
  { method = 'POST', target, headers = {}, body = '', isChunked = false }: RawRequest,
) {
  const bytes = Buffer.from(body)
  const sent = request(url, {
    method,
    ...(target !== undefined && { path: target }),
    headers: {
      ...(method === 'POST' && { 'content-type': FORM }),
      ...(!isChunked && bytes.length > 0 && { 'content-length': String(bytes.length) }),
      accept: 'text/html,*/*',
      connection: 'close',
      ...headers,
    },
  })
  // A server may answer before it has read all.
  sent.on('error', () => {})
  if (isChunked) {
    sent.write(bytes.subarray(0, 20))
    sent.end(bytes.subarray(20))
  } else sent.end(bytes)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  sent.destroy()
  return {
    status: Number(response.statusCode),
    headers: response.headers,
    text,
    ...shownBy(text),
  }
}

/** What a host hands on, as it came from an address. */
export function requestFrom(address: string): IncomingMessage {
  const req = new IncomingMessage(new Socket())
  Object.defineProperty(req.socket, 'remoteAddress', { value: address })
  return req
}
