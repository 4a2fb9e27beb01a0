import { createHash } from 'node:crypto'
import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import { eventually } from '../support/eventually.ts'
import { CLIENT, onEachStore, PASSWORD, suiteHarness } from '../support/harness.ts'
import type { Person } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import {
  LOGOUT_CLIENTS,
  logoutClient,
  type LogoutClient,
  type LogoutClientKind,
  signedInAt,
  signInAt,
} from './real-clients.ts'

const NEW = 'a new password, longer'

/** How a client may be registered, by what is added to its name. */
const REGISTERED: Record<string, Partial<ClientMetadata>> = {
  '': {},
  '-sid': { backchannel_logout_session_required: true },
  '-pairwise': { subject_type: 'pairwise' },
}

onEachStore('Clients that others wrote are signed out [full]', (technology) => {
  const clients: LogoutClient[] = []
  const h = suiteHarness(async () => {
    for (const kind of Object.keys(LOGOUT_CLIENTS) as LogoutClientKind[]) {
      for (const [name, more] of Object.entries(REGISTERED)) {
        clients.push(await logoutClient(kind, { ...more, client_id: kind + name }))
      }
    }
    return {
      technology,
      clients: [CLIENT, ...clients.map(({ metadata }) => metadata)],
      provider: {
        features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
        subjectTypes: ['public', 'pairwise'],
        pairwiseIdentifier: (_ctx, accountId, client) =>
          createHash('sha256').update(`${client.clientId} ${accountId}`).digest('hex'),
      },
      flows: { clientLogout: { allowPrivateNetworks: true } },
    }
  })
  before('the clients run', async () => {
    for (const client of clients) await client.start(h.oauthUrl)
  })
  after(async () => {
    for (const client of clients) await client.stop()
  })

  /** Signed in at all these clients, in one browser of the person. */
  async function signInEverywhere({ username }: Person, password = PASSWORD) {
    const agent = createUserAgent()
    const subs = new Map<string, string>()
    for (const client of clients) {
      subs.set(client.metadata.client_id, await signInAt(client, agent, { username, password }))
    }
    return { agent, subs }
  }

  /** The clients that have a session of this browser. */
  async function signedIn(agent: UserAgent): Promise<string[]> {
    const subs = await Promise.all(clients.map((client) => signedInAt(client, agent)))
    return all().filter((_, index) => subs[index] !== undefined)
  }

  /** A client that this machine, which may have much to do, kept from answering in time is told again later, as any other. */
  async function signedOut(agent: UserAgent) {
    const failures = () => h.eventsOf('client_logout_failed').length
    let known = failures()
    await eventually('signed out at the clients', async () => {
      if ((await signedIn(agent)).length === 0) return true
      // One that timed out rests for a minute.
      if (failures() > known) await moveTime(61_000)
      known = failures()
      return false
    })
  }

  const all = () => clients.map(({ metadata }) => metadata.client_id)

  /** What was told of this `sub` since. */
  const toldOf = ({ told }: LogoutClient, sub: string | undefined) =>
    told.filter(({ claims }) => claims.sub === sub)

  it('after a reset: in every browser of the account, and in none of another one', async () => {
    const [ann, bob] = [await h.addVerified(), await h.addVerified()]
    const first = await signInEverywhere(ann)
    const second = await signInEverywhere(ann)
    const other = await signInEverywhere(bob)
    expect(await signedIn(first.agent)).to.deep.equal(all())
    await ann.getsBackIn(NEW)
    await signedOut(first.agent)
    await signedOut(second.agent)
    expect(await signedIn(other.agent)).to.deep.equal(all())
    for (const client of clients) {
      const { client_id: name, subject_type: type } = client.metadata
      const told = toldOf(client, first.subs.get(name))
      const hasSid = name.endsWith('-sid')
      const answers = told.map(({ status }) => status)
      expect(answers, name).to.deep.equal(hasSid ? [204, 204] : [204])
      const sids = told.map(({ claims }) => claims['sid'])
      expect(new Set(sids), name).to.have.property('size', told.length)
      expect(sids.every((sid) => (typeof sid === 'string') === hasSid)).to.equal(true)
      expect(first.subs.get(name) === ann.id, name).to.equal(type !== 'pairwise')
      expect(toldOf(client, other.subs.get(name)), name).to.deep.equal([])
    }
  })

  it('for good: a window that nobody looked at stays ended when the person is back, where sessions are compared', async () => {
    const user = await h.addVerified()
    const [before, beside] = [await signInEverywhere(user), await signInEverywhere(user)]
    await user.getsBackIn(NEW)
    await signedOut(beside.agent)
    const back = await signInEverywhere(user, NEW)
    expect(await signedIn(back.agent)).to.deep.equal(all())
    // Without a sid it notes the account, and forgets that at its next login (docs/clients.md).
    expect(await signedIn(before.agent)).to.deep.equal([
      'express-openid-connect',
      'express-openid-connect-pairwise',
    ])
  })
})
