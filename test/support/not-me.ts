import type { User } from '../../src/index.ts'
import type { Harness } from './harness.ts'
import { mailsTo } from './blocked-login.ts'
import { press } from './page-forms.ts'
import { createUserAgent, type Answer } from './user-agent.ts'

/** The address behind "This wasn't me", of the newest mail to the user. */
export async function notMeLink(h: Harness, user: User): Promise<string> {
  const { mail } = await h.mail.mailTo(user.email ?? '', mailsTo(h, user))
  return /https?:\/\/\S+\/not-me\?\S+/.exec(mail.text ?? '')?.[0] ?? ''
}

/** Opens it, and presses the button. */
export async function disown(link: string): Promise<Answer> {
  const agent = createUserAgent()
  return press(agent, await agent.get(link), '/not-me')
}
