import { expect } from 'chai'
import { MongoClient, type CommandStartedEvent } from 'mongodb'
import {
  getRequest,
  openWire,
  postRequest,
  type Wire,
  type WireAnswer,
} from '../../bench/secrecy/wire.ts'
import { newId } from '../../src/crypto/token.ts'
import { eventually } from '../support/eventually.ts'
import { outboxIsQuiet } from '../support/example-server.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { ask, usableRecord } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'

interface Exchange {
  /** All of the answer, byte for byte; the date is masked. */
  answer: string
  /** What the request asked of MongoDB, values by their types. */
  commands: string[]
}

interface Form {
  path: string
  field: string
}

const FORGOT: Form = { path: 'forgot-password', field: 'identifier' }
const RESEND: Form = { path: 'resend-verification', field: 'username' }
const TO_MEASURE_BY = 'nobody-at-all'

const identifiers: Record<string, string> = {
  'a verified user': 'verified',
  'a verified address': 'verified@users.example',
  'a verified address in other case': 'LETTERED@Users.example',
  'an unverified user': 'unverified',
  'an unverified address': 'unverified@users.example',
  'a disabled user': 'disabled',
  'the address of a disabled user': 'disabled@users.example',
  'a user without an address': 'addressless',
  'a user without a password': 'passwordless',
  'an address of two users': 'TWIN@users.example',
  'a user who asked more often than is answered': 'throttled',
  'an unknown address': 'nobody@elsewhere.example',
  // A cooldown is of the name: nobody here is asked for twice.
  'a known name with a space': ' lettered',
  'a name of one letter': 'x',
  'a name of 254 characters': 'n'.repeat(254),
  'a name of 255 characters': 'n'.repeat(255),
  'a name of 10,000 characters': 'n'.repeat(10_000),
  'a name that is not ASCII': 'жанна-дʼАрк-😀',
  'a known name that is not ASCII': 'Ünver',
  'an operator of the database': '{"$ne":null}',
  markup: '"><b>',
}

const { client_id } = CLIENT
const EVIL = 'https://evil.example/'
const carried: Record<string, Record<string, string>> = {
  'nothing carried': {},
  'genuine parameters [full]': { client_id, redirect_uri: CLIENT.redirect_uris[0] },
  'a foreign redirect_uri [full]': { client_id, redirect_uri: EVIL },
  'an unknown client [full]': { client_id: 'nobody', redirect_uri: EVIL, state: 'x' },
}

