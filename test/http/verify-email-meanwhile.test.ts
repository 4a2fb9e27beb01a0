import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Adapter, ClientMetadata } from 'oidc-provider'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  changeUser,
  expectExpired,
  expectNothingChanged,
  expectOnlyVerified,
  expectResumed,
  expectStillWorks,
  isVerified,
  resend,
  sessionId,
  setsSession,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { createUserAgent } from '../support/user-agent.ts'

const URI = 'https://dynamic.example/cb'

onBothStores('A verification link after something changed meanwhile (4.6)', (technology) => {
  let harness: Harness
  let registered = 0

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  /** A client in the adapter, as dynamic registration leaves it. */
  async function register() {
    registered += 1
    const metadata: ClientMetadata = {
      ...CLIENT,
      client_id: `dynamic-${registered}`,
      redirect_uris: [URI],
    }
    const { adapter } = harness.provider.Client as unknown as { adapter: Adapter }
    const change = (changes: ClientMetadata) =>
      adapter.upsert(metadata.client_id, { ...metadata, ...changes }, 3600)
    await change({ client_id: metadata.client_id })
    const clientId = metadata.client_id
    const party = await createRelyingParty(harness.oauthUrl, { clientId, redirectUri: URI })
    return { clientId, party, change, remove: () => adapter.destroy(clientId) }
  }

  it('verifies, and redirects nowhere, once the redirect URI is no longer the client’s (RED-05)', async () => {
    const { clientId, party, change } = await register()
    const login = await blockedLogin(harness, { party })
    await change({ client_id: clientId, redirect_uris: [`${URI}/`] })
    await expectOnlyVerified(harness, login, await login.agent.get(login.link))
  })

  it('verifies, and redirects nowhere, once the client is gone (RED-05)', async () => {
    const { party, remove } = await register()
    const login = await blockedLogin(harness, { party })
    await remove()
    await expectOnlyVerified(harness, login, await login.agent.get(login.link))
  })

  it('verifies, and redirects nowhere, once the client may no longer ask for a code', async () => {
    const { clientId, party, change } = await register()
    const login = await blockedLogin(harness, { party })
    const machine = { grant_types: ['client_credentials'], response_types: [] }
    const secret = { client_secret: 'a secret', token_endpoint_auth_method: 'client_secret_basic' }
    await change({ client_id: clientId, ...machine, ...secret } as ClientMetadata)
    await expectOnlyVerified(harness, login, await login.agent.get(login.link))
  })

  it('finishes the login of a client that only changed its name', async () => {
    const { clientId, party, change } = await register()
    const login = await blockedLogin(harness, { party })
    await change({ client_id: clientId, client_name: 'Another name' })
    await expectStillWorks(harness, login)
  })

  it('is expired while the account is disabled', async () => {
    const login = await blockedLogin(harness)
    await changeUser(harness, login.user, { disabled: true })
    const answer = await login.agent.get(login.link)
    expectExpired(answer)
    await expectNothingChanged(harness, login, answer)
    await changeUser(harness, login.user, { disabled: false })
    await expectStillWorks(harness, login)
  })

  if (technology === 'mongodb') {
    it('is expired once the account is deleted', async () => {
      const login = await blockedLogin(harness)
      await harness.db?.collection<{ _id: string }>('users').deleteOne({ _id: login.user.id })
      const answer = await login.agent.get(login.link)
      expectExpired(answer)
      await expectNothingChanged(harness, login, answer)
    })
  }

  it('is expired once the address is another one, and never verifies that (RACE-06)', async () => {
    const login = await blockedLogin(harness)
    await changeUser(harness, login.user, { email: 'another@users.example' })
    const answer = await login.agent.get(login.link)
    expectExpired(answer)
    await expectNothingChanged(harness, login, answer)
    await changeUser(harness, login.user, { email: login.user.email })
    await expectStillWorks(harness, login)
  })

  it('is expired once the password was reset, and a fresh link verifies (SES-14)', async () => {
    const login = await blockedLogin(harness)
    const reset = await harness.reset(await harness.resetLink(login.user), 'a brand new password')
    expect(reset.mode).to.equal('done')
    const answer = await login.agent.get(login.link)
    expectExpired(answer)
    await expectNothingChanged(harness, login, answer)
    const fresh = await resend(harness, login.user)
    await expectOnlyVerified(harness, login, await login.agent.get(fresh))
  })

  it('is expired, with an option to ask for a new link, once another link of the user was used (VER-06)', async () => {
    const user = await addUnverified(harness)
    const leftover = await blockedLogin(harness, { user })
    const used = await blockedLogin(harness, { user })
    await expectStillWorks(harness, used)
    const answer = await leftover.agent.get(leftover.link)
    expectExpired(answer)
    expect(answer.text).to.include('name="username"')
    expect(sessionId(harness, leftover.agent)).to.equal(undefined)
  })

  it('says verified, without session and code, once an admin verified the account (TOK-22)', async () => {
    const login = await blockedLogin(harness)
    await changeUser(harness, login.user, { emailVerified: true })
    for (const _time of [1, 2]) {
      await expectOnlyVerified(harness, login, await login.agent.get(login.link))
    }
  })

  it('verifies without session and code once everything of the account was ended', async () => {
    const login = await blockedLogin(harness)
    await harness.flows.endSessions(login.user.id)
    await expectOnlyVerified(harness, login, await login.agent.get(login.link))
    expectExpired(await login.agent.get(login.link))
  })

  it('finishes a login that began after everything of the account was ended', async () => {
    const user = await addUnverified(harness)
    await harness.flows.endSessions(user.id)
    await expectStillWorks(harness, await blockedLogin(harness, { user }))
  })

  it('works after require_email_verification was switched off', async () => {
    const login = await blockedLogin(harness)
    await harness.put({ require_email_verification: 'false' })
    await expectStillWorks(harness, login)
    await harness.put({ require_email_verification: 'true' })
  })

  it('leaves other accounts as they are', async () => {
    const other = await addVerified(harness)
    const bystander = createUserAgent()
    await harness.signIn(bystander, other.username)
    const waiting = await blockedLogin(harness)
    await expectStillWorks(harness, await blockedLogin(harness))
    expect(await accountOf(harness, bystander)).to.equal(other.id)
    await expectStillWorks(harness, waiting)
  })

  it('is expired at the end of email_verification_expiration (TOK-06)', async () => {
    await harness.put({ email_verification_expiration: '1s' })
    const login = await blockedLogin(harness)
    await harness.put({ email_verification_expiration: '24h' })
    await sleep(1_100)
    const answer = await login.agent.get(login.link)
    expectExpired(answer)
    await expectNothingChanged(harness, login, answer)
    const fresh = await resend(harness, login.user, answer.hidden)
    expect((await login.agent.get(fresh)).status).to.equal(302)
    expect(await isVerified(harness, login.user)).to.equal(true)
  })

  // The database removes what is past its purge_at; that must decide nothing (D4, D12).
  it('is expired, and a fresh link from its page finishes the same login', async () => {
    await harness.put({ email_verification_expiration: '1s' })
    const login = await blockedLogin(harness)
    await harness.put({ email_verification_expiration: '24h' })
    await sleep(3_000)
    const expired = await login.agent.get(login.link)
    expectExpired(expired)
    const fresh = await resend(harness, login.user, expired.hidden)
    await expectResumed(harness, login, await login.agent.get(fresh))
  })

  it('verifies, then asks for the password again, once max_age has passed since its check', async () => {
    const login = await blockedLogin(harness, { extra: { max_age: '1' } })
    await sleep(2_100)
    const other = createUserAgent()
    const answer = await other.get(login.link)
    expect(answer.status).to.equal(302)
    expect(answer.location).to.match(/\/login\?interaction=/)
    expect(await isVerified(harness, login.user)).to.equal(true)
    expect(setsSession(answer)).to.equal(false)

    const page = await harness.follow(other, answer)
    expect([page.page, page.mode]).to.deep.equal(['login', 'login'])
    const { username } = login.user
    const form = { username, password: 'correct horse battery' }
    const back = await harness.follow(other, await other.post(page.url, form))
    expect((await login.party.exchange(login.request, back.location ?? '')).claims()?.sub).to.equal(
      login.user.id,
    )
  })

  it('asks nobody again while max_age has not passed', async () => {
    await expectStillWorks(harness, await blockedLogin(harness, { extra: { max_age: '600' } }))
  })
})
