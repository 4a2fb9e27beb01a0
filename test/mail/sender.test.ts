import { expect } from 'chai'
import { createTransport } from 'nodemailer'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import type { AccountFlowsError } from '../../src/errors.ts'
import type { MailTransport, TransportAnswer, TransportMail, User } from '../../src/index.ts'
import type { MailSender } from '../../src/mail/sending.ts'
import { createSettingsKeeper, type SettingsKeeper } from '../../src/settings/settings.ts'
import { memoryMailbox } from '../../src/mail/smtp/transport.ts'
import { createMailSender } from '../../src/mail/smtp/sender.ts'
import { adminOf, outcomeOf, stepOf, suiteAdmin } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { fallsSilent, type FaultySmtp } from '../support/mail-server.ts'
import { type Person, tokenOf } from '../support/person.ts'
import { suiteHarness } from '../support/harness.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  connectTo,
  failureOf,
  MAIL,
  NO_ROTATION,
  noSignal,
  sendThrough,
  suiteSmtp,
} from './smtp-suite.ts'
import { keptInMemory } from '../support/kept.ts'

const FLIPS = 100

describe('createMailSender()', () => {
  const box = createSecretBox(createKeyRing([Buffer.alloc(32, 1)]))
  const newKeeper = () => createSettingsKeeper(keptInMemory().settings, box, () => {})
  const senderOf = (settings: SettingsKeeper, transport?: MailTransport) =>
    createMailSender(settings.current, movableClock, NO_ROTATION, transport)
  let keeper: SettingsKeeper
  let sender: MailSender
  const { start, sockets } = suiteSmtp()

  beforeEach(() => {
    keeper = newKeeper()
    sender = senderOf(keeper)
  })
  afterEach(() => sender.close())

  const settingsOf = ({ port }: FaultySmtp, name: string) => ({
    smtp_host: '127.0.0.1',
    smtp_port: String(port),
    smtp_from: `accounts@${name}.example`,
    smtp_username: `user of ${name}`,
    smtp_password: `password of ${name}`,
  })

  const send = () => sendThrough(sender)

  it('sends under the settings given, with user and password as a pair', async () => {
    const server = await start()
    await keeper.change(settingsOf(server, 'a'))
    await send()
    await keeper.change({ smtp_password: '' })
    await send()
    await keeper.change({ smtp_password: 'password of a', smtp_username: '' })
    await send()
    expect(server.mails.map(({ user }) => user)).to.deep.equal(['user of a', undefined, undefined])
    expect(server.logins).to.have.length(1)
  })

  it('shows the name of the sender before its address, and only the address without one', async () => {
    const server = await start()
    await keeper.change(settingsOf(server, 'a'))
    for (const smtp_from_name of ['', 'Accounts', '']) {
      await keeper.change({ smtp_from_name })
      await send()
    }
    const senders = server.mails.map(({ raw }) => /^From: (.+)\r$/m.exec(raw)?.[1])
    const address = 'accounts@a.example'
    expect(senders).to.deep.equal([address, `Accounts <${address}>`, address])
  })

  it('lets answers go where the admin says, and to the sender otherwise', async () => {
    const server = await start()
    await keeper.change(settingsOf(server, 'a'))
    for (const mail_reply_to of ['', 'help@a.example', '']) {
      await keeper.change({ mail_reply_to })
      await send()
    }
    const replies = server.mails.map(({ raw }) => /^Reply-To: (.+)\r$/m.exec(raw)?.[1])
    expect(replies).to.deep.equal([undefined, 'help@a.example', undefined])
  })

  it('can send once host, port and sender are set, or into a development mailbox', async () => {
    const server = await start()
    const { smtp_from, ...others } = settingsOf(server, 'a')
    await keeper.change(others)
    expect(sender.canSend()).to.equal(false)
    const error = await failureOf(send())
    expect([error.code, error.message]).to.deep.equal(['ERR_MAIL_FAILED', 'SMTP is not configured'])
    expect(server.connections).to.equal(0)

    const mailbox = memoryMailbox()
    expect(senderOf(newKeeper(), mailbox).canSend()).to.equal(false)
    const developing = senderOf(keeper, mailbox)
    expect(developing.canSend()).to.equal(true)
    await sendThrough(developing)
    expect(mailbox.messages()).to.have.length(1)

    await keeper.change({ smtp_from })
    expect(sender.canSend()).to.equal(true)
    await send()
    expect(server.mails).to.have.length(1)
    expect(mailbox.messages()).to.have.length(1)
  })

  it('closes idle connections when the settings change, and busy ones when their mail is through', async () => {
    const [a, b] = [await start(), await start()]
    await keeper.change(settingsOf(a, 'a'))
    const busy = await connectTo(sender)
    await send()
    await keeper.change(settingsOf(b, 'b'))
    await send()
    await eventually('the idle one says goodbye', () => a.steps.QUIT === 1 && a.open === 1)
    await busy.send(MAIL)
    await busy.release()
    await eventually('the busy one says goodbye', () => a.steps.QUIT === 2 && a.open === 0)
    expect(a.mails.map(({ from }) => from)).to.deep.equal(Array(2).fill('accounts@a.example'))
    expect(b.mails.map(({ from }) => from)).to.deep.equal(['accounts@b.example'])
    expect(b.logins.map(({ user }) => user)).to.deep.equal(['user of b'])
  })

  it('closes also those that a mail of before the change waits for', async () => {
    const [a, b] = [await start(), await start()]
    await keeper.change(settingsOf(a, 'a'))
    const busy = await Promise.all(Array.from({ length: 5 }, () => connectTo(sender)))
    await busy[0]?.send(MAIL)
    // Mails flow, so it has a place before a connection is free.
    const waiting = connectTo(sender)
    await keeper.change(settingsOf(b, 'b'))
    await send()
    for (const one of busy) await one.release()
    const last = await waiting
    await last.send(MAIL)
    await last.release()
    await keeper.change(settingsOf(a, 'a'))
    await send()
    // Five, one for the mail that waited, and one once the settings came back.
    expect(a.connections).to.equal(7)
    expect([a.mails.length, b.mails.length]).to.deep.equal([3, 1])
  })

  it('opens no sixth one to a server where the settings change while a mail takes its idle one', async () => {
    const [a, b] = [await start(), await start()]
    const [before, after] = [keeper, newKeeper()]
    await before.change(settingsOf(a, 'a'))
    await after.change(settingsOf(b, 'b'))
    let { current } = before
    const changed = createMailSender(() => current(), movableClock, NO_ROTATION)
    const busy = await Promise.all(Array.from({ length: 4 }, () => connectTo(changed)))
    await sendThrough(changed)
    await changed.withSlot(new AbortController().signal, async ({ open, send }) => {
      const opening = open()
      ;({ current } = after)
      const other = sendThrough(changed)
      await opening
      await send(MAIL)
      await other
    })
    expect(a.connections).to.equal(5)
    for (const one of busy) await one.release()
    changed.close()
    await eventually('all are closed', () => sockets.open() === 0)
    expect([a.mails.length, b.mails.length]).to.deep.equal([2, 1])
  })

  for (const [setting, value, connections] of [
    ['smtp_from', 'other@a.example', 2],
    ['smtp_username', 'another user', 2],
    ['smtp_password', 'another password', 2],
    ['smtp_tls', 'none', 2],
    ['password_reset_expiration', '2h', 1],
  ] as const) {
    it(`opens ${connections === 2 ? 'another' : 'no other'} connection where only ${setting} changes`, async () => {
      const server = await start()
      await keeper.change(settingsOf(server, 'a'))
      await send()
      await keeper.change({ [setting]: value })
      await send()
      expect([server.connections, server.logins.length]).to.deep.equal([connections, connections])
      await eventually('no old one is open', () => server.open === 1)
    })
  }

  it('closes all on close, and opens again for the next mail', async () => {
    const server = await start()
    await keeper.change(settingsOf(server, 'a'))
    await send()
    sender.close()
    await eventually('it says goodbye', () => server.steps.QUIT === 1 && server.open === 0)
    await send()
    expect([server.connections, server.mails.length]).to.deep.equal([2, 2])
  })

  it('is not held up by a server that never answers, once the settings name another', async () => {
    const [a, b] = [await start({ fault: fallsSilent('greeting') }), await start()]
    await keeper.change(settingsOf(a, 'a'))
    const deadline = new AbortController()
    const outcome = () =>
      sendThrough(sender, MAIL, deadline.signal).then(
        () => 'no slot',
        ({ code }: AccountFlowsError) => code,
      )
    const stalled = Array.from({ length: 8 }, outcome)
    await eventually('five wait for the server', () => a.connections === 5)
    await keeper.change(settingsOf(b, 'b'))
    await send()
    expect(b.mails).to.have.length(1)
    // The settings that come back find the same five sockets.
    await keeper.change(settingsOf(a, 'a'))
    const again = outcome()
    await eventually('b is left', () => b.open === 0)
    expect(sockets.open()).to.equal(5)
    deadline.abort()
    const failed = Array<string>(5).fill('ERR_MAIL_FAILED')
    const waited = Array<string>(4).fill('no slot')
    expect(await Promise.all([...stalled, again])).to.deep.equal([...failed, ...waited])
    await eventually('all are closed', () => sockets.open() === 0)
    expect(a.connections).to.equal(5)
  })

  it(`sends every mail whole, to one of two servers, while the settings change ${FLIPS} times (RACE-10) [full]`, async () => {
    const [a, b] = [await start({ offersPipelining: true }), await start()]
    await keeper.change(settingsOf(a, 'a'))
    let [sent, isOver] = [0, false]
    let goOn = () => {}
    const subjects = new Map<string, string>()
    const subjectOf = (raw: string) => /^Subject: (.+)$/m.exec(raw)?.[1]?.trim() ?? ''

    async function sendMany(loop: number) {
      for (let mail = 0; !isOver || mail < 10; mail += 1) {
        const subject = `mail ${loop}-${mail}`
        await sender.withSlot(noSignal(), async ({ open, send }) => {
          const { smtpFrom } = keeper.current()
          await open()
          await send({ ...MAIL, subject })
          subjects.set(subject, String(smtpFrom))
          sent += 1
          goOn()
        })
      }
    }

    const loops = Array.from({ length: 8 }, (_, loop) => sendMany(loop))
    for (let flips = 1; flips <= FLIPS; flips += 1) {
      await keeper.change(flips % 2 === 0 ? settingsOf(a, 'a') : settingsOf(b, 'b'))
      await new Promise<void>((resolve) => (goOn = resolve))
    }
    isOver = true
    await Promise.all(loops)

    expect(sent).to.be.at.least(FLIPS)
    expect(a.mails.length + b.mails.length).to.equal(sent)
    for (const [name, server] of Object.entries({ a, b })) {
      expect(server.mails.length).to.be.greaterThan(0)
      for (const { from, raw, user } of server.mails) {
        expect([from, user]).to.deep.equal([`accounts@${name}.example`, `user of ${name}`])
        expect(raw).to.include(`From: accounts@${name}.example`)
        expect(raw).to.match(/t1[^]*--\S+--\s*$/)
        expect(subjects.get(subjectOf(raw))).to.equal(from)
      }
      for (const { user, password } of server.logins) {
        expect([user, password]).to.deep.equal([`user of ${name}`, `password of ${name}`])
      }
    }
    const all = [...a.mails, ...b.mails].map(({ raw }) => subjectOf(raw))
    expect(new Set(all).size).to.equal(sent)
  })
})

