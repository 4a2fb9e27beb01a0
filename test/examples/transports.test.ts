import { readdir, readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import { expect } from 'chai'
import { postmark } from '../../examples/transports/postmark.ts'
import { resend } from '../../examples/transports/resend.ts'
import { ses } from '../../examples/transports/ses.ts'
import type { MailTransport, TransportAnswer } from '../../src/index.ts'
import { serve, type Served } from '../support/serve.ts'

const MAIL = {
  from: { name: 'The "Service"', address: 'accounts@idp.example' },
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

const services: Record<
  string,
  {
    at(url: string): MailTransport
    took: Answer
    id: RegExp
    asked: RegExp
    forGood: Answer
    later: Answer[]
  }
> = {
  resend: {
    at: (url) => resend('re_key', url),
    took: [200, { id: '49a3999c-0ce1-4ea6-ab68-afcd6dc2e794' }],
    id: /^49a3999c/,
    asked: /"from":"\\"The Service\\" <accounts@idp\.example>","to":\["ann@users\.example"\]/,
    forGood: [422, { statusCode: 422, name: 'validation_error', message: 'Invalid `to` field' }],
    later: [
      [401, { statusCode: 401, name: 'missing_api_key', message: 'Missing API Key' }],
      [422, { statusCode: 422, name: 'invalid_from_address', message: 'Invalid `from` field' }],
      [429, { statusCode: 429, name: 'rate_limit_exceeded', message: 'Too many requests' }],
      [
        500,
        { statusCode: 500, name: 'application_error', message: 'An unexpected error occurred' },
      ],
    ],
  },
  postmark: {
    at: (url) => postmark('token', url),
    took: [200, { ErrorCode: 0, Message: 'OK', MessageID: 'b7bc2f4a-e38e-4336-af7d-e6c392c2f817' }],
    id: /^b7bc2f4a/,
    asked: /"From":"\\"The Service\\" <accounts@idp\.example>","To":"ann@users\.example"/,
    forGood: [422, { ErrorCode: 406, Message: 'You tried to send to an inactive recipient' }],
    later: [
      [401, { ErrorCode: 10, Message: 'No Account or Server API tokens were supplied' }],
      [422, { ErrorCode: 400, Message: 'The Sender Signature was not found' }],
      [
        422,
        {
          ErrorCode: 300,
          Message: "Invalid 'From' address: 'a@b.example' is not a verified sender.",
        },
      ],
      [429, { ErrorCode: 429, Message: 'Rate limit exceeded' }],
      [503, { ErrorCode: 100, Message: 'Maintenance' }],
    ],
  },
  ses: {
    at: (url) => ses(sdkAt(url)),
    took: [200, { MessageId: '0102018f-canary-000000' }],
    id: /^0102018f/,
    asked: /"FromEmailAddress"|"Raw"/,
    forGood: [400, { message: 'Address blacklisted' }, { 'x-amzn-errortype': 'MessageRejected' }],
    later: [
      [
        400,
        { message: 'Email address is not verified' },
        { 'x-amzn-errortype': 'MessageRejected' },
      ],
      [
        429,
        { message: 'Maximum sending rate exceeded' },
        { 'x-amzn-errortype': 'TooManyRequestsException' },
      ],
      [500, { message: 'Internal' }, { 'x-amzn-errortype': 'InternalServiceError' }],
    ],
  },
}

describe('The transports of the examples, against what the services document', () => {
  let answer: Answer | undefined
  let asked: { body: string; headers: IncomingHttpHeaders }[] = []
  const listener: RequestListener = (req, res) => {
    void req.toArray().then((chunks: Buffer[]) => {
      asked.push({ body: Buffer.concat(chunks).toString(), headers: req.headers })
      if (!answer) return
      const [status, body, headers = {}] = answer
      res.writeHead(status, headers)
      res.end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  }
  let served: Served

  before(async () => {
    served = await serve(listener)
  })
  after(() => served.close())
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
        expect(asked[0]?.body).to.match(form)
      })

      it('tells what is refused for good', async () => {
        answer = forGood
        expect(await send()).to.include({ accepted: false, isForGood: true })
      })

      it('lets everything else be tried again', async () => {
        for (answer of [
          ...later,
          [200, '<h1>Hello</h1>'],
          [502, '<h1>Bad gateway</h1>'],
        ] as Answer[]) {
          const said = await send()
          expect(said?.accepted ?? false, JSON.stringify(answer)).to.equal(false)
          expect(said && !said.accepted && said.isForGood, JSON.stringify(answer)).to.not.equal(
            true,
          )
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
