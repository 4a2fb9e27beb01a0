import type { AddressInfo } from 'node:net'
import { simpleParser } from 'mailparser'
import { SMTPServer } from 'smtp-server'
import { eventually } from '../support/eventually.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sha256, tokenOf } from '../support/observe.ts'
import type { AuthorizationRequest } from '../support/relying-party.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
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
  isWriteTo,
  momentOf,
  momentsAround,
  nameOf,
  part,
  recordSteps,
  type Step,
  type StepMoment,
  type Trail,
} from './rounds.ts'
import {
  addPerson,
  answered,
  forgot,
  hasCode,
  mailed,
  OLD_PASSWORD,
  opens,
  postLogin,
  postReset,
  showsForm,
  type Person,
  type UserDocument,
} from './people.ts'

/** The points of an SMTP dialogue, in their order. */
export const SMTP_POINTS = [
  'connected',
  'sender named',
  'recipient named',
  'data begun',
  /** All of it is there, and kept; the client does not know yet. */
  'data complete',
  'accepted',
] as const

export type SmtpPoint = (typeof SMTP_POINTS)[number]

export interface ReceivedLink {
  to: string
  link: string
}

/** A real SMTP server that keeps what it gets, and lets a test act in the middle of a dialogue. */
export interface InterruptibleMailServer {
  port: number
  /** The links of all mails, in the order of their arrival. */
  links: ReceivedLink[]
  linkTo(address: string): Promise<string>
  /**
   * Does `act` at that point of the dialogue about this recipient, once. Before the recipient is named that may be another's;
   * where a connection is used again, and never reaches that point, at the next one.
   */
  interrupt(
    point: SmtpPoint,
    recipient: string,
    act: () => Promise<unknown>,
  ): { happened: Promise<boolean>; cancel(): void }
  close(): Promise<void>
}

interface Armed {
  point: SmtpPoint
  recipient: string
  strike(): Promise<void>
}