type Send = MailTransport['send']

/** Settles one promise again and again. */
const settledBy = (...ends: (TransportAnswer | Error)[]) =>
  new Promise<TransportAnswer>((...settle) => {
    for (const end of ends) settle[end instanceof Error ? 1 : 0](end as never)
  })

const accepted = (id?: string) => ({ accepted: true, ...(id !== undefined && { id }) }) as const
const refused = (reason: string) => ({ accepted: false, isForGood: true, reason }) as const
const notNow = (reason: string) => ({ accepted: false, isForGood: false, reason }) as const

const linkOf = ({ text }: TransportMail) => /https?:\/\/\S+/.exec(text)?.[0] ?? ''

describe('A transport of the host, in the place of SMTP', () => {
  const logged: string[] = []
  let handed: TransportMail[] = []
  let answers: Send[] = []
  const transport: MailTransport = {
    async send(mail, signal) {
      handed.push(mail)
      const answer = answers.shift() ?? (async () => accepted())
      return answer(mail, signal)
    },
  }
  const h = suiteHarness({
    flows: {
      transport,
      log: (level, message, details) => logged.push(JSON.stringify([level, message, details])),
    },
    settings: { smtp_from_name: 'Accounts' },
  })
  const admin = suiteAdmin(h)

  beforeEach(() => {
    ;[handed, answers] = [[], []]
    logged.splice(0)
  })

  afterEach('an honest mail leaves, and nothing goes by SMTP', async () => {
    answers = []
    const user = await h.addVerified()
    await h.forgot(user.username)
    await h.isIdle()
    await resets(user)
    expect(h.mail.mails).to.deep.equal([])
  })

  const mailsTo = ({ email }: User) => handed.filter(({ to }) => to === email)
  const linkTo = (user: User) => linkOf(mailsTo(user).at(-1) ?? expect.fail('no mail'))
  async function resets(user: Person) {
    expect((await user.choosesPassword('a new password', linkTo(user))).mode).to.equal('done')
  }
  const failuresOf = (user: Person) => user.events('password_reset_mail_failed')

  /** The mail of a request, once it left, waits to be tried again, or is a dead letter. */
  async function asked(user: Person, state: 'sent' | 'waiting' | 'dead') {
    const { mail_id } = await admin.sendReset({ id: user.id })
    if (state === 'waiting') await eventually('it failed', () => failuresOf(user)[0])
    return outcomeOf(h, mail_id, state)
  }

  it('is handed one composed mail, whose link works by then, and its id is kept', async () => {
    const user = await h.addVerified()
    let mode: string | undefined
    answers = [
      async (mail) => {
        mode = (await createUserAgent().get(linkOf(mail))).mode
        return accepted('service-id-1')
      },
    ]
    const { mail_id } = await asked(user, 'sent')
    const [mail] = handed
    expect(mode).to.equal('form')
    expect(Object.keys(mail ?? {}).toSorted()).to.deep.equal(
      ['from', 'headers', 'html', 'messageId', 'subject', 'text', 'to'].toSorted(),
    )
    expect(mail).to.deep.include({
      from: { name: 'Accounts', address: 'accounts@idp.example' },
      to: user.email,
      headers: {
        'Auto-Submitted': 'auto-generated',
        'X-Auto-Response-Suppress': 'All',
        'X-Account-Flows-Mail': 'password_reset',
      },
    })
    expect(mail?.html).to.include('token=')
    expect(mail?.messageId).to.match(/^<[\w-]{36}@idp\.example>$/)
    const record = await admin.showMail({ mail_id })
    expect(record).to.include({ message_id: mail?.messageId, queue_id: 'service-id-1' })
    await resets(user)
  })

  it('keeps no id that is none, or that has a piece of the link, and of two the first: it sent one mail', async () => {
    const ids: ((mail: TransportMail) => unknown)[] = [
      () => '',
      () => 42,
      () => 'two words',
      () => 'a\r\nb',
      () => 'x'.repeat(201),
      linkOf,
      (mail) => `id-${tokenOf(linkOf(mail)).slice(0, 25)}`,
    ]
    for (const idOf of ids) {
      const user = await h.addVerified()
      // The types forbid some of these; a host in JavaScript has no types.
      answers = [async (mail) => accepted(idOf(mail) as string)]
      const { mail_id } = await asked(user, 'sent')
      expect(await admin.showMail({ mail_id })).to.not.have.property('queue_id')
      expect(JSON.stringify(h.events)).to.not.include(tokenOf(linkTo(user)).slice(0, 25))
    }
    const user = await h.addVerified()
    answers = [() => settledBy(accepted('first'), accepted('second'))]
    const { mail_id } = await asked(user, 'sent')
    expect(await admin.showMail({ mail_id })).to.include({ queue_id: 'first' })
    expect(user.events('password_reset_mail_sent')).to.have.length(1)
  })

  it('that refuses for good makes a dead letter, and its reason is kept without address, link and control characters', async () => {
    const user = await h.addVerified()
    const long = 'long '.repeat(1_000)
    answers = [
      async (mail) =>
        refused(`<${mail.to}>\r\nis on\u0000our \u001b[31mlist: ${linkOf(mail)} ${long}`),
    ]
    const dead = await asked(user, 'dead')
    expect(dead).to.include({ reason: 'ERR_MAIL_REFUSED', attempts: 1 })
    const [failure] = failuresOf(user)
    expect(failure?.details).to.include({ step: 'transport', code: 'refused' })
    expect(Object(failure?.details).reply)
      .to.match(/^<…> is on our \[31mlist: /)
      .and.match(/^[^\p{C}]{1,200}$/u)
    const told = JSON.stringify([h.events, logged, await admin.showMail({ mail_id: dead.mail_id })])
    expect(told).to.not.include(tokenOf(linkTo(user)).slice(0, 20))
    expect(JSON.stringify(failure)).to.not.include(user.email)
    expect(logged.join()).to.include('refused the mail for good (refused)')
    expect((await h.reset(linkTo(user), 'a new password')).status).to.equal(400)
  })

  const rejects = (error: unknown) => async () => {
    throw error
  }
  const coded = (code: string) => Object.assign(new Error('odd'), { code })
  const withCode = (code: string) => rejects(coded(code))
  const cause = new Error('connect ECONNREFUSED 192.0.2.1:443')
  const unfetched = new TypeError('fetch failed', { cause })
  const unheard = new TypeError('fetch failed', { cause: coded('UND_ERR_HEADERS_TIMEOUT') })
  const late = new DOMException('late', 'TimeoutError')
  const throws = () => {
    throw new Error('No key')
  }
  const busy = notNow('Busy')
  const odd: [what: string, code: string, reply: RegExp, send: () => unknown][] = [
    ['throws before it does anything', 'unknown reason', /^No key$/, throws],
    ['rejects with what is no error', 'unknown reason', /^$/, rejects('no')],
    ['rejects as fetch does', 'unknown reason', /^fetch failed: connect ECONN/, rejects(unfetched)],
    ['has a code', 'ECONNRESET', /^odd$/, withCode('ECONNRESET')],
    ['is late by its own clock', 'out of time', /^late$/, rejects(late)],
    ['is late as fetch is', 'out of time', /^fetch failed: odd$/, rejects(unheard)],
    ['cannot be reached in time', 'ETIMEDOUT', /^odd$/, withCode('ETIMEDOUT')],
    ['has a code that is none', 'unknown reason', /^odd$/, withCode('x'.repeat(99))],
    ['rejects after it answered', 'try again', /^Busy$/, () => settledBy(busy, new Error('later'))],
    ['says try again', 'try again', /^Busy$/, () => busy],
    ['does not say for how long', 'try again', /^$/, () => ({ accepted: false, reason: 42 })],
  ]
  for (const [what, code, reply, send] of odd) {
    it(`that ${what} is asked again later, with a new token, and one sentence says why`, async () => {
      const user = await h.addVerified()
      answers = [send as Send]
      const { mail_id } = await asked(user, 'waiting')
      const [failure] = failuresOf(user)
      const { reply: told = '', ...details } = Object(failure?.details)
      expect(failure?.reason).to.equal('ERR_MAIL_FAILED')
      expect(details).to.deep.equal({ step: 'transport', code })
      expect(told).to.match(reply)
      const lines = logged.filter((line) => line.includes('transport'))
      expect(lines).to.have.length(1)
      expect(lines[0]).to.include(`The transport did not accept the mail (${code})`)
      await moveTime(60_000)
      await outcomeOf(h, mail_id, 'sent')
      const [first = '', ...others] = mailsTo(user).map(linkOf)
      expect(others).to.have.length(1)
      expect((await h.reset(first, 'a new password')).status).to.equal(400)
      await resets(user)
    })
  }

  const listed = { accepted: ['ann@example.com'], rejected: [] }
  const nonsense = [undefined, null, true, 'accepted', {}, { accepted: 'yes' }, listed]
  it('that answers nonsense may have sent the mail: it is a dead letter, and comes only once', async () => {
    for (const answer of nonsense) {
      const user = await h.addVerified()
      answers = [(async () => answer) as Send]
      expect(await asked(user, 'dead')).to.include({ reason: 'ERR_MAIL_REFUSED' })
      expect(failuresOf(user)[0]?.details).to.include({ step: 'transport', code: 'no answer' })
      expect(mailsTo(user)).to.have.length(1)
    }
  })

  for (const late of ['never answers', 'accepts too late', 'fails too late']) {
    it(`that ${late} is given up after 30 seconds, its signal says so, and it is asked again`, async () => {
      const user = await h.addVerified()
      let heard: AbortSignal | undefined
      let end = (_isAccepted: boolean) => {}
      answers = [
        (_mail, signal) => {
          heard = signal
          return new Promise((resolve, reject) => {
            end = (isAccepted) => (isAccepted ? resolve(accepted()) : reject(new Error('too late')))
          })
        },
      ]
      const { mail_id } = await admin.sendReset({ id: user.id })
      await eventually('it is asked', () => heard)
      expect(heard?.aborted).to.equal(false)
      await moveTime(30_000)
      await eventually('it is given up', () => failuresOf(user)[0])
      expect(heard?.aborted).to.equal(true)
      expect(failuresOf(user)[0]?.details).to.deep.equal({ step: 'transport', code: 'out of time' })
      if (late !== 'never answers') end(late === 'accepts too late')
      expect(user.events('password_reset_mail_sent')).to.deep.equal([])
      await moveTime(60_000)
      await outcomeOf(h, mail_id, 'sent')
      expect(mailsTo(user)).to.have.length(2)
    })
  }

  describe('as the checks see it', () => {
    const steps = async (checking: ReturnType<typeof admin.testMail>) => {
      const { ok, checks } = await checking
      const of = (wanted: string) => stepOf(checks, wanted)
      return { ok, names: checks.map(({ step }) => step), of }
    }
    const TO = 'me@users.example'

    it('mail test hands it a mail, in one step in the place of those of SMTP, and tells why it did not take one', async () => {
      answers = [async () => accepted('service-id-2'), async () => refused('Not a verified sender')]
      const { ok, names, of } = await steps(admin.testMail({ to: TO }))
      expect([ok, names]).to.deep.equal([true, ['configuration', 'transport']])
      const message = 'The transport accepted the mail, as service-id-2.'
      expect(of('transport')).to.include({ status: 'ok', message })
      expect(of('configuration').status, 'SMTP is configured, too').to.equal('advice')
      expect(handed.map(({ to }) => to)).to.deep.equal([TO])
      const next = await steps(admin.testMail({ to: TO }))
      expect(next.ok).to.equal(false)
      expect(next.of('transport')).to.include({ status: 'failed', reply: 'Not a verified sender' })
    })

    it('mail test ends after 30 seconds', async () => {
      let isAsked = false
      answers = [() => new Promise(() => (isAsked = true))]
      const checking = steps(admin.testMail({ to: TO }))
      await eventually('it is asked', () => isAsked)
      await moveTime(30_000)
      expect((await checking).of('transport').message).to.include('(out of time)')
    })

    it('user status tells of the transport, and not of a mail server', async () => {
      for (const [answer, state, summary] of [
        [refused('On our list'), 'dead', 'refused the last reset link for good: "On our list"'],
        [notNow('401 bad key'), 'waiting', 'did not accept the last reset link: "401 bad key"'],
      ] as const) {
        const user = await h.addVerified()
        answers = [async () => answer]
        const { mail_id } = await asked(user, state)
        const told = await admin.userStatus({ id: user.id })
        expect(told.summary).to.equal(`The transport ${summary}.`)
        expect(told.advice).to.match(/^See account-flows mail test --to /)
        await admin.purgeMails({ id: mail_id })
      }
    })

    it('doctor sends nothing, and says which way mails go', async () => {
      const { of, names } = await steps(admin.runDoctor({ to: TO }))
      expect(names.slice(-2)).to.deep.equal(['configuration', 'transport'])
      const way = /^Mails go to the transport .* accounts@idp\.example\.$/
      expect(of('configuration').message).to.match(way)
      expect(of('transport').status).to.equal('skipped')
      expect(handed).to.deep.equal([])
    })
  })
})

describe('A service without SMTP settings, whose host has a transport', () => {
  const handed: TransportMail[] = []
  const transport: MailTransport = { send: async (mail) => (handed.push(mail), accepted()) }
  const h = suiteHarness({ flows: { transport, initialSettings: {} } })

  it('sends mails without a sender, and nobody is told that mails wait', async () => {
    const user = await h.addUser({ username: 'ann' })
    const admin = adminOf(h)
    expect((await admin.userStatus({ id: user.id })).hints.join()).to.not.include('SMTP')
    const { answer } = await admin.putSettings({ require_email_verification: 'true' })
    expect(answer).to.not.have.property('warnings')
    const { mail_id } = await admin.sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'sent')
    expect(handed).to.have.length(1)
    expect(handed[0]).to.not.have.any.keys('from', 'messageId')
    const { checks } = await admin.runDoctor({})
    expect(stepOf(checks, 'configuration')).to.include({ status: 'ok' })
  })
})

