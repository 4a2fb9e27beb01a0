import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { secondAfter } from '../../src/store/cutoffs.ts'
import { PASSWORD } from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import type { MongoCommand } from '../support/mongo-proxy.ts'
import { sha256 } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { scaled, startService, type Service } from './servers.ts'
import {
  describeOnBothTopologies,
  isWriteTo,
  type KillMoment,
  momentsAround,
  nameOf,
  part,
  randomTimes,
  type Round,
  SETTLED_WITHIN_MS,
  type Step,
  stepsOf,
  tellRounds,
  type Trail,
} from './rounds.ts'
import {
  ANOTHER_PASSWORD,
  judgeReset,
  NEW_PASSWORD,
  noticeOf,
  prepareReset,
  type Reset,
  RETRIED_PASSWORD,
} from './resets.ts'
import {
  answered,
  countEvents,
  isCompleted,
  isSignedIn,
  opens,
  postReset,
  storedToken,
} from './people.ts'

const RANDOM_ROUNDS = scaled({ full: 12, short: 1 })
const RANDOM_WITHIN_MS = 50
/** Until somebody is ready for what happens when it is taken up. */
const HELD_MS = 50_000
const NEWER_PASSWORD = 'the password that the host sets'

/** While the process is dead, the host sets a newer password, where it is overtaken. */
interface Planned {
  moment: KillMoment
  isOvertaken: boolean
}

/** Its form is posted to a process that is killed. */
interface ResetRound extends Round, Planned, Omit<Reset, 'title' | 'at'> {
  /** Tries the same link again as soon as the process is back. */
  retries: boolean
}

