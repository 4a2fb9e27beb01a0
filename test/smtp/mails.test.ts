import { hostname } from 'node:os'
import { expect } from 'chai'
import { simpleParser } from 'mailparser'
import { memoryMailbox } from '../../src/smtp/mailbox.ts'
import type { SmtpSettings } from '../../src/smtp/settings.ts'
import type { OutgoingMail } from '../../src/ports/index.ts'
import { answers, type Fault } from '../support/mail-server.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import {
  failureOf,
  MAIL,
  NO_LOGIN,
  noSignal,
  SENDER,
  sendThrough,
  suiteSmtp,
} from './smtp-suite.ts'

const MALFORMED = ['victim@example.com\r\nBcc: x@evil.example', 'a@x.io,b@x.io', '<a@b.io>', '']

describe('A mail over SMTP', () => {
  const { start: startServer, slotsFor } = suiteSmtp()

  function startMailer(server: { port: number }, settings: Partial<SmtpSettings> = {}) {
    const slots = slotsFor(server, { ...NO_LOGIN, ...settings })
    return { slots, send: (mail: OutgoingMail) => sendThrough(slots, mail) }
  }

  it('hands over a text part and an HTML part, from one plain address to one other (MAIL-06)', async () => {
    let greeting = ''
    const listens: Fault = (step, { line }) => {
      if (step === 'EHLO') greeting = line
      return undefined
    }
    const server = await startServer({ fault: listens })
    const { send } = startMailer(server)
    await send({ ...MAIL, kind: 'password_reset' })
    await send(MAIL)
    const [taken] = server.mails
    expect(taken).to.deep.include({ from: SENDER, to: ['Ada@example.org'] })
    const [mail, other] = await Promise.all(server.mails.map(({ raw }) => simpleParser(raw)))
    expect(mail?.subject).to.equal('Set a new password')
    expect(mail?.text?.trim()).to.equal(MAIL.text)
    expect(mail?.html).to.contain('<a href="https://id.example.com/x?token=t1">this</a>')
    const sender = [{ address: SENDER, name: '' }]
    expect(mail?.from?.value).to.deep.equal(sender)
    const kinds = [mail, other].map((each) => each?.headers.get('x-account-flows-mail'))
    expect(kinds, 'its kind, where it has one').to.deep.equal(['password_reset', undefined])
    expect(greeting).to.equal('EHLO login.example.com')
    expect(taken?.raw, 'nothing about this machine').not.to.contain(hostname())
  })

  it('keeps an id of the answer, and nothing of the mail that was put into one', async () => {
    const token = 'Xy0-'.repeat(10) + 'abc'
    const text = `Open https://id.example.com/x?token=${token} now.`
    const said: [answer: string, queueId: string | undefined][] = [
      ['queued as 4Fx1', '4Fx1'],
      ['OK id=1rPq2X-0004Ab-3C', '1rPq2X-0004Ab-3C'],
      [`queued as x${token}`, undefined],
      [`queued as x${token.slice(0, 30)}`, undefined],
      [`queued as ${'9'.repeat(41)}x`, undefined],
      [`thanks for ${token}1 and ${token.slice(3)}x`, undefined],
    ]
    for (const [answer, queueId] of said) {
      const server = await startServer({ fault: answers('dot', `250 2.0.0 ${answer}`) })
      const connection = await slotsFor(server).connect(noSignal())
      const receipt = await connection.send({ ...MAIL, text })
      connection.release()
      expect(receipt?.queueId, answer).to.equal(queueId)
      expect(JSON.stringify(receipt)).to.not.include(token.slice(0, 20))
      const mail = await simpleParser(server.mails[0]?.raw ?? '')
      expect(receipt?.messageId, answer).to.equal(mail.messageId)
    }
  })

  it('keeps a line break in the subject out of the headers', async () => {
    const server = await startServer()
    const subject = 'Hello\r\nBcc: x@evil.example\r\n\r\nbody'
    await startMailer(server).send({ ...MAIL, subject })
    const [taken] = server.mails
    const mail = await simpleParser(taken?.raw ?? '')
    expect(taken?.to).to.deep.equal(['Ada@example.org'])
    expect(mail.headers.has('bcc')).to.equal(false)
    expect(mail.text?.trim()).to.equal(MAIL.text)
  })

  it('brings any text as it was written, in short lines of ASCII', async () => {
    const server = await startServer()
    const text = `日本語 ${'é'.repeat(300)}  \n.\n--=_x\r\n\tعربى = ${'a'.repeat(2_000)} 😀\n`
    const html = `<p>${text}</p>`
    const subject = `パスワード ${'ü'.repeat(80)}`
    await startMailer(server, { fromName: 'Ärzte, "Co"' }).send({ ...MAIL, subject, text, html })
    const raw = server.mails[0]?.raw ?? ''
    expect(raw).to.match(/^[\t\r\n -~]*$/)
    expect(Math.max(...raw.split('\r\n').map(({ length }) => length))).to.be.at.most(76)
    // As the receiving side takes the second dot away.
    const mail = await simpleParser(raw.replaceAll('\r\n..', '\r\n.'))
    expect(mail.text).to.equal(text.replaceAll('\r\n', '\n'))
    expect(mail.html).to.equal(html.replaceAll('\r\n', '\n'))
    expect(mail.subject).to.equal(subject)
    expect(mail.from?.value[0]?.name).to.equal('Ärzte, "Co"')
  })

  it('refuses an address that is not one plain address before it says anything', async () => {
    const server = await startServer()
    const { slots, send } = startMailer(server)
    for (const to of MALFORMED) {
      const error = await failureOf(send({ ...MAIL, to }))
      expect([error.code, error.message], JSON.stringify(to)).to.deep.equal([
        'ERR_MAIL_ADDRESS',
        'The recipient is not one plain address',
      ])
    }
    expect(slots.isEmpty(), 'the connection stays for the next').to.equal(false)
    await send(MAIL)
    expect([server.connections, server.logins, server.steps.MAIL]).to.deep.equal([1, [], 1])
    expect(server.mails.map(({ to }) => to)).to.deep.equal([[MAIL.to]])
  })

  it('refuses a sender that is not one plain address before it connects', async () => {
    const server = await startServer()
    const mailer = startMailer(server, { from: 'a@x.example\r\nX-Injected: 1' })
    expect((await failureOf(mailer.send(MAIL))).code).to.equal('ERR_MAIL_FAILED')
    expect(server.connections).to.equal(0)
  })
})

