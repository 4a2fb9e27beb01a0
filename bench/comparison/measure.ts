import { MongoClient } from 'mongodb'
import { setTimeout as sleep } from 'node:timers/promises'
import { several } from '../../test/faults/load.ts'
import { createClient, type Client } from './client.ts'
import { startService, type MailSink } from './service.ts'
import type { Person, Target } from './targets.ts'

export interface Amount {
  users: number
  requests: number
  resets: number
  atOnce: number
}

/** What is measured: per second, but for the memory after it all. */
export const COLUMNS = [
  'forgot',
  'forgot mailed',
  'blocked or resend',
  'mailed',
  'verify',
  'reset',
  'MiB',
] as const
export type Figures = Partial<Record<(typeof COLUMNS)[number], number>>

const WARM_UP = 200
/** No mail in this time: no more will come. */
const SILENCE_MS = 15_000

/** Starts a target on an empty database, and takes it through both flows. */
export async function measure(
  name: string,
  target: Target,
  mongoUri: string,
  sink: MailSink,
  amount: Amount,
): Promise<Figures> {
  const mongo = await MongoClient.connect(mongoUri)
  const db = mongo.db(`bench_${name.replaceAll('-', '_')}`)
  const service = await startService(target.server, {
    MONGO_URL: mongoUri,
    DB: db.databaseName,
    SMTP_PORT: String(sink.port),
  })
  const client = createClient(service.base, amount.atOnce)
  try {
    const people = peopleOf(amount.users)
    for (const [collection, documents] of Object.entries(target.documents(people)))
      await db.collection(collection).insertMany(documents, { ordered: false })
    const figures = await bothFlows({ name, target, client, people, sink, amount })
    const megabytes = service.megabytes()
    return { ...figures, ...(megabytes !== undefined && { MiB: megabytes }) }
  } finally {
    client.close()
    await service.stop()
    await db.dropDatabase()
    await mongo.close()
  }
}

function peopleOf(count: number): Person[] {
  return Array.from({ length: count }, (_none, index) => {
    const username = `person${String(index).padStart(8, '0')}`
    return { username, email: `${username}@bench.example`, isVerified: index % 2 === 0 }
  })
}

interface Run {
  name: string
  target: Target
  client: Client
  people: Person[]
  sink: MailSink
  amount: Amount
}

async function bothFlows({ name, target, client, people, sink, amount }: Run): Promise<Figures> {
  const { requests, resets, atOnce } = amount
  const { forgot, reset, resend, linkOf, verify } = target
  const verified = people.filter(({ isVerified }) => isVerified)
  const unverified = people.filter(({ isVerified }) => !isVerified)
  const linksOf = (of: Person[]) => of.flatMap(({ email }) => sink.links.get(email) ?? [])
  sink.links.clear()

  /** Does the work for all, so many at once, and answers how many a second worked. */
  async function rate<T>(what: string, items: T[], work: (item: T) => Promise<boolean>) {
    const begin = performance.now()
    const done = (await several(items, atOnce, work)).filter(Boolean).length
    const failed = items.length - done
    if (failed > 0) console.error(`${name}, ${what}: ${failed} of ${items.length} did not work`)
    return done / ((performance.now() - begin) / 1000)
  }

  /** How many were answered in a second, and how many mails arrived in one, counted until the last. */
  async function mailed(what: string, of: Person[], ask: (person: Person) => Promise<boolean>) {
    const before = sink.count
    const begin = performance.now()
    const answered = await rate(what, of, ask)
    const arrived = () => sink.count - before
    const lastNews = performance.now()
    while (arrived() < of.length) {
      if (performance.now() - Math.max(lastNews, sink.lastAt) > SILENCE_MS) break
      await sleep(2)
    }
    const lost = of.length - arrived()
    if (lost > 0) console.error(`${name}, ${what}: ${lost} of ${of.length} mails did not arrive`)
    return { answered, arrived: arrived() / ((sink.lastAt - begin) / 1000) }
  }

  const ask = (person: Person) => forgot(client, person)
  // What is created with the first request is created once.
  await mailed('first', verified.splice(0, 1), ask)
  await mailed('warm-up', verified.splice(0, WARM_UP), ask)
  const asking = verified.splice(0, requests)
  const asked = await mailed('forgot', asking, ask)
  const links = linksOf(asking).slice(0, resets)
  const figures: Figures = {
    forgot: asked.answered,
    'forgot mailed': asked.arrived,
    reset: await rate('reset', links, (link) => reset(client, link)),
  }

  const blocked = unverified.splice(0, requests)
  if (resend) {
    const again = (person: Person) => resend(client, person)
    await mailed('first resend', unverified.splice(0, 1), again)
    await mailed('warm-up of resend', unverified.splice(0, WARM_UP), again)
    const resent = await mailed('resend', blocked, again)
    figures['blocked or resend'] = resent.answered
    figures['mailed'] = resent.arrived
  }
  const toOpen = linkOf ? blocked.map((each) => linkOf(each, client.base)) : linksOf(blocked)
  figures['verify'] = await rate('verify', toOpen, (link) => verify(client, link))
  return figures
}
