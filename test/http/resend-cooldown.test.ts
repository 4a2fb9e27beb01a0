import { expect } from 'chai'
import { addUnverified, blockedLogin, mailsTo } from '../support/blocked-login.ts'
import { PASSWORD } from '../support/harness.ts'
import { shapeOf, tokenOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { windowOf } from '../support/waiting-window.ts'

const HOUR_S = 3_600

/** What the page counts down. `undefined`: nothing. */
function secondsIn({ text }: Answer): number | undefined {
  const seconds = /data-seconds="(\d+)"/.exec(text)?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}

describe('The countdown to the next mail (resend_cooldown, D26)', () => {
  const h = suiteHarness({
    settings: { resend_cooldown: '1h' },
    flows: { trustedProxies: 1 },
  })

  before(async () => {
    await h.addUser({ username: 'known' })
  })

  const forms = {
    'forgot-password': (name: string) => ({ identifier: name }),
    'resend-verification': (name: string) => ({ username: name }),
  }

  const ask = (path: keyof typeof forms, name: string, from = '192.0.2.1') =>
    createUserAgent().post(`${h.oauthUrl}/${path}`, forms[path](name), { 'x-forwarded-for': from })

  /** The page after a repeated request: what is left of the hour, and no more. */
  function expectRest(answer: Answer) {
    expect(answer.mode).to.equal('sent')
    expect(secondsIn(answer)).to.be.within(1, HOUR_S)
  }

  for (const path of ['forgot-password', 'resend-verification'] as const) {
    it(`${path}: the whole of it after the first request, the same for known and unknown names`, async () => {
      const pages = [await ask(path, 'known'), await ask(path, 'nobody at all')]
      for (const page of pages) expect(secondsIn(page)).to.equal(HOUR_S)
      const [known, unknown] = pages.map(shapeOf)
      expect(known).to.deep.equal(unknown)
      for (const name of ['known', 'nobody at all']) expectRest(await ask(path, name))
      const asked = [...h.events].filter(({ reason }) => reason === 'unknown')
      expect(JSON.stringify(asked)).not.to.include('nobody')
    })

    it(`${path}: it tells nobody in another network that somebody asked`, async () => {
      const name = `private ${path}`
      expect(secondsIn(await ask(path, name, '192.0.2.7'))).to.equal(HOUR_S)
      await moveTime(1_100)
      expect(secondsIn(await ask(path, name, '192.0.2.7'))).to.be.within(1, HOUR_S - 1)
      for (const from of ['192.0.2.8', '2001:db8::1']) {
        expect(secondsIn(await ask(path, name, from))).to.equal(HOUR_S)
      }
    })
  }

  it('counts each kind of mail by itself, and names byte for byte', async () => {
    for (const path of ['forgot-password', 'resend-verification'] as const) {
      for (const name of ['one and the same', 'One and the same', 'one and the same ']) {
        expect(secondsIn(await ask(path, name)), `${path} ${name}`).to.equal(HOUR_S)
      }
    }
  })

  it('goes on where the blocked login began it', async () => {
    const user = await addUnverified(h)
    const login = await blockedLogin(h, { user })
    expect(secondsIn(login.blocked)).to.equal(HOUR_S)
    const form = { username: user.username }
    const sent = await login.agent.post(`${h.oauthUrl}/resend-verification`, form)
    expectRest(sent)
    const window = windowOf(h, login)
    for (const answer of [await window.reload(), await window.goOn()]) {
      expect(answer.mode).to.equal('blocked')
      expect(secondsIn(answer)).to.be.within(1, HOUR_S)
    }
    const { url } = await h.party.begin()
    const again = await h.login(createUserAgent(), url, user.username, PASSWORD)
    expect(again.mode).to.equal('blocked')
    expect(secondsIn(again)).to.be.within(1, HOUR_S)
  })

  it('is no refusal: whoever has no link to use gets one', async () => {
    const user = await h.addUser({ username: 'again' })
    await h.forgot(user.username)
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expectRest(await h.forgot(user.username))
    const { link: newer } = await h.mail.mailTo(user.email ?? '', 2)
    expect(tokenOf(newer)).not.to.equal(tokenOf(link))
    expect((await h.reset(newer, 'another new password')).mode).to.equal('done')
  })

  it('shows nothing and counts nothing where it is 0s, as is the default', async () => {
    await h.put({ resend_cooldown: '0s' })
    try {
      const user = await addUnverified(h)
      const login = await blockedLogin(h, { user })
      const form = { username: user.username }
      const pages = [
        login.blocked,
        await login.agent.post(`${h.oauthUrl}/resend-verification`, form),
        await ask('forgot-password', 'free'),
        await ask('forgot-password', 'free'),
      ]
      for (const page of pages) expect(secondsIn(page)).to.equal(undefined)
      await h.mail.mailTo(user.email ?? '', 2)
      expect(mailsTo(h, user)).to.equal(2)
      await h.put({ resend_cooldown: '1h' })
      expect(secondsIn(await ask('forgot-password', 'free'))).to.equal(HOUR_S)
    } finally {
      await h.put({ resend_cooldown: '1h' })
    }
  })
})
