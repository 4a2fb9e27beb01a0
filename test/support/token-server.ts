import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { serve } from './serve.ts'

export interface TokenServer {
  endpoint: string
  /** What was asked for. */
  asked: URLSearchParams[]
  /** Tokens that were given out, the newest last. */
  issued: string[]
  close(): Promise<void>
}

/** What an endpoint does with a request, if not what an honest one does. */
export type TokenAnswer = (form: URLSearchParams, res: ServerResponse) => unknown

/** @param next - what it answers in turn; afterwards an access token, good for an hour. */
export async function startTokenServer(next: TokenAnswer[] = []): Promise<TokenServer> {
  const asked: URLSearchParams[] = []
  const issued: string[] = []
  const { url, close } = await serve((req, res) => {
    void bodyOf(req).then((body) => {
      const form = new URLSearchParams(body)
      asked.push(form)
      const answer = next.shift()
      if (answer) answer(form, res)
      else res.end(JSON.stringify(issue()))
    })
  })
  function issue(more: object = {}) {
    const token = `access-token-${issued.length + 1}-${'canary'.repeat(4)}`
    issued.push(token)
    return { token_type: 'Bearer', expires_in: 3600, access_token: token, ...more }
  }
  return { endpoint: `${url}/token`, asked, issued, close }
}

/** Answers a new refresh token beside the access token, and takes no other from then on. */
export function rotating(first: string): TokenAnswer {
  let current = first
  let count = 0
  return (form, res) => {
    if (form.get('refresh_token') !== current) {
      refuse('invalid_grant')(form, res)
      return
    }
    count += 1
    current = `refresh-token-${count}-${'canary'.repeat(4)}`
    const token = `rotated-access-token-${count}`
    res.end(
      JSON.stringify({
        token_type: 'bearer',
        expires_in: 3600,
        access_token: token,
        refresh_token: current,
      }),
    )
  }
}

export const refuse =
  (error: string, status = 400): TokenAnswer =>
  (form, res) => {
    const error_description = `What you sent: ${form.toString()}`
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ error, error_description }))
  }

async function bodyOf(req: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of req) body += String(chunk)
  return body
}

export interface OAuthMailServer {
  port: number
  /** Tokens that it was shown, also those that it did not take. */
  shown: string[]
  mails: string[]
  close(): Promise<void>
}

/** An SMTP server that knows XOAUTH2 alone. */
export async function startOAuthMailServer(
  takes: (token: string, user: string) => boolean,
  { challenges = true } = {},
): Promise<OAuthMailServer> {
  const shown: string[] = []
  const mails: string[] = []
  const smtp = new SMTPServer({
    closeTimeout: 1,
    authMethods: ['XOAUTH2'],
    allowInsecureAuth: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS'],
    onAuth({ accessToken = '', username = '' }, _session, callback) {
      shown.push(accessToken)
      if (takes(accessToken, username)) return callback(null, { user: username })
      // As Google does it, and as Microsoft does.
      if (challenges) return callback(null, { data: { status: '400', schemes: 'Bearer' } })
      callback(new Error(`5.7.3 Authentication unsuccessful ${accessToken}`))
    },
    onData(stream, _session, callback) {
      let raw = ''
      stream.on('data', (chunk: Buffer) => (raw += chunk.toString()))
      stream.on('end', () => {
        mails.push(raw)
        callback(null, 'queued as 4Fx1')
      })
    },
  })
  smtp.on('error', () => {})
  smtp.listen(0, '127.0.0.1')
  await once(smtp.server, 'listening')
  const { port } = smtp.server.address() as AddressInfo
  return { port, shown, mails, close: () => new Promise((resolve) => smtp.close(() => resolve())) }
}
