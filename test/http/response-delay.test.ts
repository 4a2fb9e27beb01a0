import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { isIdle } from '../support/jobs.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const FLOOR_MS = 100

/** Sends everything but the last byte, waits, and sends that; answers when the answer began, and its status. */
function postSlowly(url: string, form: Record<string, string>) {
  const body = new URLSearchParams(form).toString()
  const outgoing = request(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': Buffer.byteLength(body),
    },
  })
  const status = new Promise<number | undefined>((resolve, reject) => {
    outgoing.once('error', reject)
    outgoing.once('response', (response) => {
      response.resume()
      resolve(response.statusCode)
    })
  })
  outgoing.write(body.slice(0, -1))
  return {
    status,
    finish: () => outgoing.end(body.slice(-1)),
    leave: () => outgoing.destroy(new Error('The client left')),
  }
}

describe('The delay of an answer (4.2, 4.7)', () => {
  let whileChecked = async () => {}
  const h = suiteHarness({
    flows: {
      clock: systemClock,
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
      const slow = postSlowly(`${h.oauthUrl}${path}`, form)
      await sleep(FLOOR_MS * 2)
      slow.finish()
      // A timer that is set with the last byte and is shorter than the floor ends first, on a busy machine too.
      const first = await Promise.race([slow.status, sleep(FLOOR_MS / 2, 'still waiting')])
      expect(first).to.equal('still waiting')
      expect(await slow.status).to.equal(200)
    })
  }

  it('does not keep a request from being served whose client has left meanwhile (FLT-22)', async () => {
    const user = await h.addUser({ username: 'impatient' })
    const slow = postSlowly(`${h.oauthUrl}/forgot-password`, { identifier: user.username })
    const left = new Promise<void>((resolve) => {
      whileChecked = async () => {
        slow.leave()
        await slow.status.catch(() => resolve())
      }
    })
    slow.finish()
    await left
    whileChecked = async () => {}
    const { link } = await h.mail.mailTo(user.email ?? '')
    await isIdle(h)
    expect(h.mail.mails.filter(({ to }) => to.includes(user.email ?? ''))).to.have.length(1)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })
})