/** One process answers and another one works on the outbox, so that what is seen of the first is the request path alone. */
describeWithMongo('Nobody learns who has an account (4.2, 4.7)', () => {
  let database: FreshDatabase
  let client: MongoClient
  let web: Harness
  let worker: Harness
  let wire: Wire
  let commands: string[] = []

  before(async function () {
    this.timeout(60_000)
    database = await freshDatabase()
    client = await MongoClient.connect(database.uri, { monitorCommands: true })
    client.on('commandStarted', (event) => {
      if (!isBackground(event)) commands.push(shapeOf(event))
    })
    const drop = async () => {}
    const mail = { answer: () => (isRefused ? 'refuse' : 'take') } as const
    web = await startHarness({
      database: { db: client.db(), drop },
      mail,
      settings: { mails_per_account_per_hour: '14' },
      flows: { beforeForgotPassword: ({ fields }) => (fields.has('denied') ? 'deny' : 'allow') },
      mayLogErrors: true,
    })
    await web.flows.stop({ withinMs: 2_000 })
    await web.flows.start({ workers: false })
    worker = await startHarness({ database: { db: database.db, drop }, mayLogErrors: true })
    await web.addUser({ username: 'verified' })
    await web.addUser({ username: 'lettered', email: 'lettered@users.example' })
    await web.addUser({ username: 'unverified', emailVerified: false })
    await web.addUser({ username: 'disabled', disabled: true })
    await web.addUser({ username: 'addressless', email: undefined })
    await web.addUser({ username: 'passwordless', passwordHash: undefined })
    await web.addUser({ username: 'twin1', email: 'Twin@users.example' })
    await web.addUser({ username: 'twin2', email: 'twin@users.example' })
    const throttled = await web.addUser({ username: 'throttled', emailVerified: false })
    await web.addUser({ username: 'Ünver', email: 'uenver@users.example' })
    wire = await openWire(new URL(web.oauthUrl))
    for (const form of [FORGOT, RESEND]) {
      for (let i = 0; i < 15; i += 1) await send(form, 'throttled')
    }
    await outboxIsQuiet(database.db, 30_000)
    for (const kind of ['password_reset', 'email_verification']) {
      const event = worker.events.find(
        ({ type, reason }) => type === `${kind}_requested` && reason === 'throttled',
      )
      expect(event, `a throttled ${kind}`).to.include({ accountId: throttled.id })
    }
  })

  after(async () => {
    wire?.close()
    await worker?.close()
    await web?.close()
    await client?.close()
    await database?.drop()
  })

  let isRefused = false

  async function send(
    { path, field }: Form,
    identifier: string,
    more: Record<string, string> = {},
    lastByteAfterMs?: number,
  ): Promise<Exchange> {
    commands = []
    const url = new URL(`${web.oauthUrl}/${path}`)
    const bytes = postRequest(url, { [field]: identifier, ...more })
    const answer = await wire.ask({ bytes, lastByteAfterMs })
    return { answer: bytesOf(answer), commands: [...commands] }
  }

  /** Every class of identifiers against one that is unknown. */
  async function expectAllAlike(
    form: Form,
    more: Record<string, string> = {},
    lastByteAfterMs?: number,
  ) {
    const expected = await send(form, TO_MEASURE_BY, more, lastByteAfterMs)
    // Only now: a connection that was idle for longer has been closed, and this request opened another.
    const port = wire.localPort()
    expect(expected.answer).to.match(/^HTTP\/1\.1 200 OK\r\n[^]*data-mode="sent"/)
    const toOutbox = expected.commands.filter((command) => command.includes('mail_outbox'))
    expect(toOutbox).to.have.lengthOf(1)
    const elsewhere = /users|password_reset_tokens|email_verification_tokens|pending_logins|audit/
    expect(expected.commands.filter((command) => elsewhere.test(command))).to.deep.equal([])
    for (const [what, identifier] of Object.entries(identifiers)) {
      expect(await send(form, identifier, more, lastByteAfterMs), what).to.deep.equal(expected)
    }
    // Nobody's connection was treated in another way.
    expect(wire.localPort()).to.equal(port)
    return expected
  }

  for (const form of [FORGOT, RESEND]) {
    describe(`by POST ${form.path}: the same bytes and the same MongoDB commands for each class (ENU-01, TIM-01, TIM-05, TIM-12)`, () => {
      for (const [what, more] of Object.entries(carried)) {
        it(`with ${what} (ENU-01, ENU-02, ENU-07)`, () => expectAllAlike(form, more))
      }

      it('with the id of a form, once and again, and again by another name (ENU-01)', async () => {
        const form_id = newId()
        const first = await expectAllAlike(form, { form_id })
        await outboxIsQuiet(database.db, 30_000)
        expect(await expectAllAlike(form, { form_id })).to.deep.equal(first)
        const { commands } = await send(form, 'verified', { form_id: newId() })
        expect(commands).to.deep.equal(first.commands)
      })

      it('with a check of the host that denies it: the page of those who are allowed, and no job (ENU-01)', async () => {
        const more = { denied: 'yes' }
        const { answer } = await send(form, TO_MEASURE_BY)
        const expected = await send(form, TO_MEASURE_BY, more)
        expect(expected.answer).to.equal(answer)
        expect(expected.commands.join()).not.to.match(/mail_outbox|users/)
        for (const [what, identifier] of Object.entries(identifiers)) {
          expect(await send(form, identifier, more), what).to.deep.equal(expected)
        }
      })

      it('with a body whose last byte comes later [full]', () => expectAllAlike(form, {}, 10))

      it('and echoes nothing of what was typed (ENU-03)', async () => {
        const { answer } = await expectAllAlike(form)
        expect(answer).not.to.match(/verified@|VERIFIED|disabled|nobody|жанна|evil/)
        expect(answer).not.to.match(/set-cookie|x-ratelimit|retry-after/i)
      })

      const states: Record<string, { begin(): Promise<unknown>; end(): Promise<unknown> }> = {
        'the mail server refuses every recipient': {
          begin: async () => (isRefused = true),
          end: async () => (isRefused = false),
        },
        'the mail server does not speak': {
          begin: async () => web.mail.fallSilent(),
          end: async () => web.mail.speak(),
        },
        'SMTP is not configured': {
          begin: () => web.put({ smtp_host: '' }),
          end: () => web.put({ smtp_host: '127.0.0.1' }),
        },
        'nobody works on the outbox': {
          begin: () => worker.flows.stop({ withinMs: 2_000 }),
          end: () => worker.flows.start(),
        },
      }
      for (const [what, { begin, end }] of Object.entries(states)) {
        it(`while ${what} (ENU-05) [full]`, async () => {
          const usual = await send(form, TO_MEASURE_BY)
          await begin()
          try {
            expect(await expectAllAlike(form)).to.deep.equal(usual)
            // And again, when the first of them have failed.
            expect(await expectAllAlike(form)).to.deep.equal(usual)
          } finally {
            await end()
          }
        })
      }

      it('with a cooldown set, which is counted alike for each of them, and counted down alike [full]', async () => {
        const usual = await send(form, TO_MEASURE_BY)
        await web.put({ resend_cooldown: '1h' })
        try {
          const first = await expectAllAlike(form)
          expect(first.answer).to.include('data-seconds="3600"')
          expect(first.commands).to.have.lengthOf(usual.commands.length + 1)
          for (const [what, identifier] of Object.entries(identifiers)) {
            const { commands: again } = await send(form, identifier)
            expect(again, what).to.deep.equal(first.commands)
          }
        } finally {
          await web.put({ resend_cooldown: '0s' })
        }
        expect(await send(form, TO_MEASURE_BY)).to.deep.equal(usual)
      })

      it('and at the same request number, however often one account is asked for (ENU-06) [full]', async () => {
        const expected = await send(form, TO_MEASURE_BY)
        for (let i = 0; i < 15; i += 1) {
          expect(await send(form, 'unverified'), `number ${i}`).to.deep.equal(expected)
          expect(await send(form, TO_MEASURE_BY), `number ${i}`).to.deep.equal(expected)
        }
      })
    })
  }

  it('nor anything about a link, for a reset token of which all but the last character is right (TIM-08)', async () => {
    const bea = await web.addUser({ username: 'bea' })
    await send(FORGOT, 'bea')
    const { link } = await web.mail.mailTo(bea.email ?? '')
    const open = async (token: string) => {
      commands = []
      const bytes = getRequest(new URL(`${web.oauthUrl}/reset-password?token=${token}`))
      return { answer: bytesOf(await wire.ask({ bytes })), commands: [...commands] }
    }
    const token = tokenOf(link)
    const wrong = await open('x'.repeat(43))
    expect(wrong.answer).to.match(/^HTTP\/1\.1 400 /)
    expect(wrong.commands).to.have.lengthOf.at.least(1)
    for (const last of [...'AEIMQUYcgkosw048'].filter((letter) => !token.endsWith(letter))) {
      expect(await open(token.slice(0, 42) + last)).to.deep.equal(wrong)
    }
    expect((await open(token)).answer).to.match(/^HTTP\/1\.1 200 /)
  })

  it('by 50 requests at once for one account: all 200 and equal, and one link lives (ENU-13) [full]', async function () {
    this.timeout(40_000)
    await database.db.collection('mail_outbox').deleteMany({})
    const ann = await web.addUser({ username: 'ann' })
    const url = new URL(`${web.oauthUrl}/${FORGOT.path}`)
    const bytes = postRequest(url, { identifier: 'ann' })
    const wires = await Promise.all(Array.from({ length: 50 }, () => openWire(url)))
    const answers = await Promise.all(wires.map((each) => each.ask({ bytes })))
    for (const each of wires) each.close()
    expect(new Set(answers.map(bytesOf)).size).to.equal(1)
    expect(answers[0]?.status).to.equal(200)
    await outboxIsQuiet(database.db, 30_000)
    const links = web.mail.mails.filter(({ to }) => to.includes(ann.email ?? ''))
    const usable = []
    for (const { link } of links) if (await usableRecord(web, link)) usable.push(link)
    expect(usable).to.have.lengthOf(1)
  })
})

