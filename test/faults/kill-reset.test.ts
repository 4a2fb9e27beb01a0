import { setTimeout as sleep } from 'node:timers/promises'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { secondAfter } from '../../src/ports/login-end.ts'
import { eventually } from '../support/eventually.ts'
import { startMailServer, type MailServer, type ReceivedMail } from '../support/mail-server.ts'
import { sha256, tokenOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
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
} from './rounds.ts'
import {
  addPerson,
  finishes,
  forgot,
  heldBackLogin,
  isSignedIn,
  mailed,
  OLD_PASSWORD,
  opens,
  postReset,
  refresh,
  refreshTokenOf,
  showsForm,
  signIn,
  type HeldBackLogin,
  type Person,
  type UserDocument,
} from './people.ts'

const RANDOM_ROUNDS = scaled({ full: 12, short: 1 })
const RANDOM_WITHIN_MS = 50
/** Few, because an authorization code is gone after a minute. */
const PREPARED_AT_ONCE = 5
/** A limit for a broken run: leases of dead processes end long before. */
const SETTLED_WITHIN_MS = 180_000
/** Until somebody is ready for what happens when it is taken up. */
const HELD_MS = 50_000
const NEW_PASSWORD = 'the password of the form'
const RETRIED_PASSWORD = 'the password of a second try'
const NEWER_PASSWORD = 'the password that the host sets'
const ANOTHER_PASSWORD = 'the password of somebody later'

/** A person who is signed in, has a reset link, and posts its form to a process that is killed. */
interface Round {
  title: string
  at: KillableServer
  person: Person
  link: string
  refreshToken: string
  heldBack: HeldBackLogin
  /** Whether the form was answered with the page that says so. */
  isTold: boolean
  /** Tries the same link again as soon as the process is back. */
  retries: boolean
  /** Whether that was answered with the page that says so. */
  isRetryTold: boolean
}

/** A step, or a time after the form was posted. */
type KillMoment = StepMoment | number

interface Planned {
  moment: KillMoment
  /** While the process is dead, the host sets a newer password. */
  isOvertaken: boolean
}

interface StoredToken {
  _id: string
  token_hash: string
  used_at: Date | null
  invalidated_at: Date | null
  completed_at: Date | null
}

