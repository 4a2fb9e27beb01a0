import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import type { Harness } from './harness.ts'
import { createUserAgent, type Answer, type UserAgent } from './user-agent.ts'
import { setsSession } from './person.ts'

/** A link or a login in a browser where somebody else is, or was, signed in. */

/** A verified user, signed in in this browser in place of whoever was there. */
export async function ownerSignedIn(h: Harness, browser = createUserAgent()) {
  const owner = await h.addVerified()
  const { url } = await h.party.begin({ prompt: 'login' })
  const back = await h.follow(browser, await h.login(browser, url, owner.username))
  expect(back.location).to.match(/[?&]code=/)
  return { owner, browser }
}

/** The page about another account, which names none of these users. */
export function expectOtherAccount(page: Answer, users: User[]): void {
  expect([page.status, page.page]).to.deep.equal([200, 'verify-email'])
  expect([page.mode, page.location]).to.deep.equal(['other_account', undefined])
  expect(setsSession(page)).to.equal(false)
  for (const { username, email, id } of users) {
    for (const name of [username, email ?? '', `"${id}"`]) expect(page.text).to.not.include(name)
  }
}

export const sessionOf = (h: Harness, agent: UserAgent) =>
  h.provider.Session.find(h.sessionId(agent) ?? '')

type Session = Awaited<ReturnType<typeof sessionOf>>

/** The session of one is now a session of the other, with nothing of the former. */
export async function expectReplaced(h: Harness, before: Session, after: Session, users: User[]) {
  const [owner, user] = users
  expect([before?.accountId, after?.accountId]).to.deep.equal([owner?.id, user?.id])
  expect(after?.jti).to.not.equal(before?.jti)
  expect(after?.uid === before?.uid, 'one uid for one account').to.equal(owner?.id === user?.id)
  expect(await h.provider.Session.find(before?.jti ?? '')).to.equal(undefined)
}

/** Somebody plants an anonymous session in the browser; it is worth nothing once the person was signed in there. */
export async function expectPlantedReplaced(
  h: Harness,
  victim: UserAgent,
  signIn: () => Promise<unknown>,
): Promise<void> {
  await victim.get(`${h.oauthUrl}/session/end`)
  const planted = h.sessionId(victim)
  const cookie = victim.cookiesFor(`${h.oauthUrl}/auth`)
  expect(planted).to.be.a('string')
  await signIn()
  expect(h.sessionId(victim)).to.not.equal(planted)
  expect(await h.provider.Session.find(planted ?? '')).to.equal(undefined)
  const { url } = await h.party.begin({ prompt: 'none' })
  const { location = '' } = await createUserAgent().get(url, { cookie })
  expect(new URL(location).searchParams.get('error')).to.equal('login_required')
  expect((await h.silently(victim)).has('code')).to.equal(true)
}
