import { expect } from 'chai'
import {
  addUnverified,
  blockedLogin,
  expectResumed,
  isVerified,
  mailsTo,
  sessionId,
  setsSession,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import {
  DYNAMIC_URI,
  JAR_ONLY,
  MACHINE,
  NATIVE,
  PAR_ONLY,
  THEIR_FEATURES,
  dynamicLogin,
  expectConsentThenCode,
  expectPasswordThenCode,
  forgetInteraction,
  partyOf,
  pushedLogin,
  signedLogin,
} from '../support/clients.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD } from '../support/harness.ts'
import {
  beginDevice,
  confirmDevice,
  DEVICE_CLIENT,
  outcomeOf,
  pollDevice,
} from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { words } from '../support/words.ts'
import { expectMode, openElsewhere, windowNamed, windowOf } from '../support/waiting-window.ts'

describe('The waiting window finishes the very request of its client (D11, D15)', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, JAR_ONLY, NATIVE, DEVICE_CLIENT],
    provider: { features: THEIR_FEATURES },
  })

  /** Opens the link in another browser and presses its button. */
  async function confirmElsewhere(link: string) {
    const agent = createUserAgent()
    const { hidden } = await agent.get(link)
    return agent.post(`${h.oauthUrl}/verify-email`, { ...hidden, action: 'confirm' })
  }

  const others: Record<string, () => Promise<BlockedLogin>> = {
    'after the interaction is gone': async () => {
      const login = await blockedLogin(h)
      await forgetInteraction(h, login)
      return login
    },
    'of a client that must sign its requests': () => signedLogin(h),
    'with prompt=login, without a second question': () =>
      blockedLogin(h, { extra: { prompt: 'login' } }),
  }
  for (const [title, login] of Object.entries(others)) {
    it(title, async () => {
      const waiting = await login()
      await openElsewhere(waiting)
      await expectResumed(h, waiting, await windowOf(h, waiting).goOn())
    })
  }

  it('though the other browser used a pushed request up', async () => {
    const { login, url } = await pushedLogin(h)
    const elsewhere = await openElsewhere(login)
    expect(elsewhere.location).to.match(/[?&]code=/)
    await expectResumed(h, login, await windowOf(h, login).goOn())
    expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
  })

  it('and uses a pushed request up where nobody else did', async () => {
    await h.put({ email_link_confirmation: 'always' })
    const { login, url } = await pushedLogin(h)
    await confirmElsewhere(login.link)
    await h.put({ email_link_confirmation: 'off' })
    await expectResumed(h, login, await windowOf(h, login).goOn())
    expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
  })

  it('by way of the consent page where consent is due, and for a native client', async () => {
    const asked = await blockedLogin(h, { extra: { prompt: 'consent' } })
    const native = await blockedLogin(h, { party: await partyOf(h, NATIVE) })
    for (const login of [asked, native]) {
      await openElsewhere(login)
      await expectConsentThenCode(h, login, login.agent, await windowOf(h, login).goOn())
    }
  })

  it('by way of the login page once max_age has passed since the password was checked', async () => {
    const login = await blockedLogin(h, { extra: { max_age: '600' } })
    await openElsewhere(login)
    await moveTime(601_000)
    const answer = await windowOf(h, login).goOn()
    expect(setsSession(answer)).to.equal(false)
    await expectPasswordThenCode(h, login, login.agent, answer)
  })

  describe('unless the client changed meanwhile:', () => {
    async function expectNoRedirect(login: BlockedLogin) {
      const window = windowOf(h, login)
      expectMode(await openElsewhere(login), 200, 'verified')
      const answer = await window.goOn()
      expectMode(answer, 200, 'verified')
      expect(sessionId(h, login.agent)).to.equal(undefined)
      expect(await window.status()).to.equal('verified')
    }

    it('its redirect URI was withdrawn, until it is back', async () => {
      const { login, change } = await dynamicLogin(h)
      await change({ redirect_uris: [`${DYNAMIC_URI}/`] })
      await expectNoRedirect(login)
      await change()
      await expectResumed(h, login, await windowOf(h, login).goOn())
    })

    it('it may no longer ask for a code, or is gone, and another client’s login works', async () => {
      const { login, change, remove } = await dynamicLogin(h)
      await change(MACHINE)
      await expectNoRedirect(login)
      await remove()
      expectMode(await windowOf(h, login).goOn(), 200, 'verified')
      const answer = await h.signIn(login.agent, login.user.username)
      expect(answer.location).to.match(/[?&]code=/)
    })

    it('and no window is promised to go on elsewhere then, when the link is opened in another browser', async () => {
      const [{ login: gone, remove }, kept] = [await dynamicLogin(h), await blockedLogin(h)]
      await remove()
      await h.put({ email_link_confirmation: 'always' })
      const promise = words['verify-email.verified.elsewhere'] ?? 'not there'
      for (const [login, isPromised] of [
        [gone, false],
        [kept, true],
      ] as const) {
        const answer = await confirmElsewhere(login.link)
        expectMode(answer, 200, 'verified')
        expect(answer.text.includes(promise)).to.equal(isPromised)
      }
      await h.put({ email_link_confirmation: 'off' })
      await expectResumed(h, kept, await windowOf(h, kept).goOn())
    })
  })

  describe('of a device:', () => {
    async function blockedDevice(agent: UserAgent) {
      const user = await addUnverified(h)
      const before = mailsTo(h, user)
      const device = await beginDevice(h)
      const page = await confirmDevice(h, agent, device)
      expect([page.page, page.mode]).to.deep.equal(['login', 'login'])
      const blocked = await agent.post(page.url, { username: user.username, password: PASSWORD })
      expectMode(blocked, 200, 'blocked')
      const { link } = await h.mail.mailTo(user.email ?? '', before + 1)
      const window = windowNamed(h.oauthUrl, blocked.hidden['login'] ?? '', agent)
      return { user, device, link, window }
    }
    it('waits, and gives the device its tokens once the address is verified elsewhere', async () => {
      await h.put({ email_link_confirmation: 'other_browser' })
      const agent = createUserAgent()
      const { user, device, link, window } = await blockedDevice(agent)
      expect(await pollDevice(h, device)).to.equal('authorization_pending')
      expectMode(await confirmElsewhere(link), 200, 'verified')
      await h.put({ email_link_confirmation: 'off' })
      expect(await pollDevice(h, device)).to.equal('authorization_pending')
      expect(await window.status()).to.equal('verified')
      const done = await h.follow(agent, await window.goOn())
      expect(done.status).to.equal(200)
      expect(await isVerified(h, user)).to.equal(true)
      expect(await pollDevice(h, device)).to.equal('tokens')
    })

    it('is no dead end where the link has finished it in the other browser', async () => {
      const agent = createUserAgent()
      const { device, link, window } = await blockedDevice(agent)
      const elsewhere = createUserAgent()
      await h.follow(elsewhere, await elsewhere.get(link))
      const answer = await h.follow(agent, await window.goOn())
      expect(answer.status).to.be.below(500)
      expect(await pollDevice(h, device)).to.equal('tokens')
    })

    it('is no dead end once the code of the device is gone', async () => {
      const agent = createUserAgent()
      const { device, link, window } = await blockedDevice(agent)
      await (await h.provider.DeviceCode.find(device.device_code))?.destroy()
      const elsewhere = await createUserAgent().get(link)
      const answer = await h.follow(agent, await window.goOn())
      expect([elsewhere.status, answer.status].every((status) => status < 500)).to.equal(true)
      expect(await pollDevice(h, device)).to.equal('invalid_grant')
    })
  })
})
