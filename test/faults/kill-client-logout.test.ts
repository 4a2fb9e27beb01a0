import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import {
  logoutClient,
  signedInAt,
  signInAt,
  type LogoutClient,
  type ToldToken,
} from '../oidc/real-clients.ts'
import { startMailServer, type MailServer } from '../support/mail-server.ts'
import { sha256, tokenOf } from '../support/observe.ts'
import { several } from '../support/several.ts'
import {
  describeOnBothTopologies,
  TOPOLOGIES,
  startKillableServer,
  type KillableServer,
  scaled,
} from './servers.ts'
import {
  createFindings,
  type Fault,
  followTrail,
  momentOf,
  momentsAround,
  nameOf,
  part,
  recordSteps,
  type Step,
  type StepMoment,
} from './rounds.ts'
import {
  addPerson,
  answered,
  forgot,
  mailed,
  OLD_PASSWORD,
  postReset,
  showsForm,
  type Person,
} from './people.ts'

/** At each of the two servers. The steps and the door bring it to more than a hundred in all. */
const RANDOM_ROUNDS = scaled({ full: 30, short: 1 })
const RANDOM_WITHIN_MS = 150
const SHARED_ROUNDS = scaled({ full: 15, short: 2 })
const PREPARED_AT_ONCE = 5
/** A limit for a broken run: leases of dead processes end long before. */
const SETTLED_WITHIN_MS = 180_000
const NEW_PASSWORD = 'the password of the form'

/** `lost`: the token never reaches the client. `unanswered`: the client ends its session, and nobody is there to hear it. */
const DOOR = ['lost', 'unanswered'] as const

/** A step of the database, a moment at the door of the client, or a time after the form was posted. */
type KillMoment = StepMoment | (typeof DOOR)[number] | number

interface Service {
  at: KillableServer
  client: LogoutClient
}

/** A person who is signed in at the client, and posts the form of a reset to a process that is killed. */
interface Round extends Service {
  title: string
  person: Person
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
  reason?: string
}

const toldOf = ({ client, person }: Pick<Round, 'client' | 'person'>): ToldToken[] =>
  client.told.filter(({ claims }) => claims.sub === person.id)

const logoutsOf = ({ at, person }: Pick<Round, 'at' | 'person'>) =>
  at.database.db
    .collection<LogoutDocument>('client_logouts')
    .find({ account_id: person.id })
    .toArray()

const isSignedOut = async ({ client, person }: Pick<Round, 'client' | 'person'>) =>
  (await signedInAt(client, person.agent)) === undefined