describe('The setting smtp_from_name', () => {
  const h = suiteHarness()

  before(async () => {
    await h.addUser({ username: 'ann', email: 'ann@users.example', emailVerified: true })
  })

  async function senderOf(settings: Record<string, string>, count: number) {
    await h.put(settings)
    await h.forgot('ann')
    const { mail } = await h.mail.mailTo('ann@users.example', count)
    return mail.from?.value
  }

  const address = 'accounts@idp.example'

  it('is shown before the address of every mail, and only the address without it', async () => {
    expect(await senderOf({}, 1)).to.deep.equal([{ name: '', address }])
    expect(await senderOf({ smtp_from_name: 'Ärzte & Co' }, 2)).to.deep.equal([
      { name: 'Ärzte & Co', address },
    ])
    expect(await senderOf({ smtp_from_name: '' }, 3)).to.deep.equal([{ name: '', address }])
  })

  it('is one name, whatever is written in it', async () => {
    const name = 'A" <evil@evil.example>, "B'
    expect(await senderOf({ smtp_from_name: name }, 4)).to.deep.equal([{ name, address }])
  })
})

describe('memoryMailbox', () => {
  it('keeps the newest mails, newest first, each with a time and an id', async () => {
    const mailbox = memoryMailbox({ limit: 2 })
    for (const subject of ['one', 'two', 'three']) {
      const mail = { ...MAIL, subject, headers: {} }
      expect(await mailbox.send(mail, noSignal())).to.deep.equal({
        accepted: true,
      })
    }
    const messages = mailbox.messages()
    expect(messages.map(({ subject }) => subject)).to.deep.equal(['three', 'two'])
    expect(new Set(messages.map(({ id }) => id)).size).to.equal(2)
    expect(messages[0]?.receivedAt).to.be.instanceOf(Date)
    expect(messages[0]).to.deep.include({ ...MAIL, subject: 'three' })
  })
})
