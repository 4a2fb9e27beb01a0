import { expect } from 'chai'
import type { AdapterFactory } from 'oidc-provider'
import { createAdminClient, type User } from '../../src/index.ts'
import { actionsOf, codeOf, suiteAdmin, withDeleted } from '../support/admin-calls.ts'
import { accountOf, addUnverified, blockedLogin, resend } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { ADMIN_TOKEN, type Harness } from '../support/harness.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { isIdle } from '../support/jobs.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a brand new password'
const SUPPORT = 'account-flows:support'
const SUPPORT_TOKEN = 'a token of support'.padEnd(40, '-').replaceAll(' ', '-')

/** Where something about an account may be; session cut-offs stay, with its id and times. */
const COLLECTIONS = [
  'audit_events',
  'mail_outbox',
  'password_reset_tokens',
  'email_verification_tokens',
  'pending_logins',
  'client_logouts',
  'rate_limits',
]

onBothStores('Forgetting an account (5)', (technology) => {
  const answers = new Map<string, MailAnswer>()
  const h = suiteHarness({
    technology,
    mail: { answer: (to) => answers.get(to) ?? 'take' },
    // One that cannot delete: what was ended is dead by the cut-off alone.
    adapter: withoutDeleting,
    flows: { adminToken: [ADMIN_TOKEN, { token: SUPPORT_TOKEN, scopes: [SUPPORT] }] },
  })
  const admin = suiteAdmin(h)

  /** Everything that our collections hold, as one text. */
  async function stored(): Promise<string> {
    const all: unknown[] = [
      await admin.listAudit({ limit: 1000 }),
      await admin.listOutbox({ limit: 1000 }),
    ]
    for (const name of h.db ? COLLECTIONS : []) {
      all.push(name, await h.db?.collection(name).find().toArray())
    }
    return JSON.stringify(all)
  }

  let named = 0

  /** Has waited for a link, was verified, has reset its password, and has a dead letter. */
  async function busy(): Promise<User> {
    named += 1
    const blocked = await addUnverified(h, { id: `id-of-somebody-busy-${named}` })
    const { user } = await blockedLogin(h, { user: blocked })
    await createUserAgent().get(await resend(h, user))
    expect((await h.reset(await h.resetLink(user), NEW)).mode).to.equal('done')
    answers.set(user.email ?? '', 'refuse')
    await admin.sendReset({ id: user.id })
    await isIdle(h)
    answers.delete(user.email ?? '')
    return user
  }

  it('erases its mails, links, logins that wait and events, and nothing of anybody else; told in numbers (LOG-12)', async () => {
    const [ann, bob] = [await busy(), await busy()]
    const statusOf = ({ id }: User) => admin.userStatus({ id })
    const other = await statusOf(bob)
    const before = await stored()
    expect(before).to.include(ann.id)
    if (h.db) expect(before).to.include(ann.email)

    const erased = await admin.forgetUser({ id: ann.id })
    const after = await stored()
    for (const known of [ann.id, ann.email ?? ann.id]) expect(after).not.to.include(known)
    expect(erased).to.include({ mails: 1, reset_links: 2, verification_links: 2, under_way: 0 })
    expect(erased.waiting_logins).to.equal(1)
    expect(erased.events).to.be.at.least(5)

    const { links, mails } = await statusOf(bob)
    expect({ links, mails }).to.deep.equal({ links: other.links, mails: other.mails })
    expect((await statusOf(bob)).events).to.deep.include.members(other.events.slice(0, 5))
    expect((await admin.forgetUser({ id: ann.id })).events).to.equal(0)
    expect((await h.signIn(createUserAgent(), ann.username, NEW)).location).to.include('code=')
  })

  it('ends its live link, and lets it ask for another one', async () => {
    const user = await h.addUser({ username: 'with-a-link' })
    const link = await h.resetLink(user)
    await admin.forgetUser({ id: user.id })
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    expect((await h.reset(await h.resetLink(user), NEW)).mode).to.equal('done')
  })

  it('brings nothing back that was ended (LOG-12)', async () => {
    const user = await h.addUser({ username: 'signed-in' })
    const agent = createUserAgent()
    expect((await h.signIn(agent, user.username)).location).to.include('code=')
    expect(await accountOf(h, agent)).to.equal(user.id)
    await admin.endSessions({ id: user.id })
    expect(await accountOf(h, agent)).to.equal(undefined)
    await admin.forgetUser({ id: user.id })
    expect(await accountOf(h, agent)).to.equal(undefined)
    expect((await admin.userStatus({ id: user.id })).idp_sessions_ended_at).to.be.a('string')
  })

  it('is recorded with who did it, and with a keyed hash in place of the id (LOG-12)', async () => {
    const [one, other] = [
      await h.addUser({ username: 'one', id: 'id-of-one' }),
      await h.addUser({ username: 'two', id: 'id-of-two' }),
    ]
    const hashes: unknown[] = []
    for (const { id } of [one, one, other]) {
      await admin.forgetUser({ id })
      const action = actionsOf(h, 'user_forget').at(-1)
      expect(action).to.not.have.property('accountId', id)
      expect(action?.details).to.include({ actor: 'admin_token' })
      expect(JSON.stringify(action)).not.to.include(id)
      hashes.push(action?.details?.['account_hash'])
    }
    expect(hashes[0]).to.be.a('string').and.equal(hashes[1]).and.not.equal(hashes[2])
    const recorded = await admin.listAudit({ type: ['admin_action'], limit: 3 })
    expect(recorded.events.map(({ details }) => details?.['account_hash'])).to.deep.equal(
      hashes.toReversed(),
    )
  })

  it('keeps what support did to it, and who: support cannot erase its own traces (LOG-12)', async () => {
    const { id } = await h.addUser({ username: 'dear', id: 'id-of-somebody-dear' })
    const support = createAdminClient(h.baseUrl, SUPPORT_TOKEN)
    await support.sendReset({ id })
    await isIdle(h)
    await support.endSessions({ id })
    const listed = () => admin.listAudit({ type: ['admin_action'], limit: 2 })
    const before = (await listed()).events
    expect(before.map(({ account_id }) => account_id)).to.deep.equal([id, id])

    await support.forgetUser({ id })
    const { events } = await admin.listAudit({ type: ['admin_action'], limit: 3 })
    const [forgotten, ...kept] = events
    const account_hash = forgotten?.details?.['account_hash']
    expect(account_hash).to.be.a('string')
    expect(kept).to.deep.equal(
      before.map(({ account_id: _id, username: _name, details, ...event }) => ({
        ...event,
        details: { ...details, account_hash },
      })),
    )
    expect(events.map(({ details }) => [details?.['action'], details?.['actor']])).to.deep.equal(
      ['user_forget', 'end_sessions', 'send_reset'].map((a) => [a, 'admin_token:support']),
    )
    expect(await stored()).not.to.include(id)
    expect((await admin.listAudit({ account_id: id })).events).to.deep.equal([])

    await support.forgetUser({ id: String(account_hash) })
    const after = await admin.listAudit({ type: ['admin_action'], limit: 4 })
    expect(after.events.slice(1)).to.deep.equal(events)
    expect((await support.sendReset({ id })).mail_id).to.be.a('string')
  })

  it('takes an id alone, and an unknown one has nothing to erase', async () => {
    const links = { reset_links: 0, verification_links: 0, invitation_links: 0, not_me_links: 0 }
    const zeros = { mails: 0, ...links, waiting_logins: 0, client_logouts: 0 }
    expect(await admin.forgetUser({ id: 'no such id' })).to.deep.equal({
      ...zeros,
      events: 0,
      under_way: 0,
    })
    // @ts-expect-error: a username is not taken for an id
    expect(await codeOf(admin.forgetUser({ user: 'one' }))).to.deep.equal([400, 'invalid_request'])
    expect(await codeOf(admin.forgetUser({ id: '' }))).to.deep.equal([400, 'invalid_request'])
  })
})