describe('A transport of nodemailer', () => {
  const answers: ('defer' | 'refuse')[] = []
  let mailer = createTransport({})
  const h = suiteHarness({
    flows: {
      initialSettings: { smtp_from: 'accounts@idp.example', password_changed_email: 'false' },
      transport: {
        send: async (mail) => ({ accepted: true, id: (await mailer.sendMail(mail)).messageId }),
      },
    },
    mail: { answer: () => answers.shift() ?? 'take' },
  })
  const admin = suiteAdmin(h)

  before(() => {
    mailer = createTransport({ host: '127.0.0.1', port: h.mail.port, ignoreTLS: true })
  })

  /** Asks for a mail, of which the server says this; answers how it failed, once it did. */
  async function failOne(user: Person, answer: 'defer' | 'refuse') {
    answers.push(answer)
    const { mail_id } = await admin.sendReset({ id: user.id })
    const failed = () => user.events('password_reset_mail_failed')[0]
    return { mail_id, failure: await eventually('it failed', failed) }
  }

  it('fits in one line: what the mail server refuses for good is refused for good, and the rest is tried again', async () => {
    const ann = await h.addUser({ username: 'ann' })
    const { mail_id } = await admin.sendReset({ id: ann.id })
    const { mail, kind, link } = await ann.mail(1)
    await outcomeOf(h, mail_id, 'sent')
    expect(kind).to.equal('password_reset')
    expect(mail.from?.value).to.deep.equal([{ address: 'accounts@idp.example', name: '' }])
    const record = await admin.showMail({ mail_id })
    expect([record.message_id, record.queue_id]).to.deep.equal([mail.messageId, mail.messageId])
    expect((await ann.choosesPassword('a new password', link)).mode).to.equal('done')

    const refused = await failOne(await h.addUser({ username: 'bob' }), 'refuse')
    await outcomeOf(h, refused.mail_id, 'dead')
    expect(refused.failure.reason).to.equal('ERR_MAIL_REFUSED')
    expect(refused.failure.details).to.include({ step: 'transport', code: '550' })

    const deferred = await failOne(await h.addUser({ username: 'eve' }), 'defer')
    await moveTime(60_000)
    await outcomeOf(h, deferred.mail_id, 'sent')
  })
})
