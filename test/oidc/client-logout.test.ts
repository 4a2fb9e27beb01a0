import type { Person } from '../support/person.ts'
import { expect } from 'chai'
import type { JWTPayload } from 'jose'
import type { AuditEventOf } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import type { Harness } from '../support/harness.ts'
import {
  allTold,
  logoutsOf,
  signInAt,
  startLogoutClient,
  telling,
  verified,
  type LogoutClient,
} from '../support/logout-clients.ts'
import { eventsOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { OFFLINE } from '../support/oauth-requests.ts'
import { addVerified } from '../support/person.ts'

const NOBODY: JWTPayload = {}
const NEW = 'a brand new password'
const SID = { backchannel_logout_session_required: true }

onBothStores('Clients are told that an account is ended', (technology) => {
  const clients: Record<string, LogoutClient> = {}
  const client = (name: string) => {
    const found = clients[name]
    if (!found) throw new Error(name)
    return found
  }
  const h: Harness = suiteHarness(async () => {
    for (const [name, metadata] of Object.entries({
      plain: {},
      'with-sid': SID,
      pairwise: { ...SID, subject_type: 'pairwise' as const },
      'no-uri': { backchannel_logout_uri: undefined },
    }))
      clients[name] = await startLogoutClient(name, metadata)
    return telling(Object.values(clients), { technology })
  })
  after(() => Promise.all(Object.values(clients).map(({ close }) => close())))
  beforeEach(() => {
    for (const { tokens } of Object.values(clients)) tokens.length = 0
  })

  const claimsAt = (name: string) =>
    Promise.all(client(name).tokens.map((token) => verified(h, client(name), token)))

  const statesOf = async (user: Person) =>
    (await logoutsOf(h, user)).map(({ clientId, state }) => `${clientId} ${state}`).toSorted()

  const toldOf = (user: Person) =>
    user
      .events('client_logout_sent')
      .map(
        ({ clientId, details }: AuditEventOf<'client_logout_sent'>) =>
          `${clientId} ${details.attempts}`,
      )

  async function signedInEverywhere() {
    const user = await addVerified(h)
    const agent = createUserAgent()
    const at: Record<string, Awaited<ReturnType<typeof signInAt>>> = {}
    for (const name of Object.keys(clients)) at[name] = await signInAt(h, client(name), user, agent)
    return { user, at }
  }

  it('by a reset: once each, with the subject and the session that they know (SES-16)', async () => {
    const { user, at } = await signedInEverywhere()
    const other = await addVerified(h)
    await signInAt(h, client('plain'), other)
    expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')
    await allTold(h, user)

    const [plain, ...more] = await claimsAt('plain')
    expect(more).to.deep.equal([])
    expect(plain).to.include({ sub: user.id }).and.not.to.have.property('sid')
    for (const name of ['with-sid', 'pairwise']) {
      const { sub, sid } = at[name]?.claims ?? NOBODY
      expect(sid, 'in the ID token').to.be.a('string')
      expect((await claimsAt(name)).map(({ sub, sid }) => ({ sub, sid }))).to.deep.equal([
        { sub, sid },
      ])
    }
    expect((await claimsAt('pairwise'))[0]?.sub).to.equal(`${user.id} at pairwise`)
    const states = ['no-uri untold', 'pairwise sent', 'plain sent', 'with-sid sent']
    expect(await statesOf(user)).to.deep.equal(states)
    expect(toldOf(user)).to.have.members(['plain 1', 'with-sid 1', 'pairwise 1'])
    expect(eventsOf(h, 'client_logout_failed')).to.deep.equal([])
    expect(await logoutsOf(h, other)).to.deep.equal([])
  })

  it('by flows.endSessions: of each session where they ask for that, and never of another account', async () => {
    const [ann, bob] = [await addVerified(h), await addVerified(h)]
    const sids: unknown[] = []
    for (let browser = 0; browser < 2; browser += 1) {
      const { agent, claims } = await signInAt(h, client('with-sid'), ann)
      await signInAt(h, client('plain'), ann, agent)
      sids.push(claims['sid'])
    }
    await signInAt(h, client('with-sid'), bob)
    await h.flows.endSessions(ann.id)
    await allTold(h, ann)
    const told = await claimsAt('with-sid')
    expect(told.map(({ sid }) => sid)).to.have.members(sids)
    expect(told.map(({ sub }) => sub)).to.deep.equal([ann.id, ann.id])
    expect(new Set(told.map(({ jti }) => jti)).size).to.equal(2)
    expect(client('plain').tokens).to.have.length(1)
    await h.flows.endSessions(ann.id)
    expect(await statesOf(ann)).to.deep.equal(['plain sent', 'with-sid sent', 'with-sid sent'])
    expect(client('with-sid').tokens).to.have.length(2)
  })

  it('of a session that is over at the provider, where a refresh token is left', async () => {
    const user = await addVerified(h)
    for (const name of ['plain', 'with-sid']) {
      const agent = createUserAgent()
      await signInAt(h, client(name), user, agent, OFFLINE)
      const [, id = ''] = /_session=([^;]+)/.exec(agent.cookiesFor(h.oauthUrl)) ?? []
      const session = await h.provider.Session.find(id)
      expect(session?.accountId).to.equal(user.id)
      await session?.destroy()
    }
    await h.flows.endSessions(user.id)
    await allTold(h, user)
    expect(await statesOf(user)).to.deep.equal(['plain sent', 'with-sid sent'])
    const [told] = await claimsAt('with-sid')
    expect(told?.['sid']).to.be.a('string')
  })

  it('once by a reset that is posted twice at once, and at least once by two ends at once', async () => {
    const [reset, ended] = [await signedInEverywhere(), await signedInEverywhere()]
    const link = await reset.user.forgets()
    await Promise.all([h.reset(link, NEW), h.reset(link, NEW)])
    await Promise.all([h.flows.endSessions(ended.user.id), h.flows.endSessions(ended.user.id)])
    await allTold(h, reset.user)
    await allTold(h, ended.user)
    for (const name of ['plain', 'with-sid', 'pairwise']) {
      const told = await claimsAt(name)
      const subject = (at: typeof reset.at) => at[name]?.claims.sub
      const count = (sub: unknown) => told.filter((each) => each.sub === sub).length
      expect(count(subject(reset.at)), name).to.equal(1)
      expect(count(subject(ended.at)), name).to.be.within(1, 2)
      expect(new Set(told.map(({ jti }) => jti)).size).to.equal(told.length)
    }
  })
})
