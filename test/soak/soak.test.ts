import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { type ExampleServer, putSettings } from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import {
  describeWithPostgresql,
  newPostgresql,
  type PostgresServer,
} from '../support/postgresql.ts'
import { recordsIn, type Stored } from '../support/records.ts'
import { freePort } from '../support/serve.ts'
import { opens } from '../faults/people.ts'
import { type Processes, suiteOnPostgresql, suiteService } from '../faults/servers.ts'
import { addResidents, type Day, isEnded, live } from './day.ts'
import { startFront } from './front.ts'

const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 3_600)
const PEOPLE = 20
/** All that was under way is over then: leases, retries, interrupted resets. */
const SETTLED_WITHIN_MS = 600_000

const SETTINGS = { require_email_verification: 'true', resend_cooldown: '1s' }
const newKey = () => randomBytes(32).toString('base64url')
const FIRST_KEY = newKey()

describeWithMongo('A long day of three processes on MongoDB', () => {
  const weather = newWeather()
  const at = suiteService(async () => optionsOf(weather))
  itKeepsItsPromises(at, weather, {
    variables: () => ({ MONGODB_URI: at.proxy.uri }),
    async takeAway(ms) {
      await (Math.random() < 0.5 ? at.proxy.sever() : at.proxy.stall())
      await sleep(ms)
      await at.proxy.restore()
    },
  })
})

describeWithPostgresql('A long day of three processes on PostgreSQL', () => {
  const weather = newWeather()
  let server: PostgresServer
  const at = suiteOnPostgresql(async () => {
    server = await newPostgresql()
    return { server, ...(await optionsOf(weather)) }
  })
  itKeepsItsPromises(at, weather, {
    variables: () => ({}),
    async takeAway(ms) {
      if (Math.random() < 0.5) {
        await server.crash()
        await sleep(ms)
        return server.start()
      }
      const thaw = await server.freeze()
      await sleep(ms)
      await thaw()
    },
  })
})

interface Weather {
  front: Awaited<ReturnType<typeof startFront>> | undefined
  mail: MailAnswer
}

interface Storage {
  variables(): Record<string, string>
  /** For so long nothing can be read or written. */
  takeAway(ms: number): Promise<unknown>
}

function newWeather(): Weather {
  return { front: undefined, mail: 'take' }
}

async function optionsOf(weather: Weather) {
  weather.front = await startFront()
  const port = await freePort()
  weather.front.ports.add(port)
  const variables = { BASE_URL: weather.front.url, PORT: String(port), SIGNING_KEYS: FIRST_KEY }
  return { settings: SETTINGS, variables, mail: { answer: () => weather.mail } }
}

