import { expect } from 'chai'
import {
  DYNAMIC_URI,
  MACHINE,
  PAR_ONLY,
  THEIR_FEATURES,
  dynamicLogin,
  expectPasswordThenCode,
  pushedLogin,
  JAR_ONLY,
  forgetInteraction,
  signedLogin,
} from '../support/clients.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { outcomeOf } from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode, windowOf } from '../support/waiting-window.ts'
import { blockedLogin, sessionId, setsSession, type Person, codeOn } from '../support/person.ts'

/** Consent is in test/http/verify-email-any-request.property.test.ts. */
describe('The waiting window finishes the very request of its client', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, JAR_ONLY],
    provider: { features: THEIR_FEATURES },
  })

  it('of a client that must sign its requests, with prompt=login, or after the interaction is gone', async () => {
    const forgotten = await blockedLogin(h)
    await forgetInteraction(h, forgotten)
    const again = await blockedLogin(h, { extra: { prompt: 'login' } })
    for (const login of [forgotten, await signedLogin(h), again]) {
      await login.opensElsewhere()
      await login.comesBack(await login.goesOn())
    }
  })

  it('though the other browser used a pushed request up', async () => {
    const { login, url } = await pushedLogin(h)
    const elsewhere = await login.opensElsewhere()
    expect(elsewhere.location).to.match(/[?&]code=/)
    await login.comesBack(await login.goesOn())
    expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
  })

  it('and uses a pushed request up where nobody else did', async () => {
    const { login, url } = await pushedLogin(h)
    await login.comesBack(await login.types(login.code))
    expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
  })

  it('by way of the login page once max_age has passed since the password was checked', async () => {
    const login = await blockedLogin(h, { extra: { max_age: '600' } })
    await login.opensElsewhere()
    await moveTime(601_000)
    const answer = await login.goesOn()
    expect(setsSession(answer)).to.equal(false)
    await expectPasswordThenCode(h, login, login.agent, answer)
  })

  describe('unless the client changed meanwhile:', () => {
    async function expectNoRedirect(login: Person) {
      const window = windowOf(h, login)
      expectMode(await login.opensElsewhere(), 200, 'verified')
      const answer = await window.goOn()
      expectMode(answer, 200, 'verified')
      expect(sessionId(h, login.agent)).to.equal(undefined)
    }

    it('its redirect URI was withdrawn, until it is back; no code is shown meanwhile', async () => {
      const { login, change } = await dynamicLogin(h)
      await change({ redirect_uris: [`${DYNAMIC_URI}/`] })
      await h.put({ email_link_confirmation: 'other_browser' })
      const elsewhere = await login.opensElsewhere()
      await h.put({ email_link_confirmation: 'off' })
      expectMode(elsewhere, 200, 'elsewhere')
      expect(codeOn(elsewhere)).to.equal(undefined)
      await expectNoRedirect(login)
      await change()
      await login.comesBack(await login.goesOn())
    })

    it('it may no longer ask for a code, or is gone, and another client’s login works', async () => {
      const { login, change, remove } = await dynamicLogin(h)
      await change(MACHINE)
      await expectNoRedirect(login)
      await remove()
      expectMode(await login.goesOn(), 200, 'verified')
      const answer = await h.signIn(login.agent, login.user.username)
      expect(answer.location).to.match(/[?&]code=/)
    })
  })
})