describeOnBothTopologies('Clients of an account whose process is killed (FLT-24)', () => {
  const findings = createFindings()
  const services: Service[] = []
  const rounds: Round[] = []
  let mail: MailServer

  before(async function () {
    this.timeout(scaled({ full: 3_600_000, short: 600_000 }))
    mail = await startMailServer()
    for (const topology of TOPOLOGIES) services.push(await startService(topology))
    const [first] = services
    if (!first) throw new TypeError('no service')
    const steps = await stepsOfReset(first)
    await Promise.all(services.map((service, index) => play(service, steps, index)))
    await several(rounds, 4, judge)
  })

  after(async function () {
    this.timeout(60_000)
    console.log(findings.summary('Logouts of clients'))
    for (const { at, client } of services) {
      await at.close()
      await client.stop()
    }
    await mail?.close()
  })

  async function startService(topology: KillableServer['topology']): Promise<Service> {
    const client = await logoutClient('openid-client')
    const settings = { password_changed_email: 'false' }
    const at = await startKillableServer(topology, mail.port, settings, [client.metadata])
    await client.start(at.oauthUrl)
    return { at, client }
  }

  async function prepare({ at, client }: Service, title: string): Promise<Round> {
    const person = await addPerson(at, true)
    const credentials = { username: person.username, password: OLD_PASSWORD }
    await again(() => signInAt(client, person.agent, credentials))
    expect((await again(() => forgot(at, person))).mode).to.equal('sent')
    await mailed(at, person)
    const { link } = await mail.mailTo(person.email)
    return { title: `${at.topology}, ${title}`, at, client, person, link, tried: 0, isSent: false }
  }

  /** On a slow machine a connection that was kept may be closed as it is used once more. */
  const again = async <T>(work: () => Promise<T>) => (await answered(work())) ?? work()

  const trailOf = ({ at, person, link }: Round) =>
    followTrail(at.proxy, [person.id, sha256(tokenOf(link))])

  /** One reset that nobody disturbs, until its client was told, and that was written down. */
  async function stepsOfReset(service: Service): Promise<Step[]> {
    const round = await prepare(service, 'undisturbed')
    const trail = trailOf(round)
    const steps = await recordSteps(service.at.proxy, trail, async () => {
      expect((await postReset(service.at, round.link, NEW_PASSWORD))?.mode).to.equal('done')
      await eventually('written down', async () => (await logoutOf(round))?.state === 'sent')
    })
    trail.end()
    expect(toldOf(round)).to.have.length(1)
    expect(await isSignedOut(round)).to.equal(true)
    return steps.filter(({ collection }) => collection !== 'mail_outbox')
  }

  async function logoutOf(round: Round): Promise<LogoutDocument | undefined> {
    const [logout, ...more] = await logoutsOf(round)
    expect(more, round.title).to.deep.equal([])
    return logout
  }

  async function play(service: Service, steps: Step[], index: number): Promise<void> {
    const planned = planFor(steps, index)
    for (let from = 0; from < planned.length; from += PREPARED_AT_ONCE) {
      const some = planned.slice(from, from + PREPARED_AT_ONCE)
      const prepared = await several(some, 3, (moment) => prepare(service, titleOf(moment)))
      for (const [number, moment] of some.entries()) {
        const round = prepared[number]
        if (!round) throw new TypeError('not prepared')
        await kill(round, moment)
      }
    }
    if (index === 0) await playShared(service)
  }

  function planFor(steps: Step[], index: number): KillMoment[] {
    const moments = part(momentsAround(steps), index, TOPOLOGIES.length)
    const random = Array.from({ length: RANDOM_ROUNDS }, () => Math.random() * RANDOM_WITHIN_MS)
    return [...moments, ...DOOR, ...random]
  }

  function titleOf(moment: KillMoment): string {
    if (typeof moment === 'number') return `killed after ${moment} ms`
    return typeof moment === 'string' ? `killed, token ${moment}` : `killed ${nameOf(moment)}`
  }

  async function kill(round: Round, moment: KillMoment): Promise<void> {
    const { at, link } = round
    findings.rounds += 1
    const armed = arm(round, moment)
    const posting = postReset(at, link, NEW_PASSWORD)
    if (typeof moment === 'number') {
      await sleep(moment)
      await at.kill()
    } else {
      await Promise.race([armed.happened, sleep(20_000, undefined, { ref: false })])
    }
    await posting
    if (!(await armed.end())) {
      findings.add('missed moment', round.title)
      await at.kill()
    }
    rounds.push(round)
    await lookBetweenDeaths(at, 1)
    await at.restart()
  }

  /** Whatever an earlier death left is tried once more, by each process that lived meanwhile, and not once it is written down. */
  async function lookBetweenDeaths(at: KillableServer, processes: number): Promise<void> {
    const open = rounds.filter((round) => round.at === at && !round.isSent)
    await several(open, 8, (round) => look(round, processes))
  }

  async function look(round: Round, processes: number): Promise<void> {
    const { attempts = 0, state, reason } = (await logoutOf(round)) ?? {}
    const tries = attempts - round.tried
    if (tries > (round.isSent ? 0 : processes) && reason === undefined) {
      findings.add('logout too many', `${round.title}: tried ${tries} times between two deaths`)
    }
    round.tried = attempts
    round.isSent = state === 'sent'
  }

  /** `end`: whether it happened; it will not any more. */
  function arm(round: Round, moment: KillMoment) {
    const { at, client } = round
    if (typeof moment === 'number') return { happened: undefined, end: async () => true }
    if (typeof moment !== 'string') {
      const trail = trailOf(round)
      const interruption = at.proxy.interrupt(momentOf(moment.step, trail, moment.when), at.kill)
      return {
        happened: interruption.happened,
        async end() {
          interruption.cancel()
          trail.end()
          return (await interruption.happened) !== undefined
        },
      }
    }
    let hasHappened = false
    const when = moment === 'lost' ? 'before' : 'after'
    const happened = new Promise<void>((resolve) => {
      client.door[when] = async ({ claims }) => {
        if (claims.sub !== round.person.id) return
        client.door[when] = undefined
        await at.kill()
        hasHappened = true
        resolve()
        throw new Error('nobody is there any more')
      }
    })
    return {
      happened,
      async end() {
        client.door[when] = undefined
        return hasHappened
      },
    }
  }

  /** Another process works on the same database, and goes on. */
  async function playShared(service: Service): Promise<void> {
    const { at, client } = service
    const other: ExampleServer = await startExampleServer({
      MONGODB_URI: at.database.uri,
      SEED_FILE: at.seedFile,
      BASE_URL: new URL(at.oauthUrl).origin,
    })
    try {
      for (let index = 0; index < SHARED_ROUNDS; index += 1) {
        const both = await several([0, 1], 2, () => prepare(service, `beside another, ${index}`))
        const [one, two] = both
        if (!one || !two) throw new TypeError('not prepared')
        findings.rounds += 1
        const elsewhere = two.link.replace(
          new URL(two.link).origin,
          `http://localhost:${other.port}`,
        )
        const posting = [postReset(at, one.link, NEW_PASSWORD), postAt(other, elsewhere)]
        await sleep(Math.random() * RANDOM_WITHIN_MS)
        await at.kill()
        await Promise.all(posting)
        rounds.push(...both)
        await lookBetweenDeaths(at, 2)
        // The other one goes on with what it holds.
        await at.restartAtOnce()
      }
    } finally {
      await other.kill()
    }
    expect(client.told.length).to.be.greaterThan(0)
  }

  const postAt = (other: ExampleServer, link: string) =>
    postReset(
      { oauthUrl: `http://localhost:${other.port}/oauth2` } as KillableServer,
      link,
      NEW_PASSWORD,
    )

  async function judge(round: Round): Promise<void> {
    const { at, link, title } = round
    const fault = (is: boolean, kind: Fault, what: string) =>
      is && findings.add(kind, `${title}: ${what}`)

    // Who saw no answer tries again.
    const isBegun = !(await showsForm(link))
    findings.count(isBegun ? 'begun' : 'not begun')
    if (!isBegun) {
      fault((await logoutsOf(round)).length > 0, 'logout too many', 'asked for without a reset')
      fault(await isSignedOut(round), 'logout too many', 'told without a reset')
      const again = await postReset(at, link, NEW_PASSWORD)
      fault(again?.mode !== 'done', 'half done', 'the link does not work')
    }
    const isOver = async () => (await logoutOf(round))?.state === 'sent' && isSignedOut(round)
    await eventually(`signed out: ${title}`, isOver, SETTLED_WITHIN_MS).catch((error: unknown) =>
      findings.add('lost logout', String(error)),
    )
    await look(round, 2)
    const { reason } = (await logoutOf(round)) ?? {}
    const told = toldOf(round)
    const statuses = told.map(({ status }) => status).join()
    findings.count(`told ${told.length}${reason === undefined ? '' : ` after ${reason}`}`)
    const { tried } = round
    fault(told.length > tried, 'logout too many', `told ${statuses}, and tried ${tried} times`)
    const ids = new Set(told.map(({ claims }) => claims.jti))
    fault(ids.size < told.length, 'logout too many', 'the same token twice')
    fault(told.at(-1)?.status !== 204, 'lost logout', `the client answered ${statuses}`)
  }

  it('are told in the end, whenever the process died', () => {
    expect(findings.of('lost logout', 'half done', 'missed moment')).to.deep.equal([])
    expect(findings.rounds).to.be.greaterThan(scaled({ full: 100, short: 8 }))
  })

  it('are told again only where that they know was not written down, and with a token of its own', () => {
    expect(findings.of('logout too many')).to.deep.equal([])
  })
})
