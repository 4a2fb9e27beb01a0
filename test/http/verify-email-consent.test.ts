import { expect } from 'chai'
import { accountOf, blockedLogin, expectExpired, isVerified } from '../support/blocked-login.ts'
import { NATIVE, expectConsentThenCode, partyOf } from '../support/clients.ts'
import { CLIENT } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('A verification link whose login still needs consent (4.6)', () => {
  const h = suiteHarness({ clients: [CLIENT, NATIVE] })

  for (const [title, client, isSame] of [
    ['leads to the consent page, and then to the code, with prompt=consent (RED-11)', CLIENT, true],
    ['does the same in another browser', CLIENT, false],
    ['does the same for a native client, with its private-use redirect URI', NATIVE, false],
  ] as const) {
    it(title, async () => {
      const extra = client === CLIENT ? { prompt: 'consent' } : undefined
      const party = await partyOf(h, client)
      const login = await blockedLogin(h, { party, ...(extra && { extra }) })
      const agent = isSame ? login.agent : createUserAgent()
      const answer = await agent.get(login.link)
      expect(await isVerified(h, login.user)).to.equal(true)
      await expectConsentThenCode(h, login, agent, answer)
      expectExpired(await agent.get(login.link))
      if (client === CLIENT) expect(await accountOf(h, agent)).to.equal(login.user.id)
    })
  }
})