describe('A process that also works on the outbox', () => {
  const failing = { refuse: 'refuses', defer: 'defers', drop: 'drops' } as const
  for (const [answer, what] of Object.entries(failing)) {
    it(`answers alike whoever asks while the mail server ${what} (ENU-05)`, async () => {
      let isFailing = true
      const mail = {
        answer: () => (isFailing ? (answer as keyof typeof failing) : ('take' as const)),
      }
      const h = await startHarness({ mail, mayLogErrors: true })
      const wire = await openWire(new URL(h.oauthUrl))
      try {
        const ann = await h.addUser({ username: 'ann' })
        await h.addUser({ username: 'ben', emailVerified: false })
        const seen = new Set<string>()
        for (let round = 0; round < 3; round += 1) {
          for (const identifier of ['ann', 'ben', 'eve', 'ann@users.example']) {
            const url = new URL(`${h.oauthUrl}/${FORGOT.path}`)
            seen.add(bytesOf(await wire.ask({ bytes: postRequest(url, { identifier }) })))
          }
          await eventually('a mail failed', () => h.mail.answered[answer as 'refuse'] > round)
        }
        expect(seen.size).to.equal(1)
        isFailing = false
        await ask(h, 'ann')
        expect((await h.mail.mailTo(ann.email ?? '')).link).to.include('token=')
      } finally {
        wire.close()
        await h.close()
      }
    })
  }
})

function bytesOf({ head, body }: Pick<WireAnswer, 'head' | 'body'>): string {
  return `${head}\r\n\r\n${body}`.replace(/^(date: ).*$/im, '$1masked')
}

// Looks for a newer version of the settings, notes of the keys, and signs of life.
function isBackground({ commandName, command }: CommandStartedEvent): boolean {
  const isAlive = ['hello', 'ping', 'endSessions'].includes(commandName)
  return isAlive || command['find'] === 'settings' || command[commandName] === 'key_rings'
}

function shapeOf({ commandName, command }: CommandStartedEvent): string {
  const ofTheDriver = new Set(['lsid', 'txnNumber', '$clusterTime'])
  const asked = Object.entries(command).filter(([name]) => !ofTheDriver.has(name))
  return `${commandName} ${String(command[commandName])} ${JSON.stringify(typesIn(asked))}`
}

function typesIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(typesIn)
  const isPlain =
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  if (isPlain) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, typesIn(v)]))
  return value === null ? 'null' : typeof value === 'object' ? value.constructor.name : typeof value
}
