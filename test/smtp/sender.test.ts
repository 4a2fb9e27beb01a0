import { expect } from 'chai'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import type { MailSender, MailTransport } from '../../src/ports/index.ts'
import { createMailSender } from '../../src/smtp/sender.ts'
import { memoryMailbox } from '../../src/smtp/mailbox.ts'
import { createSettingsKeeper, type SettingsKeeper } from '../../src/settings/settings.ts'
import { memorySettings } from '../../src/stores/memory/settings.ts'
import { eventually } from '../support/eventually.ts'
import { fallsSilent, onFirst, type FaultySmtp } from '../support/mail-server.ts'
import { movableClock } from '../support/time.ts'
import { failureOf, MAIL, NO_ROTATION, noSignal, suiteSmtp } from './smtp-suite.ts'

const FLIPS = 100

describe('createMailSender()', () => {
  const box = createSecretBox(createKeyRing([Buffer.alloc(32, 1)]))
  const newKeeper = () => createSettingsKeeper(memorySettings(), box, () => {})
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

  async function send(subject = MAIL.subject): Promise<void> {
    const connection = await sender.connect(keeper.current(), noSignal())
    try {
      await connection.send({ ...MAIL, subject })
    } finally {
      connection.release()
    }
  }

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
    const connection = await developing.connect(keeper.current(), noSignal())
    await connection.send(MAIL)
    connection.release()
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
    const busy = await sender.connect(keeper.current(), noSignal())
    await send()
    await keeper.change(settingsOf(b, 'b'))
    await send()
    await eventually('the idle one says goodbye', () => a.steps.QUIT === 1 && a.open === 1)
    await busy.send(MAIL)
    busy.release()
    await eventually('the busy one says goodbye', () => a.steps.QUIT === 2 && a.open === 0)
    expect(a.mails.map(({ from }) => from)).to.deep.equal(Array(2).fill('accounts@a.example'))
    expect(b.mails.map(({ from }) => from)).to.deep.equal(['accounts@b.example'])
    expect(b.logins.map(({ user }) => user)).to.deep.equal(['user of b'])
  })

  for (const [setting, value] of Object.entries({
    smtp_from: 'other@a.example',
    smtp_username: 'another user',
    smtp_password: 'another password',
    smtp_tls: 'none',
  })) {
    it(`opens another connection where only ${setting} changes`, async () => {
      const server = await start()
      await keeper.change(settingsOf(server, 'a'))
      await send()
      await keeper.change({ [setting]: value })
      await send()
      expect([server.connections, server.logins.length]).to.deep.equal([2, 2])
      await eventually('the old one is closed', () => server.open === 1)
    })
  }

  it('keeps its connection where other settings change', async () => {
    const server = await start()
    await keeper.change(settingsOf(server, 'a'))
    await send()
    await keeper.change({ password_reset_expiration: '2h' })
    await send()
    expect(server.connections).to.equal(1)
  })

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
    const stalled = Array.from({ length: 8 }, () =>
      failureOf(sender.connect(keeper.current(), deadline.signal)),
    )
    await eventually('five wait for the server', () => a.connections === 5)
    await keeper.change(settingsOf(b, 'b'))
    await send()
    expect(b.mails).to.have.length(1)
    // The settings that come back find the same five sockets.
    await keeper.change(settingsOf(a, 'a'))
    const again = failureOf(sender.connect(keeper.current(), deadline.signal))
    await eventually('b is left', () => b.open === 0)
    expect(sockets.open()).to.equal(5)
    deadline.abort()
    for (const { code } of await Promise.all([...stalled, again])) {
      expect(code).to.equal('ERR_MAIL_FAILED')
    }
    await eventually('all are closed', () => sockets.open() === 0)
    expect(a.connections).to.equal(5)
  })

  it(`sends every mail whole, to one of two servers, while the settings change ${FLIPS} times (RACE-10) [full]`, async () => {
    const [a, b] = [
      await start({ offersPipelining: true }),
      await start({ fault: onFirst(3, fallsSilent('AUTH')) }),
    ]
    const names = ['a', 'b']
    await keeper.change(settingsOf(a, 'a'))
    let [flips, sent, isOver] = [0, 0, false]
    let goOn = () => {}
    const subjects = new Map<string, string>()
    /** Those who wait for a connection, and since which change. */
    const waiting = new Map<AbortController, number>()

    async function sendMany(loop: number) {
      for (let mail = 0; !isOver || mail < 10; mail += 1) {
        const subject = `mail ${loop}-${mail}`
        const settings = keeper.current()
        const deadline = new AbortController()
        waiting.set(deadline, flips)
        try {
          const connection = await sender.connect(settings, deadline.signal)
          waiting.delete(deadline)
          await connection.send({ ...MAIL, subject })
          connection.release()
          subjects.set(subject, String(settings.smtpFrom))
          sent += 1
          goOn()
        } catch (error) {
          expect(error).to.have.property('code', 'ERR_MAIL_FAILED')
          expect(deadline.signal.aborted).to.equal(true)
        }
      }
    }

    const loops = Array.from({ length: 8 }, (_, loop) => sendMany(loop))
    for (flips = 1; flips <= FLIPS; flips += 1) {
      await keeper.change(flips % 2 === 0 ? settingsOf(a, 'a') : settingsOf(b, 'b'))
      await new Promise<void>((resolve) => (goOn = resolve))
      // Whoever never gets an answer is given up, as at the deadline of an attempt.
      for (const [deadline, since] of waiting) if (since < flips - 10) deadline.abort()
    }
    for (const deadline of waiting.keys()) deadline.abort()
    isOver = true
    await Promise.all(loops)

    expect(sent).to.be.at.least(FLIPS)
    expect(a.mails.length + b.mails.length).to.equal(sent)
    for (const [index, server] of [a, b].entries()) {
      const name = names[index] ?? ''
      expect(server.mails.length).to.be.greaterThan(0)
      for (const { from, raw, user } of server.mails) {
        const subject = /^Subject: (.+)$/m.exec(raw)?.[1]?.trim() ?? ''
        expect([from, user]).to.deep.equal([`accounts@${name}.example`, `user of ${name}`])
        expect(raw).to.include(`From: accounts@${name}.example`)
        expect(raw)
          .to.include('t1')
          .and.to.match(/--\S+--\s*$/)
        expect(subjects.get(subject)).to.equal(from)
      }
      for (const { user, password } of server.logins) {
        expect([user, password]).to.deep.equal([`user of ${name}`, `password of ${name}`])
      }
    }
    const all = [...a.mails, ...b.mails].map(({ raw }) => /^Subject: (.+)$/m.exec(raw)?.[1])
    expect(new Set(all).size).to.equal(sent)
  })
})