describeOnBothTopologies('A reset whose process is killed (FLT-12)', () => {
  const findings = createFindings()
  const servers: KillableServer[] = []
  let mail: MailServer
  const rounds: Round[] = []
  const overtaken: Round[] = []

  before(async function () {
    this.timeout(scaled({ full: 3_600_000, short: 600_000 }))
    mail = await startMailServer()
    for (const topology of TOPOLOGIES) servers.push(await startKillableServer(topology, mail.port))
    const [first] = servers
    if (!first) throw new TypeError('no server')
    const steps = await stepsOfReset(first)
    await Promise.all(servers.map((at, index) => play(at, steps, index)))
    await several(rounds, 4, judge)
  })

  after(async function () {
    this.timeout(60_000)
    console.log(findings.summary('Resets'))
    for (const server of servers) await server.close()
    await mail?.close()
  })

  async function prepare(at: KillableServer, title: string, index: number): Promise<Round> {
    const person = await addPerson(at, true)
    await signIn(at, person)
    const refreshToken = await refreshTokenOf(at, person)
    const heldBack = await heldBackLogin(at, person)
    expect((await forgot(at, person)).mode).to.equal('sent')
    await mailed(at, person)
    const { link } = await mail.mailTo(person.email)
    return {
      title: `${at.topology}, ${title}`,
      at,
      person,
      link,
      refreshToken,
      heldBack,
      isTold: false,
      retries: index % 4 === 2,
      isRetryTold: false,
    }
  }

  const trailOf = ({ at, person, link }: Round) =>
    followTrail(at.proxy, [person.id, sha256(tokenOf(link))])

  /** One reset that nobody disturbs tells the steps. */
  async function stepsOfReset(at: KillableServer): Promise<Step[]> {
    const round = await prepare(at, 'undisturbed', 0)
    const trail = trailOf(round)
    const steps = await recordSteps(at.proxy, trail, async () => {
      expect((await postReset(at, round.link, NEW_PASSWORD))?.mode).to.equal('done')
    })
    trail.end()
    expect(await opens(at, round.person, NEW_PASSWORD)).to.equal(true)
    return withoutNotice(steps)
  }

  /** From the mail that tells of the reset on, a worker goes its own way. */
  function withoutNotice(steps: Step[]): Step[] {
    const last = steps.findLastIndex(isWriteTo('password_reset_tokens'))
    return steps
      .slice(0, last + 1)
      .filter(({ collection, nth }) => collection !== 'mail_outbox' || nth === 1)
  }

  /** All rounds at one server, one after the other. */
  async function play(at: KillableServer, steps: Step[], index: number): Promise<void> {
    const planned = planFor(steps, index)
    for (let from = 0; from < planned.length; from += PREPARED_AT_ONCE) {
      const some = planned.slice(from, from + PREPARED_AT_ONCE)
      const prepared = await several(some, 3, ({ moment }, number) =>
        prepare(at, titleOf(moment), from + number),
      )
      for (const [number, { moment, isOvertaken }] of some.entries()) {
        const round = prepared[number]
        if (!round) throw new TypeError('not prepared')
        await (isOvertaken ? overtake(round, moment) : kill(round, moment))
      }
    }
    const last = overtaken.findLast((round) => round.at === at)
    if (last) await killAgain(last, index === 0 ? 'password_reset_tokens' : 'audit_events')
  }

  function planFor(steps: Step[], index: number): Planned[] {
    const all = momentsAround(steps)
    const moments = scaled({ full: all, short: part(all, index, TOPOLOGIES.length) })
    const random = Array.from({ length: RANDOM_ROUNDS }, () => Math.random() * RANDOM_WITHIN_MS)
    const unfinished = [isWriteTo('password_reset_tokens'), isWriteTo('users')]
      .flatMap((isSuch) => steps.find(isSuch) ?? [])
      .map((step): StepMoment => ({ step, when: 'after' }))
    const overtakes = scaled({ full: unfinished, short: part(unfinished, index, 2) })
    return [
      ...[...moments, ...random].map((moment) => ({ moment, isOvertaken: false })),
      ...overtakes.map((moment) => ({ moment, isOvertaken: true })),
    ]
  }

  const titleOf = (moment: KillMoment) =>
    typeof moment === 'number' ? `killed after ${moment} ms` : `killed ${nameOf(moment)}`

  async function kill(round: Round, moment: KillMoment): Promise<void> {
    const { at, link, retries } = round
    await die(round, moment)
    rounds.push(round)
    if (!retries) return at.restart()
    await at.restartAtOnce()
    round.isRetryTold = (await postReset(at, link, RETRIED_PASSWORD))?.mode === 'done'
  }

  /** The form is posted; then the process is dead. */
  async function die(round: Round, moment: KillMoment): Promise<void> {
    const { at, link, title } = round
    findings.rounds += 1
    const trail = trailOf(round)
    const killed =
      typeof moment === 'number'
        ? undefined
        : at.proxy.interrupt(momentOf(moment.step, trail, moment.when), at.kill)
    const posting = postReset(at, link, NEW_PASSWORD)
    if (typeof moment === 'number') {
      await sleep(moment)
      await at.kill()
    }
    round.isTold = (await posting)?.mode === 'done'
    killed?.cancel()
    trail.end()
    if (!killed || (await killed.happened)) return
    findings.add('missed moment', title)
    await at.kill()
  }

  async function overtake(round: Round, moment: KillMoment): Promise<void> {
    const { at, person } = round
    await die(round, moment)
    overtaken.push(round)
    await setPassword(round, NEWER_PASSWORD)
    await leaveToTheDead(round, HELD_MS)
    await at.restartAtOnce()
    round.person = { ...person, agent: createUserAgent() }
    // Whatever ends with the reset ended before.
    await secondAfter(systemClock, new Date())
    await signIn(at, round.person, NEWER_PASSWORD)
  }

  /** The process dies once more: when the reset is taken up again, after the first write to that collection. */
  async function killAgain(round: Round, collection: string): Promise<void> {
    const { at, person, title } = round
    findings.rounds += 1
    const { _id: tokenId } = await storedToken(round)
    const trail = followTrail(at.proxy, [person.id, tokenId])
    const isWrite = isWriteTo(collection)
    const killed = at.proxy.interrupt(
      {
        when: 'after',
        matches: (command) => isWrite(command) && trail.isOn(command),
      },
      at.kill,
    )
    await leaveToTheDead(round, 0)
    await Promise.race([killed.happened, sleep(SETTLED_WITHIN_MS, undefined, { ref: false })])
    killed.cancel()
    trail.end()
    if (await killed.happened) return at.restart()
    findings.add('missed moment', `${title}, and again after a write to ${collection}`)
  }

  /** A claimed reset is taken up when this time is over, and not before. */
  async function leaveToTheDead({ at, link }: Round, milliseconds: number): Promise<void> {
    const lease_until = new Date(Date.now() + milliseconds)
    const { matchedCount } = await at.database.db
      .collection('password_reset_tokens')
      .updateOne(
        { token_hash: sha256(tokenOf(link)), lease_until: { $type: 'date' } },
        { $set: { lease_until } },
      )
    expect(matchedCount, 'unfinished').to.equal(1)
  }

  async function setPassword({ at, person }: Round, password: string) {
    const password_hash = await bcrypt.hash(password, 4)
    const users = at.database.db.collection<UserDocument>('users')
    await users.updateOne({ _id: person.id }, { $set: { password_hash } })
  }

  async function storedToken({ at, link }: Round): Promise<StoredToken> {
    const tokens = at.database.db.collection<StoredToken>('password_reset_tokens')
    const stored = await tokens.findOne({ token_hash: sha256(tokenOf(link)) })
    if (!stored) throw new Error('the token is gone')
    return stored
  }

  const eventsOf = ({ at, person }: Round, type: string) =>
    at.database.db.collection('audit_events').countDocuments({ type, account_id: person.id })

  async function judge(round: Round): Promise<void> {
    const { at, person, link } = round
    const fault = (is: boolean, kind: Fault, what: string) =>
      is && findings.add(kind, `${round.title}: ${what}`)

    const outcome = await eventually(
      `settled: ${round.title}`,
      async () => {
        if (await showsForm(link)) return 'not begun'
        if ((await storedToken(round)).completed_at) return 'complete'
        return undefined
      },
      SETTLED_WITHIN_MS,
    )
    findings.count(outcome)
    if (outcome === 'not begun') {
      fault(round.isTold || round.isRetryTold, 'half done', 'told done, and is not')
      fault((await eventsOf(round, 'password_reset_completed')) > 0, 'half done', 'has an event')
      fault((await cutoffsOf(round))?.oauth_at !== undefined, 'half done', 'has a cut-off')
      fault(!(await opens(at, person, OLD_PASSWORD)), 'half done', 'the old password is gone')
      fault(await opens(at, person, NEW_PASSWORD), 'half done', 'the new password is there')
      fault(!(await allLives(round)), 'half done', 'signed out')
      const retry = await postReset(at, link, RETRIED_PASSWORD)
      round.isRetryTold = true
      fault(retry?.mode !== 'done', 'half done', 'the link does not work')
    }
    const password = round.isRetryTold ? RETRIED_PASSWORD : NEW_PASSWORD

    const { used_at: usedAt, ...stored } = await storedToken(round)
    // Logins are dated in whole seconds: those of the second of the reset end with it.
    if (usedAt) await secondAfter(systemClock, usedAt)
    const cutoffs = await cutoffsOf(round)
    const isCut = (cutoff: Date | undefined) => usedAt && cutoff && usedAt <= cutoff
    fault(!isCut(cutoffs?.oauth_at), 'half done', 'OAuth sessions are not cut off')
    fault(!isCut(cutoffs?.idp_at), 'half done', 'IdP sessions are not cut off')
    fault('new_hash' in stored, 'half done', 'the new hash is still with the token')
    const events = await eventsOf(round, 'password_reset_completed')
    fault(events === 0, 'half done', 'no event')
    fault(events > 1, 'double event', `${events} events`)
    fault(await anyLives(round), 'session that came back', 'still signed in')

    const again = await postReset(at, link, ANOTHER_PASSWORD)
    const isRefused = again?.status === 400 && again.mode === 'invalid'
    fault(!isRefused, 'token used twice', `${again?.status} ${again?.mode}`)
    const tried = [OLD_PASSWORD, NEW_PASSWORD, RETRIED_PASSWORD, ANOTHER_PASSWORD]
    const working = []
    for (const each of tried) if (await opens(at, person, each)) working.push(each)
    fault(working.join() !== password, 'half done', `opened by: ${working.join()}`)
  }

  const cutoffsOf = ({ at, person }: Round) =>
    at.database.db
      .collection<{ _id: string; oauth_at?: Date; idp_at?: Date }>('session_cutoffs')
      .findOne({ _id: person.id })

  /** Uses up what is used once, and keeps what comes of it. */
  async function allLives(round: Round): Promise<boolean> {
    const { at, person, refreshToken, heldBack } = round
    const next = await refresh(at, refreshToken)
    if (next === undefined) return false
    round.refreshToken = next
    return (await finishes(at, heldBack)) && (await isSignedIn(at, person))
  }

  async function anyLives({ at, person, refreshToken, heldBack }: Round): Promise<boolean> {
    if ((await refresh(at, refreshToken)) !== undefined) return true
    if ((await finishes(at, heldBack)) || (await isSignedIn(at, heldBack))) return true
    return isSignedIn(at, person)
  }

  it('is complete in the end or not begun, and then its link still works (FLT-07)', () => {
    expect(findings.of('half done', 'missed moment')).to.deep.equal([])
    expect([...findings.outcomes.keys()]).to.include('complete')
  })

  it('brings no session, refresh token or held-back login back', () => {
    expect(findings.of('session that came back')).to.deep.equal([])
  })

  it('records `password_reset_completed` once', () => {
    expect(findings.of('double event')).to.deep.equal([])
  })

  it('spends its token once', () => {
    expect(findings.of('token used twice')).to.deep.equal([])
  })

  it('is told to the account by mail', async function () {
    this.timeout(2 * SETTLED_WITHIN_MS)
    for (const { person, title } of rounds) {
      const isNotice = ({ to, kind }: ReceivedMail) =>
        kind === 'password_changed' && to.includes(person.email)
      await eventually(`the notice: ${title}`, () => mail.mails.some(isNotice), SETTLED_WITHIN_MS)
    }
  })

  it('never overwrites a newer password, and is rejected', async function () {
    this.timeout(2 * SETTLED_WITHIN_MS)
    expect(overtaken).to.have.length.greaterThan(0)
    for (const round of overtaken) {
      const { at, person, link, title } = round
      const isOver = async () => (await storedToken(round)).invalidated_at !== null
      await eventually(`over: ${title}`, isOver, SETTLED_WITHIN_MS)
      const rejected = () => eventsOf(round, 'password_reset_rejected')
      await eventually(`told as rejected: ${title}`, async () => (await rejected()) > 0)
      expect(await rejected(), title).to.equal(1)
      expect((await postReset(at, link, ANOTHER_PASSWORD))?.mode, title).to.equal('invalid')
      for (const password of [OLD_PASSWORD, NEW_PASSWORD, ANOTHER_PASSWORD]) {
        expect(await opens(at, person, password), `${title}: ${password}`).to.equal(false)
      }
      expect(await opens(at, person, NEWER_PASSWORD), title).to.equal(true)
      expect(await isSignedIn(at, person), title).to.equal(true)
      expect(await eventsOf(round, 'password_reset_completed'), title).to.equal(0)
    }
  })
})
