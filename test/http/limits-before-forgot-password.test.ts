import { expect } from 'chai'
import type { ForgotPasswordRequest } from '../../src/index.ts'
import { adminOf } from '../support/admin.ts'
import { expectPage } from '../support/expect-page.ts'
import { isIdle, jobs, withoutJobs } from '../support/jobs.ts'
import { shapeOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

/** What the two forms are asked with. */
const FORMS = [
  { kind: 'password_reset', path: 'forgot-password', name: 'identifier', command: 'send-reset' },
  {
    kind: 'email_verification',
    path: 'resend-verification',
    name: 'username',
    command: 'send-verification',
  },
] as const

for (const form of FORMS) itAsksTheHost(form)

function itAsksTheHost({ kind, path, name, command }: (typeof FORMS)[number]) {
  describe(`beforeForgotPassword: a check of the host before ${path} asks for a link`, () => {
    const asked: ForgotPasswordRequest[] = []
    const logged: string[] = []
    let check: (request: ForgotPasswordRequest) => unknown = () => 'allow'
    const h = suiteHarness({
      settings: { requests_per_ip_per_minute: '3' },
      flows: {
        trustedProxies: 1,
        log: (...line) => logged.push(JSON.stringify(line)),
        beforeForgotPassword(request) {
          asked.push(request)
          return check(request) as 'allow'
        },
      },
    })

    beforeEach(() => {
      asked.length = 0
      logged.length = 0
      check = () => 'allow'
    })

    let addresses = 0
    /** `identifier` stands for the field of this form that names somebody. */
    const post = (
      sent: Record<string, string> | string,
      address = `192.0.2.${(addresses += 1)}`,
      userAgent = 'a browser',
    ) => {
      const { identifier, ...others } = typeof sent === 'string' ? {} : sent
      const named = identifier === undefined ? others : { [name]: identifier, ...others }
      const form = typeof sent === 'string' ? sent : named
      return createUserAgent().post(`${h.oauthUrl}/${path}`, form, {
        'x-forwarded-for': address,
        'user-agent': userAgent,
      })
    }

    let people = 0
    const addPerson = (username: string) =>
      h.addUser({
        username,
        email: `person-${(people += 1)}@users.example`,
        emailVerified: kind === 'password_reset',
      })

    it('has 10 seconds to answer; then everybody is told to try again, and nothing is sent', async () => {
      const user = await addPerson('waits')
      const isAsked = new Promise<void>((resolve) => {
        check = () => {
          resolve()
          return new Promise(() => {})
        }
      })
      await withoutJobs(h, async () => {
        const answer = post({ identifier: user.username })
        await isAsked
        await moveTime(10_000)
        expect(await answer).to.include({ status: 503, mode: 'unavailable' })
      })
      check = () => 'allow'
      expect((await post({ identifier: user.username })).status).to.equal(200)
      await h.mail.mailTo(user.email ?? '')
    })

    it('gets what was typed, the client, who asks, and the other fields', async () => {
      await post(
        { identifier: ' As Typed ', client_id: 'app', state: 's', captcha: 'x y' },
        '203.0.113.7',
      )
      const [request, ...others] = asked
      expect(others).to.deep.equal([])
      expect(request).to.deep.include({
        kind,
        identifier: ' As Typed ',
        clientId: 'app',
      })
      expect(request?.requester).to.include({ address: '203.0.113.7', userAgent: 'a browser' })
      expect([...(request?.fields ?? [])]).to.deep.equal([
        ['client_id', 'app'],
        ['state', 's'],
        ['captcha', 'x y'],
      ])
      await post({ identifier: 'another' })
      expect(asked[1]?.clientId).to.equal(undefined)
    })

    const texts = ['deny', '', 'ALLOW', 'allow ']
    const denials: unknown[] = [...texts, ['allow'], undefined, null, true, false, 1, {}]
    it('takes anything but allow for a denial: the same page, and nothing comes of it but an event', async () => {
      const user = await addPerson('denied')
      const sent = await post({ identifier: 'nobody' })
      for (const verdict of denials) {
        const what = JSON.stringify(verdict)
        check = () => Promise.resolve(verdict)
        await withoutJobs(h, async () => {
          const events = h.events.length
          const denied = await post({ identifier: user.username, client_id: 'app' })
          expect(shapeOf(denied), what).to.deep.equal(shapeOf(sent))
          const [event, ...others] = h.events.slice(events)
          expect(event, what).to.deep.include({
            type: `${kind}_requested`,
            reason: 'denied',
            clientId: 'app',
            userAgent: 'a browser',
          })
          expect(event).not.to.have.property('accountId')
          expect(others).to.deep.equal([])
          expect(JSON.stringify({ ...event, reason: '' })).not.to.include('denied')
        })
      }
      check = () => 'allow'
      await post({ identifier: user.username })
      await h.mail.mailTo(user.email ?? '')
    })

    it('is told by user status where it denied the last request, by name or address', async () => {
      const user = await addPerson('Denied too')
      const status = () => adminOf(h).userStatus({ id: user.id })
      const address = kind === 'password_reset' ? [user.email?.toUpperCase() ?? ''] : []
      for (const identifier of [...address, ` ${user.username}`]) {
        check = () => 'deny'
        await post({ identifier })
        const { cause, summary, advice } = await status()
        expect(cause).to.equal('ended')
        expect(summary).to.match(
          /^The last request, at \S+, was denied .*\(beforeForgotPassword\)\.$/,
        )
        expect(advice).to.include(`account-flows user ${command} --id ${user.id}`)
        check = () => 'allow'
        await post({ identifier })
        await isIdle(h)
        expect((await status()).cause).to.equal('sent')
      }
    })

    const failures: Record<string, (request: ForgotPasswordRequest) => unknown> = {
      throws({ identifier }) {
        throw new TypeError(`cannot check ${identifier}`)
      },
      rejects: async ({ identifier }) => Promise.reject(new Error(`cannot check ${identifier}`)),
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what a host may do
      'rejects with no error': ({ identifier }) => Promise.reject(identifier),
      'throws what cannot be read'({ identifier }) {
        const boom = () => {
          throw new Error(`cannot read ${identifier}`)
        }
        throw new Proxy(new Error(identifier), { get: boom, getPrototypeOf: boom })
      },
    }
    for (const [how, fail] of Object.entries(failures)) {
      it(`answers 503 to everybody where it ${how}, and logs nothing that was typed`, async () => {
        const user = await addPerson(`Somebody ${how}`)
        await isIdle(h)
        check = fail
        const answers = [
          await post({ identifier: user.username }, undefined, 'a failing check'),
          await post({ identifier: 'Nobody' }, undefined, 'a failing check'),
        ]
        for (const answer of answers) {
          expectPage(answer, 503, 'error', 'unavailable')
          expect(answer.headers.get('retry-after')).to.equal('60')
          expect(shapeOf(answer)).to.deep.equal(shapeOf(answers[0] ?? answer))
        }
        expect(await jobs(h)).to.deep.equal([])
        expect(user.mailCount()).to.equal(0)
        expect(h.events.filter(({ userAgent }) => userAgent === 'a failing check')).to.deep.equal(
          [],
        )
        expect(logged.filter((line) => line.includes('beforeForgotPassword'))).to.have.length(2)
        expect(logged.join()).not.to.include('Somebody').and.not.to.include('Nobody')
        check = () => 'allow'
        await post({ identifier: user.username })
        await h.mail.mailTo(user.email ?? '')
      })
    }

    it('is not asked about forms that are refused, or beyond the limit of an address', async () => {
      for (const form of [{}, { identifier: '' }, `${name}=a&${name}=b`, { other: 'a' }]) {
        expect((await post(form)).status).to.equal(400)
      }
      expect(asked).to.deep.equal([])
      const address = '203.0.113.99'
      for (let count = 0; count < 5; count += 1) await post({ identifier: 'nobody' }, address)
      expect(asked).to.have.length(3)
    })

    it('cannot change what is asked for', async () => {
      const user = await addPerson('unchanged')
      check = (request) => {
        request.identifier = 'another'
        ;(request.fields as Map<string, string>).clear()
        request.requester.address = '192.0.2.250'
        return 'allow'
      }
      await post({ identifier: 'unchanged' }, '203.0.113.8')
      await h.mail.mailTo(user.email ?? '')
      // The event is recorded once the mail has left.
      await isIdle(h)
      const [event] = user.events(`${kind}_mail_sent`)
      expect(event).to.include({ address: '203.0.113.8' })
    })
  })
}
