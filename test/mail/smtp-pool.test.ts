import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { expect } from 'chai'
import { type ParsedMail, simpleParser } from 'mailparser'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { smtpPool } from '../../src/mail/smtp-pool.ts'
import type { SmtpSettings } from '../../src/mail/smtp-settings.ts'
import type { OutgoingMail } from '../../src/ports.ts'
import { failureOf, MAIL, sendThrough } from '../support/mail-sending.ts'
import { movableClock } from '../support/time.ts'

interface Delivery {
  mail: ParsedMail
  raw: string
  from: string
  to: string[]
  secure: boolean
  user: string | undefined
  greetedAs: string
}

const MALFORMED = ['victim@example.com\r\nBcc: x@evil.example', 'a@x.io,b@x.io', '<a@b.io>', '']

describe('smtpPool (D23)', () => {
  const cleanUps: (() => Promise<unknown> | void)[] = []

  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
  })

  /** A real SMTP server that keeps what it gets. */
  async function startServer(options: SMTPServerOptions = {}, address = '127.0.0.1') {
    const deliveries: Delivery[] = []
    const seen = { connections: 0, logins: 0, mailFrom: 0 }
    const server = new SMTPServer({
      authOptional: true,
      allowInsecureAuth: true,
      hideSTARTTLS: true,
      onConnect(_session, callback) {
        seen.connections += 1
        callback()
      },
      onAuth(auth, _session, callback) {
        seen.logins += 1
        if (auth.password !== 'right') return callback(new Error('Wrong password'))
        callback(null, { user: auth.username ?? '' })
      },
      onMailFrom(_address, _session, callback) {
        seen.mailFrom += 1
        callback()
      },
      async onData(stream, session, callback) {
        const chunks: Buffer[] = []
        for await (const chunk of stream) chunks.push(Buffer.from(chunk))
        const raw = Buffer.concat(chunks).toString('utf8')
        const { mailFrom, rcptTo } = session.envelope
        deliveries.push({
          mail: await simpleParser(raw),
          raw,
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map((recipient) => recipient.address),
          secure: session.secure,
          user: session.user?.toString(),
          greetedAs: session.hostNameAppearsAs || '',
        })
        callback()
      },
      ...options,
    })
    server.on('error', () => {})
    server.listen(0, address)
    await once(server.server, 'listening')
    cleanUps.push(() => new Promise<void>((resolve) => server.close(() => resolve())))
    return { port: portOf(server.server), host: address, deliveries, seen }
  }

  function startMailer(server: { port: number; host: string }, settings?: Partial<SmtpSettings>) {
    const { port, host } = server
    const from = 'no-reply@login.example.com'
    const pool = smtpPool({ host, port, tls: 'auto', from, ...settings }, movableClock)
    cleanUps.push(() => pool.close())
    return { pool, send: (mail: OutgoingMail) => sendThrough(pool, mail) }
  }

  it('hands over a text part and an HTML part, from one plain address to one other (MAIL-06)', async () => {
    const server = await startServer()
    const { send } = startMailer(server)
    await send({ ...MAIL, kind: 'password_reset' })
    await send(MAIL)
    const [delivery, other] = server.deliveries
    expect(delivery?.from).to.equal('no-reply@login.example.com')
    expect(delivery?.to).to.deep.equal(['Ada@example.org'])
    expect(delivery?.mail.subject).to.equal('Set a new password')
    expect(delivery?.mail.text?.trim()).to.equal(MAIL.text)
    expect(delivery?.mail.html).to.contain('<a href="https://id.example.com/x?token=t1">this</a>')
    expect(delivery?.mail.from?.value).to.deep.equal([
      { address: 'no-reply@login.example.com', name: '' },
    ])
    const kinds = [delivery, other].map((each) => each?.mail.headers.get('x-account-flows-mail'))
    expect(kinds, 'its kind, where it has one').to.deep.equal(['password_reset', undefined])
    expect(delivery?.greetedAs).to.equal('login.example.com')
    expect(delivery?.raw, 'nothing about this machine').not.to.contain(hostname())
  })

  it('keeps a line break in the subject out of the headers', async () => {
    const server = await startServer()
    await startMailer(server).send({
      ...MAIL,
      subject: 'Hello\r\nBcc: x@evil.example\r\n\r\nbody',
    })
    const [delivery] = server.deliveries
    expect(delivery?.to).to.deep.equal(['Ada@example.org'])
    expect(delivery?.mail.headers.has('bcc')).to.equal(false)
    expect(delivery?.mail.text?.trim()).to.equal(MAIL.text)
  })

  it('refuses an address that is not one plain address before it says anything', async () => {
    const server = await startServer()
    const { pool, send } = startMailer(server)
    for (const to of MALFORMED) {
      const error = await failureOf(send({ ...MAIL, to }))
      expect([error.code, error.message], JSON.stringify(to)).to.deep.equal([
        'ERR_MAIL_ADDRESS',
        'The recipient is not one plain address',
      ])
    }
    expect(pool.isEmpty(), 'the connection stays for the next').to.equal(false)
    await send(MAIL)
    expect(server.seen).to.deep.equal({ connections: 1, logins: 0, mailFrom: 1 })
    expect(server.deliveries.map(({ to }) => to)).to.deep.equal([[MAIL.to]])
  })

  it('refuses a sender that is not one plain address before it connects', async () => {
    const server = await startServer()
    const mailer = startMailer(server, { from: 'a@x.example\r\nX-Injected: 1' })
    expect((await failureOf(mailer.send(MAIL))).code).to.equal('ERR_MAIL_FAILED')
    expect(server.seen.connections).to.equal(0)
  })

  describe('failures', () => {
    const answering = (responseCode: number) =>
      Object.assign(new Error('Not this one'), { responseCode })

    it('throws ERR_MAIL_FAILED for a sender that is refused for good: the admin can mend that', async () => {
      const server = await startServer({
        onMailFrom: (_address, _session, callback) => callback(answering(550)),
      })
      const error = await failureOf(startMailer(server).send(MAIL))
      expect(error).to.include({ code: 'ERR_MAIL_FAILED' })
      expect(error.message).to.include('550').and.to.include('MAIL FROM')
      expect(server.deliveries).to.have.length(0)
    })

    for (const [responseCode, code] of [
      [550, 'ERR_MAIL_REFUSED'],
      [451, 'ERR_MAIL_FAILED'],
    ] as const) {
      it(`throws ${code} for a mail answered with ${responseCode} after its data`, async () => {
        const server = await startServer({
          onData(stream, _session, callback) {
            stream.resume().on('end', () => callback(answering(responseCode)))
          },
        })
        expect((await failureOf(startMailer(server).send(MAIL))).code).to.equal(code)
      })
    }

    it('throws ERR_MAIL_FAILED where the server wants a login first', async () => {
      const server = await startServer({ authOptional: false })
      const refused = [{}, { username: 'service' }, { username: 'service', password: 'wrong' }]
      for (const credentials of refused) {
        const error = await failureOf(startMailer(server, credentials).send(MAIL))
        expect(error.code).to.equal('ERR_MAIL_FAILED')
        expect(error.message).not.to.contain('wrong')
      }
      expect(server.seen, 'half of a login is none').to.deep.include({ logins: 1, mailFrom: 0 })
    })

    it('throws ERR_MAIL_FAILED where nobody listens', async () => {
      const server = createServer()
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const port = portOf(server)
      await new Promise((resolve) => server.close(resolve))
      const { send } = startMailer({ host: '127.0.0.1', port })
      expect((await failureOf(send(MAIL))).code).to.equal('ERR_MAIL_FAILED')
    })
  })

  describe('on any other host', () => {
    const other = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
    const credentials = { username: 'service', password: 'right' }

    before(function () {
      if (!other) this.skip()
    })

    it('sends no login and no mail where STARTTLS is not offered (MAIL-14)', async () => {
      const server = await startServer({ disabledCommands: ['STARTTLS'] }, other)
      const error = await failureOf(startMailer(server, credentials).send(MAIL))
      expect(error.code).to.equal('ERR_MAIL_FAILED')
      expect(server.seen).to.deep.equal({ connections: 1, logins: 0, mailFrom: 0 })
    })

    it('sends no login and no mail to a certificate that nobody vouches for', async () => {
      const server = await startServer({ hideSTARTTLS: false }, other)
      const error = await failureOf(startMailer(server, credentials).send(MAIL))
      expect(error.code).to.equal('ERR_MAIL_FAILED')
      expect(server.seen).to.deep.include({ logins: 0, mailFrom: 0 })
    })
  })
})

function portOf(server: { address(): string | AddressInfo | null }): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('Not a TCP server')
  return address.port
}
