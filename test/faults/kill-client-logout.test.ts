import { expect } from 'chai'
import { opensForm, PASSWORD } from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import type { Topology } from '../support/mongod.ts'
import { sha256 } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'
import {
  logoutClient,
  signedInAt,
  signInAt,
  type LogoutClient,
  type ToldToken,
} from '../oidc/real-clients.ts'
import { several } from './load.ts'
import { scaled, startService, type Service } from './servers.ts'
import {
  describeOnBothTopologies,
  type Fault,
  type KillMoment,
  momentsAround,
  nameOf,
  part,
  randomTimes,
  type Round,
  SETTLED_WITHIN_MS,
  stepsOf,
  tellRounds,
} from './rounds.ts'
import { addPerson, answered, linkFor, postReset } from './people.ts'

/** At each of the two servers. The steps and the door bring it to more than a hundred in all. */
const RANDOM_ROUNDS = scaled({ full: 50, short: 1 })
const RANDOM_WITHIN_MS = 150
const SHARED_ROUNDS = scaled({ full: 15, short: 2 })
const NEW_PASSWORD = 'the password of the form'

/** At the door of the client: its token never reaches it; or it ends its session, and nobody is there to hear it. */
const DOOR = { 'token lost': 'before', 'token unanswered': 'after' } as const

type Place = Service & { client: LogoutClient }

/** A person who is signed in at the client, and posts the form of a reset to a process that is killed. */
interface LogoutRound extends Round<Place> {
  link: string
  /** How often it was tried to tell the client, when the process died last. */
  tried: number
  /** It is written down that the client was told. */
  isSent: boolean
}

interface LogoutDocument {
  _id: string
  account_id: string
  state: string
  attempts: number
  /** Why an attempt failed. Here: the machine was slow, or the client could not ask a dead process for its keys. */
  reason: string | null
}

const toldOf = ({ at, person }: LogoutRound): ToldToken[] =>
  at.client.told.filter(({ claims }) => claims.sub === person.id)

const logoutsOf = ({ at, person }: LogoutRound) =>
  at.database.db
    .collection<LogoutDocument>('client_logouts')
    .find({ account_id: person.id })
    .toArray()

const isSignedOut = async ({ at, person }: LogoutRound) =>
  (await signedInAt(at.client, person.agent)) === undefined

