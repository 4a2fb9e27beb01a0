import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { PASSWORD } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { typeCode } from '../support/waiting-window.ts'
import { addUnverified, codeIn } from '../support/person.ts'

describe('The code of a login whose mail was deferred once (3.2)', () => {
  let answer: MailAnswer = 'take'
  const h = suiteHarness({
    settings: { email_link_confirmation: 'other_browser' },
    mail: { answer: () => answer },
  })
  const MEANWHILE = {
    'nobody asks': async () => {},
    'a stranger asks by name': (username: string) =>
      createUserAgent().post(`${h.oauthUrl}/resend-verification`, { username }),
    'a stranger signs in': async (username: string) =>
      h.login(createUserAgent(), (await h.party.begin()).url, username, PASSWORD),
  }
  for (const [what, meanwhile] of Object.entries(MEANWHILE)) {
    it(`is mailed all the same, though ${what} meanwhile`, async () => {
      const user = await addUnverified(h)
      const [agent, { url }] = [createUserAgent(), await h.party.begin()]
      const { defer } = h.mail.answered
      answer = 'defer'
      const blocked = await h.login(agent, url, user.username)
      await eventually('it is deferred', () => h.mail.answered.defer > defer)
      answer = 'take'
      await meanwhile(user.username)
      if (what !== 'nobody asks') await h.mail.mailTo(user.email ?? '')
      await moveTime(600_000)
      await isIdle(h)
      const mails = h.mail.mails.filter(({ to }) => to.includes(user.email ?? ''))
      const led = []
      for (const { mail } of mails)
        led.push((await typeCode(h, { agent, blocked }, codeIn(mail) ?? '')).location !== undefined)
      expect(led).to.include(true)
    })
  }
})
