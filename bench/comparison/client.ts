import { Agent, request, type IncomingHttpHeaders } from 'node:http'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

export interface Sent {
  form?: Record<string, string>
  json?: object
  headers?: Record<string, string>
}

const PATIENCE_MS = 30_000

/** Follows no redirect. */
export interface Client {
  base: string
  get(path: string, sent?: Sent): Promise<Answer>
  post(path: string, sent?: Sent): Promise<Answer>
  close(): void
}

export function createClient(base: string, connections: number): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })

  function call(method: string, path: string, { form, json, headers = {} }: Sent = {}) {
    const body = json ? JSON.stringify(json) : form && `${new URLSearchParams(form)}`
    const type = json ? 'application/json' : 'application/x-www-form-urlencoded'
    return new Promise<Answer>((resolve, reject) => {
      const sent = request(new URL(path, base), {
        method,
        agent,
        timeout: PATIENCE_MS,
        headers: { origin: base, ...(body !== undefined && { 'content-type': type }), ...headers },
      })
      sent.on('response', (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        answer.on('error', reject).on('end', () => {
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text })
        })
      })
      sent.on('timeout', () => sent.destroy(new Error(`${method} ${path} is not answered`)))
      sent.on('error', reject).end(body)
    })
  }

  return {
    base,
    get: (path, sent) => call('GET', path, sent),
    post: (path, sent) => call('POST', path, sent),
    close: () => agent.destroy(),
  }
}