describeOnBothTopologies('A reset whose process is killed (FLT-12)', () => {
  const overtaken: ResetRound[] = []
  const { rounds, outcomes, count, faults, fault, itHasNone, die } = tellRounds({
    title: 'Resets',
    start: (topology) => startService({ topology }),
    plan,
    prepare,
    kill: (round) => (round.isOvertaken ? overtake(round) : kill(round)),
    arm: whenTakenUp,
    async afterwards(at, index) {
      const last = overtaken.findLast((round) => round.at === at)
      if (last) await killAgain(last, index === 0 ? 'password_reset_tokens' : 'audit_events')
    },
    async validate(round) {
      count(await judgeReset(round, (...found) => fault(round, ...found)))
    },
  })

  async function prepare(at: Service, planned: Planned, index: number): Promise<ResetRound> {
    const reset = await prepareReset(at)
    const title = `${at.topology}, killed ${nameOf(planned.moment)}`
    return { ...planned, ...reset, title, at, retries: index % 4 === 2 }
  }

  /** One reset that nobody disturbs tells the steps. */
  async function plan(at: Service): Promise<(index: number) => Planned[]> {
    const round = await prepare(at, { moment: 'never', isOvertaken: false }, 0)
    const recorded = await stepsOf(at.proxy, idsOf(round), async () => {
      expect((await postReset(at, round.link, NEW_PASSWORD)).mode).to.equal('done')
      await eventually('the last step', () => isCompleted(at, round.link))
    })
    expect(await opens(at, round.person, NEW_PASSWORD)).to.equal(true)
    const steps = withoutNotice(recorded)
    const unfinished = [isWriteTo('password_reset_tokens'), isWriteTo('users')]
      .flatMap((isSuch) => steps.find(isSuch) ?? [])
      .map((step): KillMoment => ({ step, when: 'after' }))
    return (index) => {
      const half = <T>(all: T[]) => scaled({ full: all, short: part(all, index, 2) })
      const random = randomTimes(RANDOM_ROUNDS, RANDOM_WITHIN_MS)
      const planned = (moments: KillMoment[], isOvertaken: boolean) =>
        moments.map((moment) => ({ moment, isOvertaken }))
      return [
        ...planned([...half(momentsAround(steps)), ...random], false),
        ...planned(half(unfinished), true),
      ]
    }
  }

  const idsOf = ({ person, link }: ResetRound) => [person.id, sha256(tokenOf(link))]

  /** From the mail that tells of the reset on, a worker goes its own way. */
  function withoutNotice(steps: Step[]): Step[] {
    const last = steps.findLastIndex(isWriteTo('password_reset_tokens'))
    return steps
      .slice(0, last + 1)
      .filter(({ collection, nth }) => collection !== 'mail_outbox' || nth === 1)
  }

  /** The form is posted; then the process is dead. */
  async function post(round: ResetRound): Promise<void> {
    const { at, link } = round
    const answer = await die(round, idsOf(round), () => postReset(at, link, NEW_PASSWORD))
    round.isTold = answer?.mode === 'done'
  }

  async function kill(round: ResetRound): Promise<void> {
    const { at, link, retries } = round
    await post(round)
    rounds.push(round)
    if (!retries) return at.restart()
    await at.start()
    const retried = await answered(postReset(at, link, RETRIED_PASSWORD))
    round.isRetryTold = retried?.mode === 'done'
  }

  async function overtake(round: ResetRound): Promise<void> {
    const { at, person } = round
    await post(round)
    overtaken.push(round)
    const password_hash = await bcrypt.hash(NEWER_PASSWORD, 4)
    const users = at.database.db.collection<{ _id: string }>('users')
    await users.updateOne({ _id: person.id }, { $set: { password_hash } })
    await leaveToTheDead(round, HELD_MS)
    await at.start()
    round.person = { ...person, agent: createUserAgent() }
    // Whatever ends with the reset ended before.
    await secondAfter(systemClock, new Date())
    expect(await opens(at, person, NEWER_PASSWORD, round.person.agent)).to.equal(true)
  }

  /** The process dies once more: when the reset is taken up again, after the first write to that collection. */
  async function killAgain(round: ResetRound, collection: string): Promise<void> {
    const { at, person, link, title } = round
    const { _id: tokenId } = await storedToken(at, link)
    const again = { ...round, title: `${title}, and again`, moment: collection }
    await die(again, [person.id, tokenId], () => leaveToTheDead(round, 0))
    await at.restart()
  }

  function whenTakenUp({ at }: ResetRound, collection: string, trail: Trail) {
    const isWrite = isWriteTo(collection)
    const matches = (command: MongoCommand) => isWrite(command) && trail.isOn(command)
    return at.proxy.interrupt({ when: 'after', matches }, at.kill).cancel
  }

  /** A claimed reset is taken up when this time is over, and not before. */
  async function leaveToTheDead({ at, link }: ResetRound, milliseconds: number): Promise<void> {
    const lease_until = new Date(Date.now() + milliseconds)
    const { matchedCount } = await at.database.db
      .collection('password_reset_tokens')
      .updateOne(
        { token_hash: sha256(tokenOf(link)), lease_until: { $type: 'date' } },
        { $set: { lease_until } },
      )
    expect(matchedCount, 'unfinished').to.equal(1)
  }

  it('is complete in the end or not begun, and then its link still works (FLT-07)', () => {
    expect(faults('half done', 'missed moment')).to.deep.equal([])
    expect([...outcomes.keys()]).to.include('complete')
  })

  itHasNone('brings no session, refresh token or held-back login back', 'session that came back')

  itHasNone('records `password_reset_completed` once', 'double event')

  itHasNone('spends its token once', 'token used twice')

  it('is told to the account by mail', async () => {
    for (const round of rounds) await noticeOf(round)
  })

  it('never overwrites a newer password, and is rejected', async () => {
    expect(overtaken).to.have.length.greaterThan(0)
    for (const round of overtaken) {
      const { at, person, link, title } = round
      const isOver = async () => (await storedToken(at, link)).invalidated_at !== null
      await eventually(`over: ${title}`, isOver, SETTLED_WITHIN_MS)
      const rejected = () => countEvents(at, person, 'password_reset_rejected')
      await eventually(`told as rejected: ${title}`, async () => (await rejected()) > 0)
      expect(await rejected(), title).to.equal(1)
      expect((await postReset(at, link, ANOTHER_PASSWORD)).mode, title).to.equal('invalid')
      for (const password of [PASSWORD, NEW_PASSWORD, ANOTHER_PASSWORD]) {
        expect(await opens(at, person, password), `${title}: ${password}`).to.equal(false)
      }
      expect(await opens(at, person, NEWER_PASSWORD), title).to.equal(true)
      expect(await isSignedIn(at, person), title).to.equal(true)
      expect(await countEvents(at, person, 'password_reset_completed'), title).to.equal(0)
    }
  })
})
