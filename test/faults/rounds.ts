import type { Document } from 'mongodb'
import type { Moment, MongoCommand, MongoProxy } from '../support/mongo-proxy.ts'
import { scaled } from './servers.ts'

export type Fault =
  | 'lost mail'
  | 'session that came back'
  | 'double event'
  | 'token used twice'
  | 'half done'
  | 'link too many'
  | 'lost event'
  | 'lost logout'
  | 'logout too many'
  /** The process was not killed where it should have been. */
  | 'missed moment'

/** What was found out about all rounds together. */
export interface Findings {
  rounds: number
  /** How often each outcome was seen. */
  outcomes: Map<string, number>
  count(outcome: string): void
  add(fault: Fault, what: string): void
  /** What was found wrong, each with its round. */
  of(...faults: Fault[]): string[]
  /** One line with the figures. */
  summary(title: string): string
}

const FIGURES: Fault[] = [
  'lost mail',
  'session that came back',
  'double event',
  'token used twice',
  'half done',
  'link too many',
  'lost event',
  'lost logout',
  'logout too many',
]

export function createFindings(): Findings {
  const found: { fault: Fault; what: string }[] = []
  const outcomes = new Map<string, number>()
  const of = (...faults: Fault[]) =>
    found
      .filter(({ fault }) => faults.includes(fault))
      .map(({ fault, what }) => `${fault}: ${what}`)

  return {
    rounds: 0,
    outcomes,
    count: (outcome) => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1),
    add: (fault, what) => void found.push({ fault, what }),
    of,
    summary(title) {
      const faults = FIGURES.map((fault) => `${fault} ${of(fault).length}`)
      const seen = [...outcomes].map(([outcome, times]) => `${outcome} ${times}`)
      return `${title}: rounds ${this.rounds}, ${faults.join(', ')} (${seen.join(', ')})`
    },
  }
}

/** Recognises what is about one account on its way to the database and back: ids lead to further ids. */
export interface Trail {
  /** Without a reply, whether the command tells; with it, whether either does. */
  isOn(command: MongoCommand, reply?: Document): boolean
  end(): void
}

/** One command of a piece of work, as it was recorded, and as it is found again when the work is done for another account. */
export interface Step {
  name: string
  collection: string
  /** Which of those commands about the account, from 1. */
  nth: number
  /** The command itself says nothing about the account, such as the search for the next job. */
  onlyReplyTells: boolean
}

/** An id of a record, not a name that many share. */
const ID_LENGTH = 20
const ID_FIELDS = new Set(['_id', 'token_hash'])

export function followTrail(proxy: MongoProxy, ids: Iterable<string>): Trail {
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
  return {
    // As it was when the command came: its own reply may have taught its ids.
    isOn: (command, reply) => telling.has(command) || (reply !== undefined && isAbout(reply)),
    end,
  }
}

/** The commands about the account while `work` is done, in their order. It must have come to its end. */
export async function recordSteps(
  proxy: MongoProxy,
  trail: Trail,
  work: () => Promise<unknown>,
): Promise<Step[]> {
  const steps: Step[] = []
  const seen = new Set<MongoCommand>()

  function add({ name, collection }: MongoCommand, onlyReplyTells: boolean) {
    if (collection === undefined) return
    const isSame = (step: Step) =>
      step.name === name && step.collection === collection && step.onlyReplyTells === onlyReplyTells
    const nth = steps.filter(isSame).length + 1
    steps.push({ name, collection, nth, onlyReplyTells })
  }

  const stop = proxy.watch({
    command(command) {
      if (!trail.isOn(command)) return
      seen.add(command)
      add(command, false)
    },
    reply(command, reply) {
      if (!seen.has(command) && trail.isOn(command, reply)) add(command, true)
    },
  })
  await work()
  stop()
  return steps
}

export function momentOf(step: Step, trail: Trail, when: Moment['when']): Moment {
  const { name, collection, nth, onlyReplyTells } = step
  const isSuch = (command: MongoCommand) =>
    command.name === name && command.collection === collection
  if (!onlyReplyTells) {
    return { nth, when, matches: (command) => isSuch(command) && trail.isOn(command) }
  }
  // What the next reply would tell is not known yet.
  if (when === 'before') return { when, matches: isSuch }
  return {
    nth,
    when,
    matches: (command, reply) =>
      isSuch(command) && !trail.isOn(command) && trail.isOn(command, reply),
  }
}

/** A moment of a piece of work, whoever it is done for. */
export interface StepMoment {
  step: Step
  when: Moment['when']
}

const READS = new Set(['find', 'aggregate', 'getMore', 'count', 'distinct'])

/**
 * Every moment around these steps, first those that leave the database in a state of its own: before the first write, and after
 * each. The short form has those alone.
 */
export function momentsAround(steps: Step[]): StepMoment[] {
  const reads = steps.filter(({ name }) => READS.has(name))
  const writes = steps.filter(({ name }) => !READS.has(name))
  const at = (some: Step[], when: Moment['when']) => some.map((step) => ({ step, when }))
  const states = [...at(writes.slice(0, 1), 'before'), ...at(writes, 'after')]
  const others = [...at(writes.slice(1), 'before'), ...at(reads, 'after'), ...at(reads, 'before')]
  return scaled({ full: [...states, ...others], short: states })
}

export function nameOf({ step: { name, collection, nth }, when }: StepMoment): string {
  return `${when} ${name} ${collection} ${nth}`
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