export async function startInterruptibleMailServer(): Promise<InterruptibleMailServer> {
  const links: ReceivedLink[] = []
  const armed = new Set<Armed>()

  async function reach(point: SmtpPoint, recipient?: string): Promise<void> {
    for (const each of armed) {
      const isThere = SMTP_POINTS.indexOf(point) >= SMTP_POINTS.indexOf(each.point)
      if (!isThere || (recipient !== undefined && recipient !== each.recipient)) continue
      armed.delete(each)
      await each.strike()
    }
  }

  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    closeTimeout: 1_000,
    onConnect: (_session, callback) => void reach('connected').then(() => callback(), callback),
    onMailFrom: (_address, _session, callback) =>
      void reach('sender named').then(() => callback(), callback),
    onRcptTo: ({ address }, _session, callback) =>
      void reach('recipient named', address).then(() => callback(), callback),
    onData(stream, { envelope }, callback) {
      const to = envelope.rcptTo[0]?.address ?? ''
      const receive = async () => {
        await reach('data begun', to)
        const mail = await simpleParser(stream)
        const link = /https?:\/\/\S+/.exec(mail.text ?? '')?.[0]
        if (link !== undefined) links.push({ to, link })
        await reach('data complete', to)
        callback()
        await reach('accepted', to)
      }
      receive().catch(callback)
    },
  })
  // A process that is killed leaves its connections in the middle of something.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo

  return {
    port,
    links,
    linkTo: (address) =>
      eventually(`a link to ${address}`, () => links.find(({ to }) => to === address)?.link),

    interrupt(point, recipient, act) {
      let settle: (is: boolean) => void = () => {}
      const happened = new Promise<boolean>((resolve) => (settle = resolve))
      const entry: Armed = { point, recipient, strike: () => act().then(() => settle(true)) }
      armed.add(entry)
      return {
        happened,
        cancel() {
          if (armed.delete(entry)) settle(false)
        },
      }
    },

    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** A limit for a broken run: leases of dead processes end long before. */
const SETTLED_WITHIN_MS = 180_000
/** Likewise: within it, a worker that is not killed has sent the mail. */
const REACHED_WITHIN_MS = 60_000
const NEW_PASSWORD = 'the password of the form'

/** A server under test, and the mail server that only its mails go to. */
interface Place {
  at: KillableServer
  mail: InterruptibleMailServer
}

type Work = 'forgot-password' | 'blocked login' | 'verify-email'

/** Somebody who is owed a mail, or opens a link, while the process is killed. */
interface Round extends Place {
  title: string
  work: Work
  moment: StepMoment | SmtpPoint
  person: Person
  /** Of the login that waits; `undefined` where none does. */
  request: AuthorizationRequest | undefined
  /** Whether the person was told that a mail is on its way. */
  isOwed: boolean
}

type Steps = Record<Work, Step[]>
type Planned = [Work, StepMoment | SmtpPoint]

describeOnBothTopologies('A process that is killed around a mail', () => {
  const findings = createFindings()
  const places: Place[] = []
  let rounds: Round[] = []

  before(async function () {
    this.timeout(scaled({ full: 3_600_000, short: 600_000 }))
    for (const topology of TOPOLOGIES) {
      const mail = await startInterruptibleMailServer()
      const settings = { require_email_verification: 'true' }
      places.push({ mail, at: await startKillableServer(topology, mail.port, settings) })
    }
    const [first] = places
    if (!first) throw new TypeError('no server')
    const steps = await recordAll(first)
    rounds = (await Promise.all(places.map((place, index) => play(place, steps, index)))).flat()
    for (const place of places) await settled(place)
    await several(rounds, 4, judge)
  })

  after(async function () {
    this.timeout(60_000)
    console.log(findings.summary('Mails and verifications'))
    for (const { at, mail } of places) {
      await at.close()
      await mail.close()
    }
  })

  /** One of each that nobody disturbs tells the steps. What is done before the answer owes nobody anything. */
  async function recordAll(place: Place): Promise<Steps> {
    const { at, mail } = place
    const verified = await addPerson(at, true)
    const forgetting = followTrail(at.proxy, [verified.id, verified.username])
    const forgotten = await recordSteps(at.proxy, forgetting, async () => {
      expect((await forgot(at, verified)).mode).to.equal('sent')
      await mailed(at, verified)
    })
    forgetting.end()

    const person = await addPerson(at, false)
    const login = followTrail(at.proxy, [person.id, person.username])
    const blocked = await recordSteps(at.proxy, login, async () => {
      expect((await postLogin(at, person)).answer.mode).to.equal('blocked')
      await mailed(at, person)
    })
    login.end()

    const link = await mail.linkTo(person.email)
    const opening = followTrail(at.proxy, [person.id, sha256(tokenOf(link))])
    const opened = await recordSteps(at.proxy, opening, async () => {
      const { location = '' } = await person.agent.get(link)
      expect(hasCode(location), location).to.equal(true)
    })
    opening.end()
    return {
      'forgot-password': ofWorker(forgotten),
      'blocked login': ofWorker(blocked),
      'verify-email': opened,
    }
  }

  const ofWorker = (steps: Step[]) => steps.slice(steps.findIndex(isWriteTo('mail_outbox')) + 1)

  /** All rounds at one server, one after the other; those whose leases last longest come first. */
  async function play(place: Place, steps: Steps, index: number): Promise<Round[]> {
    const ours = <T>(all: T[]) => part(all, index, TOPOLOGIES.length)
    const momentsOf = (work: Work) =>
      ours(momentsAround(steps[work])).map((moment): Planned => [work, moment])
    const points = scaled({ full: [...SMTP_POINTS], short: ours([...SMTP_POINTS]) })
    const planned: Planned[] = [
      ...points.map((point): Planned => ['forgot-password', point]),
      ...scaled({ full: points, short: points.slice(-1) }).map((point): Planned => [
        'blocked login',
        point,
      ]),
      ...momentsOf('forgot-password'),
      ...momentsOf('blocked login'),
      ...momentsOf('verify-email'),
    ]
    const prepared = await several(planned, 3, ([work, moment]) => prepare(place, work, moment))
    for (const round of prepared) await kill(round)
    return prepared
  }

  async function prepare(place: Place, work: Work, moment: StepMoment | SmtpPoint): Promise<Round> {
    const { at } = place
    const when = typeof moment === 'string' ? moment : nameOf(moment)
    const person = await addPerson(at, work === 'forgot-password')
    const round: Round = {
      ...place,
      title: `${at.topology}, ${work}, killed ${when}`,
      work,
      moment,
      person,
      request: undefined,
      isOwed: false,
    }
    if (work === 'verify-email') {
      round.request = (await postLogin(at, person)).request
      await mailed(at, person)
    }
    return round
  }

  async function kill(round: Round): Promise<void> {
    const { at, work, title } = round
    findings.rounds += 1
    const link = linksOf(round).at(-1)
    const ids = [round.person.id, round.person.username, ...(link ? [sha256(tokenOf(link))] : [])]
    const trail = followTrail(at.proxy, ids)
    const isArmedLater = isSearch(round)
    let killed = isArmedLater ? undefined : arm(round, trail)
    const working = work === 'verify-email' ? open(round) : ask(round)
    if (isArmedLater) await working
    killed ??= arm(round, trail)
    await Promise.race([killed.happened, sleep(REACHED_WITHIN_MS, undefined, { ref: false })])
    killed.cancel()
    if (!(await killed.happened)) {
      findings.add('missed moment', title)
      await at.kill()
    }
    await working
    trail.end()
    await at.restart()
  }

  /** The search for the next job does not say whose it is: the one after the answer is meant. */
  const isSearch = ({ moment }: Round) =>
    typeof moment !== 'string' && moment.when === 'before' && moment.step.onlyReplyTells

  function arm({ at, mail, person, moment }: Round, trail: Trail) {
    return typeof moment === 'string'
      ? mail.interrupt(moment, person.email, at.kill)
      : at.proxy.interrupt(momentOf(moment.step, trail, moment.when), at.kill)
  }

  async function ask(round: Round): Promise<void> {
    const { at, work, person } = round
    try {
      if (work === 'forgot-password') {
        round.isOwed = (await forgot(at, person)).mode === 'sent'
        return
      }
      const { request, answer } = await postLogin(at, person)
      round.request = request
      round.isOwed = answer.mode === 'blocked'
    } catch (error) {
      // The process was gone before it had answered.
      if (!(error instanceof TypeError)) throw error
    }
  }

  async function open(round: Round): Promise<void> {
    await answered(round.person.agent.get(linksOf(round).at(-1) ?? ''))
  }

  const linksOf = ({ mail, person, work }: Round) =>
    mail.links
      .filter(({ to }) => to === person.email)
      .map(({ link }) => link)
      .filter((link) => link.includes(work === 'forgot-password' ? '/reset-' : '/verify-'))

  /** Until nobody owes anybody a mail. */
  async function settled({ at }: Place): Promise<void> {
    const outbox = at.database.db.collection('mail_outbox')
    await eventually(
      `the outbox of ${at.topology} is empty`,
      async () => (await outbox.countDocuments({ state: { $ne: 'dead' } })) === 0,
      SETTLED_WITHIN_MS,
    )
    const dead = await outbox.find({ state: 'dead' }).toArray()
    for (const { reason } of dead) findings.add('lost mail', `${at.topology}: given up, ${reason}`)
  }

  const eventsOf = ({ at, person }: Round, type: string) =>
    at.database.db.collection('audit_events').countDocuments({ type, account_id: person.id })

  async function judge(round: Round): Promise<void> {
    if (round.work === 'verify-email') return judgeOpening(round)
    const links = linksOf(round)
    const kind = round.work === 'forgot-password' ? 'password_reset' : 'email_verification'
    findings.count(round.isOwed ? 'owed' : 'not answered')
    await judgeEvents(round, `${kind}_requested`)
    await judgeEvents(round, `${kind}_mail_sent`, 0)
    if (round.work === 'blocked login') await judgeEvents(round, 'email_login_blocked')
    const newest = links.at(-1)
    if (newest === undefined) return fault(round, round.isOwed, 'lost mail', 'no mail')
    if (round.work === 'forgot-password') return judgeResetLinks(round, newest)
    return judgeVerificationLinks(round, newest)
  }

  async function judgeEvents(round: Round, type: string, atLeast = 1): Promise<void> {
    const events = await eventsOf(round, type)
    fault(round, round.isOwed && events < atLeast, 'lost event', type)
    fault(round, events > 1, 'double event', `${events} times ${type}`)
  }

  async function judgeResetLinks(round: Round, newest: string): Promise<void> {
    const { at, person } = round
    const earlier = linksOf(round).filter((link) => link !== newest)
    for (const link of earlier) fault(round, await showsForm(link), 'link too many', 'an old link')
    fault(round, !(await showsForm(newest)), 'lost mail', 'the newest link is dead')
    const done = await postReset(at, newest, NEW_PASSWORD)
    fault(round, done?.mode !== 'done', 'lost mail', `the newest link does not work: ${done?.mode}`)
    fault(round, !(await opens(at, person, NEW_PASSWORD)), 'half done', 'no new password')
    for (const link of [...earlier, newest]) {
      fault(round, await showsForm(link), 'token used twice', 'a link after the reset')
    }
  }

  async function judgeVerificationLinks(round: Round, newest: string): Promise<void> {
    const { person, isOwed } = round
    if (!isOwed) return
    const why = await whyNotFinished(round, await person.agent.get(newest))
    fault(round, why !== undefined, 'lost mail', `the newest link does not work: ${why}`)
    await judgeSpent(round)
  }

  async function judgeOpening(round: Round): Promise<void> {
    const { at, person } = round
    const users = at.database.db.collection<UserDocument>('users')
    const isVerified = (await users.findOne({ _id: person.id }))?.email_verified === true
    findings.count(isVerified ? 'verified' : 'not verified')
    if (!isVerified) {
      const why = await whyNotFinished(round, await person.agent.get(linksOf(round).at(-1) ?? ''))
      fault(round, why !== undefined, 'half done', `not verified, and the link is dead: ${why}`)
    }
    await judgeSpent(round)
    await judgeEvents(round, 'email_verification_completed', 0)
    fault(round, !(await opens(at, person, OLD_PASSWORD)), 'half done', 'cannot sign in')
  }

  /** `undefined`: the link led to the client, whose login is that of the person. */
  async function whyNotFinished({ at, person, request }: Round, answer: Answer) {
    const { status, mode, location = '' } = answer
    if (status !== 302 || !hasCode(location)) return `${status} ${mode} ${location}`
    if (!request) return 'no login'
    const sub = (await at.party.exchange(request, location)).claims()?.sub
    return sub === person.id ? undefined : 'somebody else'
  }

  /** No link of the round gives a session or a code, to whomever. */
  async function judgeSpent(round: Round): Promise<void> {
    for (const link of linksOf(round)) {
      for (const agent of [round.person.agent, createUserAgent()]) {
        const { headers, location } = await agent.get(link)
        const hasSession = headers.getSetCookie().some((line) => /^_session=[^;]/.test(line))
        const gives = hasSession || location !== undefined
        fault(round, gives, 'token used twice', `a session or ${location}`)
      }
    }
  }

  function fault({ title }: Round, is: boolean, kind: Fault, what: string): void {
    if (is) findings.add(kind, `${title}: ${what}`)
  }

  it('owes nobody a mail in the end, and the newest link of each works (FLT-06)', () => {
    expect(findings.of('lost mail', 'missed moment')).to.deep.equal([])
    expect([...findings.outcomes.keys()]).to.include('owed')
  })

  it('leaves no reset link alive beside the newest', () => {
    expect(findings.of('link too many')).to.deep.equal([])
  })

  it('has verified the address and spent the link, or neither', () => {
    expect(findings.of('half done')).to.deep.equal([])
    expect([...findings.outcomes.keys()]).to.include.members(['verified', 'not verified'])
  })

  it('lets no link be used twice', () => {
    expect(findings.of('token used twice')).to.deep.equal([])
  })

  it('records each event of a job once', () => {
    expect(findings.of('double event', 'lost event')).to.deep.equal([])
  })
})
