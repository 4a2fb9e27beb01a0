/**
 * Processes that are killed, again and again, each time at another moment of the same work.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Document } from 'mongodb'
import { describeWithMongo, describeWithReplicaSet, type Topology } from '../support/mongod.ts'
import { SMTP_POINTS, type SmtpPoint } from '../support/mail-server.ts'
import type { Moment, MongoCommand, MongoProxy } from '../support/mongo-proxy.ts'
import { several } from './load.ts'
import { answered, type Person } from './people.ts'
import type { Service } from './servers.ts'

const FAULTS = [
  'lost mail',
  'session that came back',
  'double event',
  'token used twice',
  'half done',
  'link too many',
  'lost event',
  'lost logout',
  'logout too many',
  /** The process was not killed where it should have been. */
  'missed moment',
] as const

export type Fault = (typeof FAULTS)[number]

/** A step in the database, one that the story has a name for, or milliseconds after the work was begun. */
export type KillMoment = StepMoment | string | number

/** A person, and what is done for them while the process is killed. */
export interface Round<At extends Service = Service> {
  title: string
  at: At
  person: Person
  moment: KillMoment
}

/** What one story of killed processes has of its own; `tellRounds` does the rest. */
interface Story<At extends Service, R extends Round<At>, Planned> {
  /** Of the line with figures. */
  title: string
  start(topology: Topology): Promise<At>
  /** Records at the first service what is done where nobody disturbs; answers what to do at each. */
  plan(first: At): Promise<(index: number) => Planned[]>
  /** Up to the moment before the work. */
  prepare(at: At, planned: Planned, index: number): Promise<R>
  /** Does the work, dies, and starts again. */
  kill(round: R): Promise<unknown>
  /** Has the process killed at a moment that has a name. Answers how to leave it alive. */
  arm?(round: R, name: string, trail: Trail): () => unknown
  /** After the last round of a service. */
  afterwards?(at: At, index: number): Promise<unknown>
  validate(round: R): Promise<unknown>
}

/** Few, because an authorization code is gone after a minute. */
const PREPARED_AT_ONCE = 5
/** A limit for a broken run: leases of dead processes end long before. */
export const SETTLED_WITHIN_MS = 600_000

const TOPOLOGIES: Topology[] = ['standalone', 'replica set']

/** One suite that works with both, side by side. */
export function describeOnBothTopologies(title: string, body: () => void): void {
  describeWithMongo(title, () => describeWithReplicaSet('and side by side with it', body))
}

/** Plays all rounds at both services before the tests of the suite, which say what must not have been found. */
export function tellRounds<At extends Service, R extends Round<At>, Planned>(
  story: Story<At, R, Planned>,
) {
  const services: At[] = []
  const rounds: R[] = []
  const found: { fault: Fault; what: string }[] = []
  /** How often each outcome was seen. */
  const outcomes = new Map<string, number>()
  let deaths = 0

  before(async () => {
    for (const topology of TOPOLOGIES) services.push(await story.start(topology))
    const planFor = await story.plan(services[0] as At)
    await Promise.all(services.map((at, index) => play(at, planFor(index), index)))
    await several(rounds, 4, story.validate)
  })

  after(async () => {
    const faults = FAULTS.map((fault) => `${fault} ${of(fault).length}`)
    const seen = [...outcomes].map(([outcome, times]) => `${outcome} ${times}`)
    console.log(`${story.title}: rounds ${deaths}, ${faults.join(', ')} (${seen.join(', ')})`)
    for (const service of services) await service.close()
  })

  /** All rounds at one service, one after the other. */
  async function play(at: At, planned: Planned[], index: number): Promise<void> {
    for (let from = 0; from < planned.length; from += PREPARED_AT_ONCE) {
      const some = planned.slice(from, from + PREPARED_AT_ONCE)
      const prepared = await several(some, 3, (each, number) =>
        story.prepare(at, each, from + number),
      )
      for (const round of prepared) await story.kill(round)
    }
    await story.afterwards?.(at, index)
  }

  /** Has the process killed at the moment of the round. Answers how to leave it alive. */
  function arm(round: R, trail: Trail): () => unknown {
    const { at, moment } = round
    if (typeof moment === 'number') {
      const timer = setTimeout(() => void at.kill(), moment)
      return () => clearTimeout(timer)
    }
    if (typeof moment !== 'string') {
      return at.proxy.interrupt(momentOf(moment.step, trail, moment.when), at.kill).cancel
    }
    if (!story.arm) throw new TypeError(`who kills at ${moment}?`)
    return story.arm(round, moment, trail)
  }

  /** Does the work about these ids, and kills the process at the moment of the round. `undefined`: nobody was there to answer. */
  async function die<T>(round: R, ids: string[], work: () => Promise<T>): Promise<T | undefined> {
    const { at } = round
    deaths += 1
    const trail = followTrail(at.proxy, ids)
    const disarm = arm(round, trail)
    const working = answered(work())
    const isKilled = at.server.exited.then((code) => code === null)
    const wait = sleep(SETTLED_WITHIN_MS, false, { ref: false })
    fault(round, !(await Promise.race([isKilled, wait])), 'missed moment', 'not killed')
    disarm()
    await at.kill()
    const answer = await working
    trail.end()
    return answer
  }

  function fault({ title }: Pick<R, 'title'>, is: boolean, kind: Fault, what: string): void {
    if (is) found.push({ fault: kind, what: `${title}: ${what}` })
  }

  /** What was found wrong, each with its round. */
  function of(...faults: Fault[]): string[] {
    return found
      .filter((each) => faults.includes(each.fault))
      .map((each) => `${each.fault}: ${each.what}`)
  }

  return {
    services,
    rounds,
    outcomes,
    deaths: () => deaths,
    die,
    count: (outcome: string) => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1),
    fault,
    faults: of,
    itHasNone: (title: string, ...faults: Fault[]) =>
      it(title, () => expect(of(...faults)).to.deep.equal([])),
  }
}

