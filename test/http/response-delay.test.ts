import { once } from 'node:events'
import { request } from 'node:http'
import { expect } from 'chai'
import type { Clock } from '../../src/clock.ts'
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

  for (const [path, form] of [
    ['/forgot-password', { identifier: 'nobody' }],
    ['/forgot-password', { identifier: 'denied' }],
    ['/resend-verification', { username: 'nobody' }],
  ] as const) {
    const [name] = Object.values(form)
    it(`of ${path} for ${name} counts from the end of the body, however slowly that came`, async () => {
      const slow = await postSlowly(`${h.oauthUrl}${path}`, form)
      const finishedAt = performance.now()
      slow.finish()
      const end = await eventually('the answer waits', () => ends.pop())
      expect(end - finishedAt).to.be.at.least(FLOOR_MS)
      expect((await fetch(`${h.oauthUrl}/forgot-password`)).status).to.equal(200)
      expect(slow.isAnswered()).to.equal(false)
      await moveTime(FLOOR_MS)
      expect(await slow.status).to.equal(200)
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
