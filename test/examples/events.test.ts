import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { expect } from 'chai'
import type { Document } from 'mongodb'
import { Webhook } from 'standardwebhooks'
import { countEvents } from '../../examples/events/opentelemetry.ts'
import { metricsOf } from '../../examples/events/prom-client.ts'
import { sendWebhooks } from '../../examples/events/webhook.ts'
import { mongoStore, type AccountFlows, type AuditEvent } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { type Harness, suiteHarness } from '../support/harness.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { startProcess } from '../support/process.ts'
import { serve, suiteServed } from '../support/serve.ts'
import { flowsStore } from '../../src/store/index.ts'
import { systemClock } from '../../src/clock.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

const FOLDER = new URL('../../examples/events/', import.meta.url)

/** How often each series was counted, by its type and reason. */
type Series = Record<string, number>

/** What each SDK has counted. */
const counters: Record<string, (flows: AccountFlows) => () => Promise<Series>> = {
  opentelemetry(flows) {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter })
    countEvents(flows, new MeterProvider({ readers: [reader] }).getMeter('of the test'))
    return async () => {
      exporter.reset()
      await reader.forceFlush()
      const [counter] = exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      expect(counter?.descriptor.name).to.equal('account_flows.events')
      return Object.fromEntries(
        (counter?.dataPoints ?? []).map(({ attributes, value }) => {
          const { type, reason = '', ...others } = attributes
          expect(others).to.deep.equal({})
          return [`${String(type)} ${String(reason)}`, Number(value)]
        }),
      )
    }
  },

  'prom-client'(flows) {
    const answer = metricsOf(flows)
    return async () => {
      const { url, close } = await serve((req, res) => void answer(req, res))
      const response = await fetch(`${url}/metrics`)
      expect(response.headers.get('content-type')).to.match(/^text\/plain; version=/)
      const text = await response.text()
      await close()
      const line = /^account_flows_events_total\{type="(\w+)",reason="(\w*)"\} (\d+)$/gm
      const found = [...text.matchAll(line)]
      expect(found).to.have.length((text.match(/^\w+\{/gm) ?? []).length)
      return Object.fromEntries(found.map(([, type, why, n]) => [`${type} ${why}`, Number(n)]))
    }
  },
}

/** What people and strangers do: each time by another account, from another client and browser. */
async function journeys(h: Harness, name: string): Promise<void> {
  const user = await h.addUser({ username: name })
  await h.forgot(`nobody-${name}`, { client_id: `made-up-${name}` })
  const link = await user.forgets()
  await h.reset(link, 'a new password')
  await h.reset(link, 'another password')
  await h.addUser({ username: `${name}-disabled`, disabled: true })
  await h.forgot(`${name}-disabled`)
  await fetch(`${h.baseUrl}/admin/api/settings`, { headers: { authorization: `Bearer ${name}` } })
  await h.isIdle()
}

describe('The examples of metrics [full]', () => {
  const h = suiteHarness()

  it('count each event by type and reason, in as many series for many accounts as for one', async () => {
    const reads = Object.entries(counters).map(([name, attach]) => [name, attach(h.flows)] as const)
    await journeys(h, 'first')
    const before = new Map<string, Series>()
    for (const [name, read] of reads) before.set(name, await read())
    // Of one network, few passwords wait to be hashed.
    for (let index = 0; index < 15; index += 1) await journeys(h, `user-${index}`)

    const counted: Series = {}
    for (const { type, reason = '' } of h.events) {
      counted[`${type} ${reason}`] = (counted[`${type} ${reason}`] ?? 0) + 1
    }
    expect(counted).to.include({ 'password_reset_completed ': 16 })
    expect(counted).to.include({ 'admin_auth_failed wrong_token': 16 })
    for (const [name, read] of reads) {
      expect(await read(), name).to.deep.equal(counted)
      expect(Object.keys(before.get(name) ?? {}), name).to.have.members(Object.keys(counted))
    }
  })
})

it('The examples of events have at most 40 lines each', async () => {
  const files = await readdir(FOLDER)
  expect(files).to.have.members(['opentelemetry.ts', 'prom-client.ts', 'webhook.ts'])
  for (const file of files) {
    const lines = (await readFile(new URL(file, FOLDER), 'utf8')).trimEnd().split('\n')
    expect(lines.length, file).to.be.at.most(40)
  }
})