/** Recognises what is about one account on its way to the database: ids lead to further ids. */
export interface Trail {
  isOn(command: MongoCommand): boolean
  end(): void
}

/** One write of a piece of work, as it was recorded, and as it is found again when the work is done for another account. */
export interface Step {
  name: string
  collection: string
  /** Which of those commands about the account, from 1. */
  nth: number
}

/** An id of a record, not a name that many share. */
const ID_LENGTH = 20
const ID_FIELDS = new Set(['_id', 'token_hash'])

function followTrail(proxy: MongoProxy, ids: Iterable<string>): Trail {
  const known = new Set(ids)

  function isAbout(document: Document): boolean {
    const text = JSON.stringify(document)
    return [...known].some((id) => text.includes(id))
  }

  function learn(value: unknown, field = ''): void {
    if (typeof value === 'string') {
      if (ID_FIELDS.has(field) && value.length >= ID_LENGTH) known.add(value)
    } else if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        learn(inner, /^\d+$/.test(name) ? field : name)
      }
    }
  }

  const telling = new WeakSet<MongoCommand>()
  const end = proxy.watch({
    command(command) {
      if (!isAbout(command.body)) return
      telling.add(command)
      learn(command.body)
    },
    reply(command, reply) {
      if (telling.has(command) || isAbout(reply)) learn(reply)
    },
  })
  return { isOn: (command) => telling.has(command), end }
}

/** The writes about these ids while the work is done, in their order. It must have come to its end. */
export async function stepsOf(
  proxy: MongoProxy,
  ids: string[],
  work: () => Promise<unknown>,
): Promise<Step[]> {
  const trail = followTrail(proxy, ids)
  const steps: Step[] = []
  const stop = proxy.watch({
    command(command) {
      const { name, collection } = command
      if (collection === undefined || READS.has(name) || !trail.isOn(command)) return
      const isSame = (step: Step) => step.name === name && step.collection === collection
      steps.push({ name, collection, nth: steps.filter(isSame).length + 1 })
    },
  })
  await work()
  stop()
  trail.end()
  return steps
}

function momentOf({ name, collection, nth }: Step, trail: Trail, when: Moment['when']): Moment {
  const matches = (command: MongoCommand) =>
    command.name === name && command.collection === collection && trail.isOn(command)
  return { nth, when, matches }
}

/** A moment of a piece of work, whoever it is done for. */
interface StepMoment {
  step: Step
  when: Moment['when']
}

const READS = new Set(['find', 'aggregate', 'getMore', 'count', 'distinct'])

/** One for each state in which a process that dies may leave the database: before each write, and after the last. */
export function momentsAround(steps: Step[]): StepMoment[] {
  const before = steps.map((step): StepMoment => ({ step, when: 'before' }))
  return [...before, ...steps.slice(-1).map((step): StepMoment => ({ step, when: 'after' }))]
}

export function nameOf(moment: KillMoment): string {
  if (typeof moment === 'number') return `after ${moment} ms`
  if (typeof moment === 'string') return moment
  const { step, when } = moment
  return `${when} ${step.name} ${step.collection} ${step.nth}`
}

export function isWriteTo(
  collection: string,
): (step: Pick<MongoCommand, 'name' | 'collection'>) => boolean {
  return (step) => step.collection === collection && !READS.has(step.name)
}

/** One of several equal parts: 0 of 2 has every other item, from the first. */
export function part<T>(all: T[], which: number, of: number): T[] {
  return all.filter((_, index) => index % of === which)
}

/** Times at which a process may die, by chance. */
export function randomTimes(count: number, withinMs: number): number[] {
  return Array.from({ length: count }, () => Math.random() * withinMs)
}

/** What happens once a dialogue about that recipient has come to that point. */
interface Strike {
  point: SmtpPoint
  recipient: string
  act(): Promise<void>
}

/** Strikes that are still to come, and what a mail server tells of its dialogues for that. */
export function strikesAtMails() {
  const strikes = new Set<Strike>()

  /**
   * Before the recipient is named, the dialogue may be about another's mail; where a connection is used again, and never comes
   * to that point, the next one counts.
   */
  async function reaches(point: SmtpPoint, recipient?: string): Promise<void> {
    for (const strike of strikes) {
      const isThere = SMTP_POINTS.indexOf(point) >= SMTP_POINTS.indexOf(strike.point)
      if (!isThere || (recipient ?? strike.recipient) !== strike.recipient) continue
      strikes.delete(strike)
      await strike.act()
    }
  }
  return { strikes, reaches }
}
