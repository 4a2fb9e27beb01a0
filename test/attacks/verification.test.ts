import { expect } from 'chai'
import { formsOf, createUserAgent } from '../support/user-agent.ts'
import { SERVER } from '../support/clients.ts'
import { suiteHarness } from '../support/harness.ts'
import { refresh, signedIn } from '../support/oauth-requests.ts'
import { expectExpired, type Person, setsSession } from '../support/person.ts'

const NEW = 'a new password'

const DESTINATIONS =
  'audio embed empty fencedframe font frame iframe image manifest object report script serviceworker ' +
  'sharedworker style track video webidentity worker xslt Document'

/** Requests in which no person looks at a page. */
const UNATTENDED: Record<string, Record<string, string>> = {
  'a prefetch': { 'sec-purpose': 'prefetch' },
  'a prerendering': { 'sec-purpose': 'prefetch;prerender' },
  'a prefetch through a proxy': { 'sec-purpose': 'prefetch;anonymous-client-ip' },
  'a prefetch in capitals': { 'sec-purpose': 'PREFETCH' },
  'an older prefetch': { purpose: 'prefetch' },
  'an older preview': { purpose: 'preview' },
  'an old prefetch of Firefox': { 'x-moz': 'prefetch' },
  'an old preview of Safari': { 'x-purpose': 'preview', purpose: 'preview' },
  ...Object.fromEntries(
    [...DESTINATIONS.split(' '), 'document, document'].map((destination) => [
      `a request for ${destination}`,
      { 'sec-fetch-dest': destination },
    ]),
  ),
}

describe('A verification link that nobody looks at (VER-01, VER-02)', () => {
  const h = suiteHarness()
  let login: Person
  /** A person with a link that signs in by itself: it was asked for by a client that needs no PKCE. */
  let loose: Person
  let other: Person

  before(async () => {
    login = await h.blockedLogin()
    loose = await h.addUnverified()
    await loose.asksAgain(SERVER)
    other = await h.addVerified()
    await other.signsIn()
  })

  const others = ['OPTIONS', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']
  type Way = [what: string, method: string, headers: Record<string, string>]
  const ways: Way[] = [
    ...['HEAD', ...others].map((method): Way => [method, method, {}]),
    ['HEAD of a page', 'HEAD', { 'sec-fetch-dest': 'document' }],
    ...Object.entries(UNATTENDED).map(([what, headers]): Way => [what, 'GET', headers]),
  ]
  for (const email_link_confirmation of ['other_browser', 'off']) {
    for (const [what, method, headers] of ways) {
      it(`changes nothing, in any browser, and shows no code: ${what}, ${email_link_confirmation}`, async () => {
        await h.put({ email_link_confirmation })
        const session = h.sessionId(other.agent)
        for (const person of [login, loose]) {
          for (const agent of [login.agent, createUserAgent(), other.agent]) {
            const answer = await agent.request(method, person.link, { headers })
            // No browser keeps an answer of this status for the page that its person opens.
            expect(answer.status).to.equal(others.includes(method) ? 405 : 403)
            expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
            expect(answer.text).to.not.include(login.code)
            expect(await person.isVerified()).to.equal(false)
          }
        }
        expect(h.sessionId(login.agent)).to.equal(undefined)
        expect(h.sessionId(other.agent)).to.equal(session)
      })
    }
  }

  it('does all of its work afterwards, also by the button of what was fetched ahead; a session says where the mailbox alone began it (VER-07)', async () => {
    expect(await other.account()).to.equal(other.id)
    const ahead = await login.agent.get(login.link, { purpose: 'prefetch' })
    const query = new URLSearchParams(formsOf(ahead)[0]?.fields)
    await login.comesBack(await login.agent.get(`${h.oauthUrl}/verify-email?${query}`))
    expectExpired(await login.agent.get(login.link, { purpose: 'prefetch' }))
    const answer = await loose.opensLink()
    expect(answer.location).to.match(/^https:\/\/server\.example\/cb\?code=/)
    expect(await loose.isVerified()).to.equal(true)
    const session = await h.sessionOf(loose.agent)
    expect([session?.accountId, session?.amr]).to.deep.equal([loose.id, ['email']])
  })
})

describe('require_email_verification and what was there before', () => {
  const h = suiteHarness({ settings: { require_email_verification: 'false' } })

  const require = (value: 'true' | 'false') => h.put({ require_email_verification: value })

  // Section 4.8 is about the login; what was granted before it was switched on goes on until it ends.
  it('leaves refresh tokens alone that were given before', async () => {
    await require('false')
    const { id, tokens } = await signedIn(h, await h.addUnverified())
    await require('true')
    expect(await refresh(h, tokens.refresh_token)).to.equal('tokens')
    await h.flows.endSessions(id)
    expect(await refresh(h, tokens.refresh_token)).to.equal('invalid_grant')
  })

  it('decides nothing about links: those of either kind work whatever it is meanwhile', async () => {
    for (const meanwhile of ['true', 'false'] as const) {
      await require('true')
      const [login, user] = [await h.blockedLogin(), await h.addUnverified()]
      const link = await user.forgets()
      await require(meanwhile)
      await login.stillGetsIn()
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      expect(await user.isVerified()).to.equal(false)
    }
  })
})
