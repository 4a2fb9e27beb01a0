import { once } from 'node:events'
import { request } from 'node:http'
import { expect } from 'chai'
import type { Clock } from '../../src/clock.ts'
import type { AccountFlowsOptions } from '../../src/index.ts'
import { adminOf } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { suiteHarness } from '../support/harness.ts'
import { movableClock, moveTime } from '../support/time.ts'

/** So long that no other wait is taken for it. */
const FLOOR_MS = 60_000

/** Sends everything but the last byte; answers once the server has begun with the request. */
async function postSlowly(url: string, form: Record<string, string>) {
  const body = new URLSearchParams(form).toString()
  const outgoing = request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': Buffer.byteLength(body),
      expect: '100-continue',
    },
  })
  let isAnswered = false
  const status = new Promise<number | undefined>((resolve, reject) => {
    outgoing.once('error', reject)
    outgoing.once('response', (response) => {
      isAnswered = true
      response.resume()
      resolve(response.statusCode)
    })
  })
  outgoing.flushHeaders()
  await once(outgoing, 'continue')
  outgoing.write(body.slice(0, -1))
  return {
    status,
    isAnswered: () => isAnswered,
    finish: () => outgoing.end(body.slice(-1)),
    leave: () => outgoing.destroy(new Error('The client left')),
  }
}

describe('The delay of an answer (4.2, 4.7)', () => {
  /** Until when answers wait. */
  const ends: number[] = []
  const clock: Clock = {
    now: movableClock.now,
    sleep(ms, options) {
      if (ms > FLOOR_MS / 2 && !options) ends.push(performance.now() + ms)
      return movableClock.sleep(ms, options)
    },
  }
  let whileChecked = async () => {}
  const h = suiteHarness({
    flows: {
      clock,
      responseDelay: { floorMs: FLOOR_MS, jitterMs: 0 },
      async beforeForgotPassword({ identifier }) {
        await whileChecked()
        return identifier === 'denied' ? 'deny' : 'allow'
      },
    },
  })

  /** What is in links that expired, by the path that renews them. */
  const expired: Record<string, Record<string, string>> = {}
  const fieldsOf = (link: string) => Object.fromEntries(new URL(link).searchParams)

  before(async () => {
    const user = await h.addVerified()
    await adminOf(h).sendReset({ user: user.username })
    expired['/forgot-password'] = fieldsOf((await user.mail(1)).link)
    expired['/resend-verification'] = fieldsOf((await h.blockedLogin()).link)
    expired['/accept-invitation'] = fieldsOf(await (await h.addImported()).isInvited())
    await h.later(7.5 * 86_400_000)
  })

  const formsFor: [of: string, path: string, form: () => Record<string, string>, status: number][] =
    [
      ['nobody', '/forgot-password', () => ({ identifier: 'nobody' }), 200],
      ['denied', '/forgot-password', () => ({ identifier: 'denied' }), 200],
      ['nobody', '/resend-verification', () => ({ username: 'nobody' }), 200],
      ...['/forgot-password', '/resend-verification', '/accept-invitation'].flatMap(
        (path): typeof formsFor => [
          ['an unknown token', path, () => ({ token: 'A'.repeat(43), action: 'renew' }), 400],
          ['an expired link', path, () => ({ ...expired[path], action: 'renew' }), 200],
        ],
      ),
    ]

  for (const [of, path, form, status] of formsFor) {
    it(`of ${path} for ${of} counts from the end of the body, however slowly that came`, async () => {
      const slow = await postSlowly(`${h.oauthUrl}${path}`, form())
      const finishedAt = performance.now()
      slow.finish()
      const end = await eventually('the answer waits', () => ends.pop())
      expect(end - finishedAt).to.be.at.least(FLOOR_MS)
      expect((await fetch(`${h.oauthUrl}/forgot-password`)).status).to.equal(200)
      expect(slow.isAnswered()).to.equal(false)
      await moveTime(FLOOR_MS)
      expect(await slow.status).to.equal(status)
    })
  }

  it('does not keep a request from being served whose client has left meanwhile (FLT-22)', async () => {
    const user = await h.addUser({ username: 'impatient' })
    const form = { identifier: user.username }
    const slow = await postSlowly(`${h.oauthUrl}/forgot-password`, form)
    const left = new Promise<void>((resolve) => {
      whileChecked = async () => {
        slow.leave()
        await slow.status.catch(() => resolve())
      }
    })
    slow.finish()
    await left
    whileChecked = async () => {}
    await eventually('its answer waits', () => ends.pop())
    await moveTime(FLOOR_MS)
    const { link } = await h.mail.mailTo(user.email ?? '')
    await h.isIdle()
    expect(h.mail.mails.filter(({ to }) => to.includes(user.email ?? ''))).to.have.length(1)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })
})

describe('The delay of an answer, from one to the next (4.2, 4.7)', () => {
  for (const [which, floorMs, jitterMs, responseDelay] of [
    ['is what the host chose', FLOOR_MS, FLOOR_MS, { floorMs: FLOOR_MS, jitterMs: FLOOR_MS }],
    ['is 250 to 750 ms unless the host chose', 250, 500, undefined],
  ] as const) {
    const waits: number[] = []
    const clock: Clock = {
      now: movableClock.now,
      async sleep(ms, options) {
        if (options) return movableClock.sleep(ms, options)
        waits.push(ms)
      },
    }
    const h = suiteHarness({ flows: { clock, responseDelay } as Partial<AccountFlowsOptions> })

    it(`${which}, and varies over all of that`, async () => {
      for (let count = 0; count < 30; count += 1) await h.forgot('nobody')
      expect(waits).to.have.length.at.least(20)
      expect(Math.max(...waits)).to.be.below(floorMs + jitterMs)
      expect(Math.max(...waits) - Math.min(...waits)).to.be.above(jitterMs / 4)
    })
  }
})
