import { expect } from 'chai'
import { accountOf, blockedLogin, expectExpired, isVerified } from '../support/blocked-login.ts'
import { NATIVE, expectConsentThenCode, partyOf } from '../support/clients.ts'
import { CLIENT } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('A verification link whose login still needs consent (4.6)', () => {
  const h = suiteHarness({ clients: [CLIENT, NATIVE] })

  function itAsks(title: string, client: typeof CLIENT | typeof NATIVE, isSame = false) {
    it(title, async () => {
      const isNative = client === NATIVE
      const party = await partyOf(h, client)
      const extra: Record<string, string> = isNative ? {} : { prompt: 'consent' }
      const login = await blockedLogin(h, { party, extra })
      const agent = isSame ? login.agent : createUserAgent()
      const answer = await agent.get(login.link)
      expect(await isVerified(h, login.user)).to.equal(true)
      await expectConsentThenCode(h, login, agent, answer)
      expectExpired(await agent.get(login.link))
      if (!isNative) expect(await accountOf(h, agent)).to.equal(login.user.id)
    })
  }
  itAsks(
    'leads to the consent page, and then to the code, with prompt=consent (RED-11)',
    CLIENT,
    true,
  )
  itAsks('does the same in another browser', CLIENT)
  itAsks('does the same for a native client, with its private-use redirect URI', NATIVE)
})