describeOnBothTopologies('Clients of an account whose process is killed (FLT-24)', () => {
  const { services, rounds, count, deaths, fault, faults, die } = tellRounds({
    title: 'Logouts of clients',
    start,
    plan,
    prepare,
    kill,
    arm: atDoor,
    afterwards: (at, index) => (index === 0 ? playShared(at) : Promise.resolve()),
    validate,
  })

  after(async () => {
    for (const { client } of services) await client.stop()
  })

  async function start(topology: Topology): Promise<Place> {
    const client = await logoutClient('openid-client')
    const settings = { password_changed_email: 'false' }
    const at = await startService({ topology, settings, clients: [client.metadata] })
    await client.start(at.oauthUrl)
    return Object.assign(at, { client })
  }

  async function prepare(at: Place, moment: KillMoment): Promise<LogoutRound> {
    const person = await addPerson(at)
    const credentials = { username: person.username, password: PASSWORD }
    await again(() => signInAt(at.client, person.agent, credentials))
    const link = await again(() => linkFor(at, person))
    const title = `${at.topology}, killed ${nameOf(moment)}`
    return { title, at, person, moment, link, tried: 0, isSent: false }
  }

  /** On a slow machine a connection that was kept may be closed as it is used once more. */
  const again = async <T>(work: () => Promise<T>) => (await answered(work())) ?? work()

  const idsOf = ({ person, link }: LogoutRound) => [person.id, sha256(tokenOf(link))]

  /** One reset that nobody disturbs, until its client was told, and that was written down. */
  async function plan(at: Place): Promise<(index: number) => KillMoment[]> {
    const round = await prepare(at, 'never')
    const steps = await stepsOf(at.proxy, idsOf(round), async () => {
      expect((await postReset(at, round.link, NEW_PASSWORD)).mode).to.equal('done')
      await eventually('written down', async () => (await logoutOf(round))?.state === 'sent')
    })
    expect(toldOf(round)).to.have.length(1)
    expect(await isSignedOut(round)).to.equal(true)
    const moments = momentsAround(steps.filter(({ collection }) => collection !== 'mail_outbox'))
    return (index) => [
      ...part(moments, index, 2),
      ...Object.keys(DOOR),
      ...randomTimes(RANDOM_ROUNDS, RANDOM_WITHIN_MS),
    ]
  }

  async function logoutOf(round: LogoutRound): Promise<LogoutDocument | undefined> {
    const [logout, ...more] = await logoutsOf(round)
    expect(more, round.title).to.deep.equal([])
    return logout
  }

  async function kill(round: LogoutRound): Promise<void> {
    const { at, link } = round
    await die(round, idsOf(round), () => postReset(at, link, NEW_PASSWORD))
    rounds.push(round)
    await lookBetweenDeaths(at, 1)
    await at.restart()
  }

  /** Whatever an earlier death left is tried once more, by each process that lived meanwhile, and not once it is written down. */
  async function lookBetweenDeaths(at: Place, processes: number): Promise<void> {
    const open = rounds.filter((round) => round.at === at && !round.isSent)
    await several(open, 8, (round) => look(round, processes))
  }

  async function look(round: LogoutRound, processes: number): Promise<void> {
    const { attempts = 0, state, reason } = (await logoutOf(round)) ?? {}
    const tries = attempts - round.tried
    const isTooMany = tries > (round.isSent ? 0 : processes) && !reason
    fault(round, isTooMany, 'logout too many', `tried ${tries} times between two deaths`)
    round.tried = attempts
    round.isSent = state === 'sent'
  }

  function atDoor({ at, person }: LogoutRound, name: string) {
    const { door } = at.client
    const when = DOOR[name as keyof typeof DOOR]
    const open = () => (door[when] = undefined)
    door[when] = async ({ claims }) => {
      if (claims.sub !== person.id) return
      open()
      await at.kill()
      throw new Error('nobody is there any more')
    }
    return open
  }

  /** Another process works on the same database, and goes on. */
  async function playShared(at: Place): Promise<void> {
    const other = await at.another()
    try {
      for (const moment of randomTimes(SHARED_ROUNDS, RANDOM_WITHIN_MS)) {
        const both = await several([0, 1], 2, () => prepare(at, moment))
        const [one, two] = both as [LogoutRound, LogoutRound]
        const posting = answered(postReset(other, two.link, NEW_PASSWORD))
        await die(one, idsOf(one), () => postReset(at, one.link, NEW_PASSWORD))
        await posting
        rounds.push(...both)
        await lookBetweenDeaths(at, 2)
        // The other one goes on with what it holds.
        await at.start()
      }
    } finally {
      await other.kill()
    }
    expect(at.client.told.length).to.be.greaterThan(0)
  }

  async function validate(round: LogoutRound): Promise<void> {
    const { at, link, title } = round
    const wrong = (is: boolean, kind: Fault, what: string) => fault(round, is, kind, what)

    // Who saw no answer tries again.
    const isBegun = !(await opensForm(link))
    count(isBegun ? 'begun' : 'not begun')
    if (!isBegun) {
      wrong((await logoutsOf(round)).length > 0, 'logout too many', 'asked for without a reset')
      wrong(await isSignedOut(round), 'logout too many', 'told without a reset')
      const again = await answered(postReset(at, link, NEW_PASSWORD))
      wrong(again?.mode !== 'done', 'half done', 'the link does not work')
    }
    const isOver = async () => (await logoutOf(round))?.state === 'sent' && isSignedOut(round)
    await eventually(`signed out: ${title}`, isOver, SETTLED_WITHIN_MS).catch((error: unknown) =>
      wrong(true, 'lost logout', String(error)),
    )
    await look(round, 2)
    const { reason } = (await logoutOf(round)) ?? {}
    const told = toldOf(round)
    const statuses = told.map(({ status }) => status).join()
    count(`told ${told.length}${reason ? ` after ${reason}` : ''}`)
    const { tried } = round
    wrong(told.length > tried, 'logout too many', `told ${statuses}, and tried ${tried} times`)
    const ids = new Set(told.map(({ claims }) => claims.jti))
    wrong(ids.size < told.length, 'logout too many', 'the same token twice')
    wrong(told.at(-1)?.status !== 204, 'lost logout', `the client answered ${statuses}`)
  }

  it('are told in the end, whenever the process died', () => {
    expect(faults('lost logout', 'half done', 'missed moment')).to.deep.equal([])
    expect(deaths()).to.be.greaterThan(scaled({ full: 100, short: 8 }))
  })

  it('are told again only where that they know was not written down, and with a token of its own', () => {
    expect(faults('logout too many')).to.deep.equal([])
  })
})