describe('Forgetting an account whose user is gone (5)', () => {
  const deleted = new Set<string>()
  const h: Harness = suiteHarness({ flows: { users: withDeleted(() => h.users, deleted) } })
  const admin = suiteAdmin(h)

  it('erases what is left of it, and takes no other account for it', async () => {
    const gone = await h.addUser({ username: 'gone' })
    const named = await h.addUser({ username: gone.id })
    for (const user of [gone, named]) await h.resetLink(user)
    await isIdle(h)
    deleted.add(gone.id)
    expect(await codeOf(admin.endSessions({ id: gone.id }))).to.deep.equal([404, 'unknown_account'])
    const events = async (id: string) => (await admin.listAudit({ account_id: id })).events.length
    const ofNamed = await events(named.id)
    const erased = await admin.forgetUser({ id: gone.id })
    expect(erased).to.include({ reset_links: 1, under_way: 0 })
    expect(await events(gone.id)).to.equal(0)
    expect(await events(named.id)).to.equal(ofNamed)
    expect((await admin.userStatus({ id: named.id })).links).to.have.length(1)
  })
})

function withoutDeleting(adapter: AdapterFactory): AdapterFactory {
  return (model) => {
    const { upsert, find, findByUid, findByUserCode, consume, destroy, revokeByGrantId } =
      adapter(model)
    return { upsert, find, findByUid, findByUserCode, consume, destroy, revokeByGrantId }
  }
}
