import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { postmark } from '../../examples/transports/postmark.ts'
import { resend } from '../../examples/transports/resend.ts'
import { ses } from '../../examples/transports/ses.ts'
import type { MailTransport, TransportAnswer } from '../../src/index.ts'
import { suiteServed } from '../support/serve.ts'

const MAIL = {
  from: { name: 'The "Service"', address: 'accounts@idp.example' },
  replyTo: 'help@idp.example',
  to: 'ann@users.example',
  subject: 'Set a new password',
  text: 'Open https://id.example/x?token=t1',
  html: '<p>Open it</p>',
  messageId: '<1@idp.example>',
  headers: { 'X-Account-Flows-Mail': 'password_reset' },
}

/** In the place of the AWS SDK, which signs and does the rest. */
class SendEmailCommand {
  input: unknown
  constructor(input: unknown) {
    this.input = input
  }
}
const sdkAt = (url: string) => ({
  SendEmailCommand,
  sesClient: {
    config: { region: async () => 'eu-west-1' },
    async send(command: unknown) {
      const response = await fetch(`${url}/v2/email/outbound-emails`, {
        method: 'POST',
        body: JSON.stringify(Reflect.get(Object(command), 'input')),
      })
      const said: { message?: string; MessageId?: string } = Object(await response.json())
      if (response.ok) return said
      const name = response.headers.get('x-amzn-errortype') ?? 'UnknownError'
      throw Object.assign(new Error(said.message), { name })
    },
  },
})

type Answer = [status: number, body: object | string, headers?: Record<string, string>]

const ofResend = (statusCode: number, name: string, message: string): Answer => [
  statusCode,
  { statusCode, name, message },
]
const ofPostmark = (status: number, ErrorCode: number, Message: string): Answer => [
  status,
  { ErrorCode, Message },
]
const ofSes = (status: number, name: string, message: string): Answer => [
  status,
  { message },
  { 'x-amzn-errortype': name },
]

interface Service {
  at(url: string): MailTransport
  took: Answer
  id: RegExp
  asked: RegExp
  forGood: Answer
  later: Answer[]
}

const services: Record<string, Service> = {
  resend: {
    at: (url) => resend('re_key', url),
    took: [200, { id: '49a3999c-0ce1-4ea6-ab68-afcd6dc2e794' }],
    id: /^49a3999c/,
    asked: /"from":"\\"The Service\\" <accounts@idp\.example>","to":\["ann@users\.example"\]/,
    forGood: ofResend(422, 'validation_error', 'Invalid `to` field'),
    later: [
      ofResend(401, 'missing_api_key', 'Missing API Key'),
      ofResend(422, 'invalid_from_address', 'Invalid `from` field'),
      ofResend(429, 'rate_limit_exceeded', 'Too many requests'),
      ofResend(500, 'application_error', 'An unexpected error occurred'),
    ],
  },
  postmark: {
    at: (url) => postmark('token', url),
    took: [200, { ErrorCode: 0, Message: 'OK', MessageID: 'b7bc2f4a-e38e-4336-af7d-e6c392c2f817' }],
    id: /^b7bc2f4a/,
    asked: /"From":"\\"The Service\\" <accounts@idp\.example>","To":"ann@users\.example"/,
    forGood: ofPostmark(422, 406, 'You tried to send to an inactive recipient'),
    later: [
      ofPostmark(401, 10, 'No Account or Server API tokens were supplied'),
      ofPostmark(422, 400, 'The Sender Signature was not found'),
      ofPostmark(422, 300, "Invalid 'From' address: 'a@b.example' is not a verified sender."),
      ofPostmark(429, 429, 'Rate limit exceeded'),
      ofPostmark(503, 100, 'Maintenance'),
    ],
  },
  ses: {
    at: (url) => ses(sdkAt(url)),
    took: [200, { MessageId: '0102018f-canary-000000' }],
    id: /^0102018f/,
    asked: /"FromEmailAddress"|"Raw"/,
    forGood: ofSes(400, 'MessageRejected', 'Address blacklisted'),
    later: [
      ofSes(400, 'MessageRejected', 'Email address is not verified'),
      ofSes(429, 'TooManyRequestsException', 'Maximum sending rate exceeded'),
      ofSes(500, 'InternalServiceError', 'Internal'),
    ],
  },
}

const NO_API: Answer[] = [
  [200, '<h1>Hello</h1>'],
  [502, '<h1>Bad gateway</h1>'],
]

describe('The transports of the examples, against what the services document', () => {
  /** `undefined`: none. */
  let answer: Answer | undefined
  let asked: string[] = []
  async function listen(req: IncomingMessage, res: ServerResponse) {
    asked.push(Buffer.concat(await req.toArray()).toString())
    if (!answer) return
    const [status, body, headers = {}] = answer
    res.writeHead(status, headers)
    res.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  const served = suiteServed((req, res) => void listen(req, res))
  beforeEach(() => (asked = []))

  for (const [name, { at, took, id, asked: form, forGood, later }] of Object.entries(services)) {
    describe(name, () => {
      const { signal } = new AbortController()
      /** `undefined`: it threw, which means try again. */
      const send = (): Promise<TransportAnswer | undefined> =>
        at(served.url)
          .send(MAIL, signal)
          .catch(() => undefined)

      it('hands the mail over, and answers the id', async () => {
        answer = took
        const said = await send()
        expect(said?.accepted && id.test(said.id ?? '')).to.equal(true)
        expect(asked[0]).to.match(form)
      })

      it('tells what is refused for good', async () => {
        answer = forGood
        expect(await send()).to.include({ accepted: false, isForGood: true })
      })

      it('lets everything else be tried again', async () => {
        for (answer of [...later, ...NO_API]) {
          const said = await send()
          expect(said?.accepted ?? false, JSON.stringify(answer)).to.equal(false)
          const isForGood = said && !said.accepted && said.isForGood
          expect(isForGood, JSON.stringify(answer)).to.not.equal(true)
        }
      })

      it('has at most 30 lines', async () => {
        const folder = new URL('../../examples/transports/', import.meta.url)
        expect(await readdir(folder)).to.include(`${name}.ts`)
        const lines = (await readFile(new URL(`${name}.ts`, folder), 'utf8')).trimEnd().split('\n')
        expect(lines.length).to.be.at.most(30)
      })
    })
  }

  for (const name of ['resend', 'postmark']) {
    it(`${name} stops where nobody answers and the signal aborts`, async () => {
      answer = undefined
      const stop = new AbortController()
      const sending = services[name]?.at(served.url).send(MAIL, stop.signal)
      const ended = sending?.then(
        () => 'answered',
        () => 'stopped',
      )
      while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
      stop.abort()
      expect(await ended).to.equal('stopped')
    })
  }
})