function itKeepsItsPromises(at: Processes, weather: Weather, storage: Storage): void {
  const day = { wrong: [], counts: {}, gaveUp: new Map() } as unknown as Day
  const houses: House[] = []
  let growth: string[] = []

  before('the day', async () => {
    const { front } = weather
    if (!front) throw new Error('there is no front')
    let keys = [FIRST_KEY]
    front.ports.clear()
    await at.server.stop()
    for (let index = 0; index < 3; index += 1) houses.push(newHouse(await freePort()))

    async function open(house: House) {
      const ring = { SIGNING_KEYS: keys.join(',') }
      house.server = await at.another({ PORT: String(house.port), ...ring, ...storage.variables() })
      front?.ports.add(house.port)
    }

    async function close(house: House, how: 'stop' | 'kill') {
      front?.ports.delete(house.port)
      await house.server?.[how]()
    }

    /** A key that each process knows before any signs with it. */
    async function rotateKeys() {
      const key = newKey()
      for (const ring of [
        [...keys, key],
        [key, ...keys],
      ]) {
        keys = ring
        for (const house of houses) {
          await close(house, 'stop')
          await open(house)
        }
      }
    }

    for (const house of houses) await open(house)
    day.at = at
    day.residents = await addResidents(at, PEOPLE)

    const [, , witness = newHouse(0)] = houses
    const ends = performance.now() + SECONDS * 1_000
    const isOver = () => performance.now() > ends
    const half = performance.now() + SECONDS * 500
    const lives = day.residents.map((person) => live(day, person, isOver))
    const troubles = (async () => {
      let isRotated = false
      for (let turn = 0; !isOver(); turn += 1) {
        await sleep(2_000)
        if (!isRotated && performance.now() > half) {
          isRotated = true
          await rotateKeys()
          // Warm again, it is what it is compared with in the end.
          await sleep(Math.min(60_000, SECONDS * 100))
          witness.before = await sizeOf(witness)
        }
        const house = houses[turn % 2]
        const trouble = turn % 5
        if (trouble === 0 && house) {
          await close(house, 'kill')
          await sleep(1_000)
          await open(house)
        }
        if (trouble === 1)
          weather.mail = (['defer', 'drop', 'defer after data'] as const)[turn % 3] ?? 'take'
        if (trouble === 2) await storage.takeAway(3_000)
        if (trouble === 3) at.mail.fallSilent()
        if (trouble === 4) await changeSettings(house?.server, turn)
        await sleep(3_000)
        weather.mail = 'take'
        at.mail.speak()
      }
    })()
    await Promise.all([...lives, troubles])
    await eventually('nothing is under way', () => isSettled(at), SETTLED_WITHIN_MS)
    growth = await growthOf(witness)
    console.log('done:', day.counts, 'mails:', at.mail.mails.length, growth.join(', '))
    console.log('given up:', day.gaveUp)
  })

  after(() => weather.front?.close())

  it('has people who got through their things', () => {
    for (const act of ['forgets', 'signsIn', 'comesBack', 'asks', 'corrects'])
      expect(day.counts[act], act).to.be.greaterThan(0)
  })

  it('let no link work twice, and no session survive a reset', async () => {
    for (const person of day.residents)
      for (const one of person.ended.slice(-5)) await isEnded(day, person, one)
    expect(day.wrong).to.deep.equal([])
  })

  it('leaves each account one password', async () => {
    for (const person of day.residents) {
      const working = []
      for (const password of person.passwords)
        if (await opens(at, person, password).catch(blockedIsIn)) working.push(password)
      expect(working, person.username).to.have.length(1)
    }
  })

  it('has a mail, or a reason why there is none, for each request that was accepted', async () => {
    for (const { id, username, accepted } of day.residents) {
      const events = await recordsIn(at.database, 'audit_events', { account_id: id })
      const asked = events.filter(({ type }) => type === 'password_reset_requested')
      expect(asked.length, username).to.be.at.least(accepted)
      const ends = new Set(events.filter(isEnd).map(jobOf))
      const open = asked.filter(
        ({ reason, ...event }) => !reason && !ends.has(jobOf(event as Stored)),
      )
      expect(open.map(jobOf), username).to.deep.equal([])
    }
  })

  it('leaves records that agree with one another', async () => {
    for (const { id, username } of day.residents) {
      const tokens = await recordsIn(at.database, 'password_reset_tokens', { user_id: id })
      expect(tokens.filter(({ live_of: live }) => live).length, username).to.be.at.most(1)
      for (const token of tokens) {
        const { used_at: used, claimed_at: claimed, completed_at: completed } = token
        expect(Boolean(used), username).to.equal(Boolean(completed))
        if (used) expect(claimed, username).to.be.instanceOf(Date)
        expect([token['new_hash'] ?? null, token['lease_until'] ?? null]).to.deep.equal([
          null,
          null,
        ])
      }
      const done = await recordsIn(at.database, 'audit_events', {
        account_id: id,
        type: 'password_reset_completed',
      })
      expect(done.length, username).to.equal(tokens.filter(({ used_at: used }) => used).length)
    }
  })

  it('let no process grow', () => {
    expect(growth.filter((line) => line.includes('grew'))).to.deep.equal([])
  })
}

interface House {
  port: number
  server: ExampleServer | undefined
  before: Size | undefined
}

type Size = { sockets: number; megabytes: number }

const newHouse = (port: number): House => ({ port, server: undefined, before: undefined })

async function changeSettings(server: ExampleServer | undefined, turn: number) {
  const change = { password_reset_expiration: turn % 2 === 0 ? '1h' : '2h' }
  await (server && putSettings(server, change).catch(() => {}))
}

async function sizeOf({ server }: House): Promise<Size> {
  const folder = `/proc/${server?.pid}`
  const status = await readFile(`${folder}/status`, 'utf8')
  const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1])
  return { sockets: (await readdir(`${folder}/fd`)).length, megabytes: kilobytes / 1024 }
}

async function growthOf(house: House): Promise<string[]> {
  if (!house.before) throw new Error('the day was too short to compare')
  const [before, now] = [house.before, await sizeOf(house)]
  const told = (name: string, one: number, other: number, most: number) =>
    `${other > most ? 'grew: ' : ''}${name} ${one.toFixed(0)} → ${other.toFixed(0)}`
  return [
    told('files and sockets', before.sockets, now.sockets, before.sockets + 20),
    told('MiB', before.megabytes, now.megabytes, before.megabytes * 1.5 + 50),
  ]
}

/** A notice over its limit waits, up to a day. */
const isOpen = ({ state, reason }: Stored) =>
  ['requested', 'resolved'].includes(String(state)) && reason !== 'throttled'

async function isSettled({ database }: Processes): Promise<boolean> {
  const jobs = await recordsIn(database, 'mail_outbox')
  const tokens = await recordsIn(database, 'password_reset_tokens')
  return !jobs.some(isOpen) && !tokens.some((token) => token['lease_until'])
}

const isEnd = ({ type }: Stored) => /_mail_(?:sent|failed)$/.test(String(type))

/** The id of an event begins with what it says, and goes on with its job. */
const jobOf = (event: Stored) => (event._id ?? event['id']).split(':')[1]

/** A login that waits has the right password. */
function blockedIsIn(error: unknown): boolean {
  if (/neither in nor out: 200 verify-email blocked/.test(String(error))) return true
  throw error
}