describeWithMongo('The example of a webhook [full]', function (this: Mocha.Suite) {
  const database = suiteDatabase()
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const taken: { id: string; body: Body }[] = []
  type Body = { type: string; timestamp: string; data: Record<string, unknown> }
  /** What the endpoint does with the next requests; 204 after them. `undefined`: it never answers. */
  const answers: ((id: string, res: ServerResponse) => void)[] = []
  let asked: string[] = []
  let ends: (() => unknown)[] = []

  async function receive(req: IncomingMessage, res: ServerResponse) {
    let text = ''
    for await (const chunk of req) text += String(chunk)
    const headers = req.headers as Record<string, string>
    expect(req.method).to.equal('POST')
    // It throws where the signature is wrong, which fails the test.
    const body = new Webhook(secret).verify(text, headers) as Body
    const id = headers['webhook-id'] ?? ''
    asked.push(id)
    const answer = answers.shift()
    if (answer) return answer(id, res)
    taken.push({ id, body })
    res.writeHead(204).end()
  }

  const kept = () => flowsStore(mongoStore(database.db), systemClock)

  const receiver = suiteServed((req, res) => void receive(req, res))
  before(() => kept().start())
  beforeEach(async () => {
    asked = []
    taken.length = 0
    await events().deleteMany({})
  })
  afterEach(async () => {
    for (const end of ends) await end()
    ends = []
  })

  const events = () => database.db.collection<Document & { _id: string }>('audit_events')
  const idsTaken = () => taken.map(({ id }) => id)
  const unsent = () => events().countDocuments({ webhook_sent_at: null })
  const allAreSent = () => eventually('all are sent', async () => (await unsent()) === 0)

  /** The minute of each attempt is over. */
  const aMinuteLater = () =>
    events().updateMany(
      { webhook_due_at: { $ne: null } },
      { $set: { webhook_due_at: new Date(0) } },
    )

  async function record(id: string, at = new Date()) {
    const by = { accountId: 'u1', address: '192.0.2.1', userAgent: 'a browser' }
    const details = { oauth: 1, idp: 2 }
    const event: AuditEvent = { id, at, ...by, type: 'sessions_ended', details }
    expect(await kept().audit.record(event, 86_400_000)).to.equal(true)
  }

  /** In this process, until the end of the test. */
  function send() {
    const stop = new AbortController()
    const sending = sendWebhooks(database.db, receiver.url, secret, stop.signal)
    const end = () => {
      stop.abort()
      return sending
    }
    ends.push(end)
    return end
  }

  /** In a process of its own. */
  function start(work: 'send' | 'record') {
    const script = fileURLToPath(new URL('events-process.ts', import.meta.url))
    const args = ['--import', 'tsx/esm', script, work, database.uri, receiver.url, secret]
    const started = startProcess(process.execPath, args, process.env)
    ends.push(() => started.process.kill('SIGKILL'))
    return started
  }

  it('posts each event once, signed, without who asked, also where two processes send', async () => {
    const ids = Array.from({ length: 50 }, (_, index) => `event:${index}`)
    send()
    send()
    for (const id of ids) await record(id, new Date(1_700_000_000_000))
    await allAreSent()
    expect(idsTaken().toSorted()).to.deep.equal(ids.toSorted())
    expect(taken[0]?.body).to.deep.equal({
      type: 'sessions_ended',
      timestamp: '2023-11-14T22:13:20.000Z',
      data: { account_id: 'u1', details: { oauth: 1, idp: 2 } },
    })
  })

  it('posts an event that comes late, by a process whose clock is behind or that stood still', async () => {
    send()
    await record('in time')
    await allAreSent()
    await record('late')
    await events().updateOne({ _id: 'late' }, { $set: { recorded_at: new Date(0) } })
    await events().insertOne({ _id: 'of 0.1.0', type: 'sessions_ended', at: new Date() })
    await allAreSent()
    expect(new Set(idsTaken())).to.deep.equal(new Set(['in time', 'late', 'of 0.1.0']))
  })

  it('posts an event whose process was killed before any listener heard of it', async () => {
    const { process: child, exited, stdout } = start('record')
    await exited
    expect(child.signalCode).to.equal('SIGKILL')
    expect(stdout()).to.include('password_reset_mail_sent').and.not.include('completed')
    send()
    await allAreSent()
    expect(taken.map(({ body }) => body.type)).to.include('password_reset_completed')
  })

  it('posts an event again that was refused, redirected or not answered, and others meanwhile', async () => {
    const elsewhere: string[] = []
    const other = await serve((req, res) => {
      elsewhere.push(req.url ?? '')
      res.end()
    })
    ends.push(() => other.close())
    const location = `${other.url}/`
    answers.push(
      (_id, res) => res.writeHead(500).end(),
      (_id, res) => res.writeHead(307, { location }).end(),
      () => {},
    )
    await record('refused')
    send()
    for (const attempt of [1, 2, 3]) {
      await eventually(`attempt ${attempt}`, () => asked.length === attempt)
      if (attempt < 3) await aMinuteLater()
    }
    await record('another')
    const goesOn = () => {
      // In Node 20 a time-out that nobody holds would go with it, and never come.
      collectGarbage()
      return idsTaken().includes('another')
    }
    await eventually('the other one goes on', goesOn, 20_000)
    expect(idsTaken()).to.deep.equal(['another'])
    await aMinuteLater()
    await allAreSent()
    expect(asked).to.deep.equal(['refused', 'refused', 'refused', 'another', 'refused'])
    expect(idsTaken()).to.deep.equal(['another', 'refused'])
    expect(elsewhere).to.deep.equal([])
  })

  for (const [when, answer] of Object.entries({
    'before the endpoint answers': () => {},
    'after the endpoint took it': (id: string, res: ServerResponse) => {
      taken.push({ id, body: {} as Body })
      res.writeHead(204).end()
    },
  })) {
    it(`posts an event again, with the same id, where its process is killed ${when}`, async () => {
      const { process: child, exited } = start('send')
      answers.push((id, res) => {
        child.kill('SIGKILL')
        child.once('close', () => answer(id, res))
      })
      await record('of the dead')
      await exited
      expect(child.signalCode).to.equal('SIGKILL')
      await record('another')
      send()
      await eventually('the other one', () => idsTaken().includes('another'))
      expect(asked).to.deep.equal(['of the dead', 'another'])
      await aMinuteLater()
      await allAreSent()
      expect(asked).to.deep.equal(['of the dead', 'another', 'of the dead'])
      // Whoever drops doubles by their id has each once.
      expect(new Set(idsTaken())).to.deep.equal(new Set(['of the dead', 'another']))
    })
  }

  it('ends when it is told to, also while the endpoint does not answer', async () => {
    answers.push(() => {})
    await record('first')
    const end = send()
    await eventually('it is asked', () => asked.length === 1)
    await end()
    await record('second')
    expect(asked).to.deep.equal(['first'])
    await aMinuteLater()
    send()
    await allAreSent()
    expect(idsTaken()).to.have.members(['first', 'second'])
  })

  it('starts with no secret that is too short to sign with', async () => {
    for (const short of ['', 'whsec_', `whsec_${randomBytes(23).toString('base64')}`]) {
      const { signal } = new AbortController()
      const sending = sendWebhooks(database.db, receiver.url, short, signal)
      expect(await sending.catch((error: unknown) => error)).to.be.instanceOf(TypeError)
    }
    expect(asked).to.deep.equal([])
  })

  it('leaves the events as they were told, and the indexes of the store right', async () => {
    send()
    await record('sent')
    await allAreSent()
    const store = kept()
    await store.start()
    const [event] = await store.audit.list({ limit: 1 })
    expect(event)
      .to.include({ id: 'sent', accountId: 'u1' })
      .and.not.have.any.keys('webhook_sent_at')
    expect((await store.inspect()).wrongIndexes).to.deep.equal([])
  })

  it('finds what is due by an index that holds nothing else', async () => {
    await send()()
    const found = events().find({ webhook_sent_at: null })
    const plan = JSON.stringify(await found.sort({ webhook_due_at: 1, recorded_at: 1 }).explain())
    expect(plan).to.include('webhook_due_at_1_recorded_at_1').and.not.include('COLLSCAN')
  })
})
