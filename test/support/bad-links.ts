import { expect } from 'chai'
import { mailsTo } from './blocked-login.ts'
import type { Harness } from './harness.ts'
import { formsOf, press } from './page-forms.ts'
import type { Answer, UserAgent } from './user-agent.ts'
import { type Person } from './person.ts'

/** `data-reason` of a page about a link that does nothing. */
export function reasonOf({ text }: Answer): string | undefined {
  return /data-reason="([^"]*)"/.exec(text)?.[1]
}

/** Asks for a new link with the form on the page, types the username where it asks for it, and answers the link in the mail. */
export async function newLinkFrom(
  h: Harness,
  person: UserAgent,
  page: Answer,
  { user }: Person,
  to = user.email ?? '',
): Promise<string> {
  const before = mailsTo(h, { ...user, email: to })
  const form = formsOf(page).find(({ action }) => action.endsWith('/resend-verification'))
  const typed = form && 'username' in form.fields ? { username: user.username } : {}
  const sent = await press(person, page, '/resend-verification', { typed })
  expect([sent.status, sent.page, sent.mode]).to.deep.equal([200, 'verify-email', 'sent'])
  return (await h.mail.mailTo(to, before + 1)).link
}
