import { connect, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { tlsPolicy, type SmtpSettings } from '../../src/smtp/settings.ts'
import { newCertificate, type Certificate } from '../support/certificates.ts'
import { countClientSockets } from '../support/client-sockets.ts'
import { eventually } from '../support/eventually.ts'
import {
  answers,
  onFirst,
  type Fault,
  type FaultySmtp,
  type FaultySmtpOptions,
} from '../support/faulty-smtp.ts'
import { failureOf, sendThrough } from '../support/mail-sending.ts'
import { CREDENTIALS, SENDER, suiteSmtp } from '../support/suite-smtp.ts'
import { inTrustingProcess } from '../support/trusting-process.ts'

const YESTERDAY = new Date(Date.now() - 86_400_000)
const LOOPBACK = ['localhost', '127.0.0.1']
const authority = newCertificate({})
const good = newCertificate({ names: LOOPBACK, signer: authority })
const untrusted: { tls: Certificate; code: string }[] = [
  {
    tls: newCertificate({ names: LOOPBACK, signer: authority, validUntil: YESTERDAY }),
    code: 'CERT_HAS_EXPIRED',
  },
  {
    tls: newCertificate({ names: ['mail.example', '127.0.0.2'], signer: authority }),
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  },
  {
    tls: newCertificate({ names: LOOPBACK }),
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  },
  // Of another authority, that has the name of the trusted one.
  {
    tls: newCertificate({ names: LOOPBACK, signer: newCertificate({}) }),
    code: 'CERT_SIGNATURE_FAILURE',
  },
]

describe('The setting smtp_tls', () => {
  const smtp = suiteSmtp()
  const startServer = smtp.start

  function settingsFor({ port }: { port: number }, tls: SmtpSettings['tls'], host = '127.0.0.1') {
    return { host, port, tls, from: SENDER, ...CREDENTIALS }
  }

  const slotsFor = (server: FaultySmtp, tls: SmtpSettings['tls'], host?: string) =>
    smtp.slotsFor(server, settingsFor(server, tls, host))

  /** No login, no mail, and nothing that waits for one. */
  async function nothingWasSent(server: FaultySmtp) {
    await eventually('the connection is closed', () => server.open === 0)
    expect([server.logins, server.mails]).to.deep.equal([[], []])
    expect(server.steps).to.include({ AUTH: 0, MAIL: 0 })
  }

  it('decides by the port where it is auto, and demands less of a loopback host only then', () => {
    const policy = (tls: SmtpSettings['tls'], port: number, host: string) => {
      const found = tlsPolicy({ host, port, tls, from: 'a@b.example' })
      return [found.secure, found.requireTLS, found.ignoreTLS, found.tls.rejectUnauthorized]
    }
    const implicit = [true, false, false, true]
    const starttls = [false, true, false, true]
    expect(policy('auto', 465, 'smtp.example')).to.deep.equal(implicit)
    expect(policy('auto', 587, 'smtp.example')).to.deep.equal(starttls)
    expect(policy('auto', 465, 'localhost')).to.deep.equal([true, false, false, false])
    for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '::1']) {
      expect(policy('auto', 587, host)).to.deep.equal([false, false, false, false])
    }
    for (const host of ['smtp.example', 'localhost', '127.0.0.1', '::1']) {
      for (const port of [25, 465, 587]) {
        expect(policy('implicit', port, host)).to.deep.equal(implicit)
        expect(policy('starttls', port, host)).to.deep.equal(starttls)
        expect(policy('none', port, host)).to.deep.equal([false, false, true, true])
      }
    }
  })

  describe('in a process that trusts an authority (NODE_EXTRA_CA_CERTS):', () => {
    // What was said in plain text after the STARTTLS answer is not believed.
    const injected = ['220 Go ahead', '250-AUTH PLAIN', '250 injected', '235 Ok', '250 Ok']
    const injects = answers('STARTTLS', injected.join('\r\n'))

    it('mails and logins go only over TLS, and only to a certificate that it vouches for (MAIL-15)', async () => {
      const modes = [
        { tls: 'starttls', isImplicitTls: false },
        { tls: 'implicit', isImplicitTls: true },
      ] as const
      const refusing: { server: FaultySmtp; settings: SmtpSettings; code: string }[] = []
      const taking: { server: FaultySmtp; settings: SmtpSettings }[] = []
      for (const { tls, isImplicitTls } of modes) {
        for (const { tls: certificate, code } of untrusted) {
          const server = await startServer({ tls: certificate, isImplicitTls })
          refusing.push({ server, settings: settingsFor(server, tls), code })
        }
        for (const host of LOOPBACK) {
          const server = await startServer({ tls: good, isImplicitTls })
          taking.push({ server, settings: settingsFor(server, tls, host) })
        }
      }
      const frank = await startServer({ tls: good, fault: injects, offersAuth: false })
      refusing.push({ server: frank, settings: settingsFor(frank, 'starttls'), code: 'ENOAUTH' })
      const settings = [...refusing, ...taking].map((each) => each.settings)
      const outcomes = await inTrustingProcess<string>('send', authority, settings)
      for (const [index, { server, code }] of refusing.entries()) {
        expect(outcomes[index]).to.equal(
          `ERR_MAIL_FAILED: The mail was not sent (${code} while connecting)`,
        )
        await nothingWasSent(server)
      }
      for (const [index, { server }] of taking.entries()) {
        expect(outcomes[refusing.length + index]).to.equal('sent')
        expect(server.mails).to.have.length(1)
        expect(server.mails[0]).to.include({ isSecure: true, user: CREDENTIALS.username })
        expect(server.logins.map(({ isSecure }) => isSecure)).to.deep.equal([true])
      }
    })

    it('what was said in plain text after the STARTTLS answer is not believed', async () => {
      const silent: Fault = (step, dialogue) => (dialogue.isSecure ? '' : injects(step, dialogue))
      const quiet = await startServer({ tls: good, fault: silent })
      // Under auto a loopback host need not show a certificate.
      const deadline = new AbortController()
      const connecting = failureOf(slotsFor(quiet, 'auto').connect(deadline.signal))
      await quiet.reaches('EHLO', 2)
      deadline.abort()
      expect((await connecting).message).to.include('stopped while connecting')
      await nothingWasSent(quiet)
    })
  })

  /** Nothing is sent under the setting, and an honest server at `auto` gets the mail. */
  async function refuses(
    options: FaultySmtpOptions,
    tls: SmtpSettings['tls'],
    honest: FaultySmtpOptions,
  ) {
    const sockets = countClientSockets()
    const server = await startServer(options)
    const error = await failureOf(sendThrough(slotsFor(server, tls)))
    expect(error.code).to.equal('ERR_MAIL_FAILED')
    await eventually('the socket is closed', () => sockets.open === 0)
    sockets.stop()
    await nothingWasSent(server)
    const taking = await startServer(honest)
    await sendThrough(slotsFor(taking, 'auto'))
    expect(taking.mails.map(({ isSecure }) => isSecure)).to.deep.equal([true])
    return server
  }

  const speaksNoTls: Fault = (step, { socket }) => {
    if (step !== 'STARTTLS') return undefined
    socket.once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    return '220 Go ahead'
  }
  const saysAtStarttls = (reply: string) => ({ tls: good, fault: answers('STARTTLS', reply) })
  const stripped: Record<string, FaultySmtpOptions> = {
    'STARTTLS is not offered': {},
    'STARTTLS is answered with 454': saysAtStarttls('454 4.7.0 TLS not available'),
    'STARTTLS is answered with what is no answer': saysAtStarttls('\u0001\u0002 nonsense'),
    'EHLO is refused': { tls: good, fault: answers('EHLO', '502 5.5.1 Not here') },
    'what follows STARTTLS is not TLS': { fault: speaksNoTls },
  }
  for (const [what, options] of Object.entries(stripped)) {
    it(`starttls: no login and no mail where ${what}`, () =>
      refuses(options, 'starttls', { tls: good }).then(() => {}))
  }

  it('auto: where a loopback host offers STARTTLS and does not go through with it, nothing is sent', async () => {
    const offer: Fault = (step) => (step === 'EHLO' ? '250-here\r\n250 STARTTLS' : undefined)
    const garbage: Fault = (step, dialogue) => offer(step, dialogue) ?? speaksNoTls(step, dialogue)
    const server = await startServer({ fault: onFirst(1, garbage) })
    const slots = slotsFor(server, 'auto')
    expect((await failureOf(sendThrough(slots))).code).to.equal('ERR_MAIL_FAILED')
    await nothingWasSent(server)
    await sendThrough(slots)
    expect(server.mails).to.have.length(1)
  })

  it('implicit: no login and no mail to a server that speaks in the clear', async () => {
    const server = await startServer({})
    const error = await failureOf(sendThrough(slotsFor(server, 'implicit')))
    expect(error.code).to.equal('ERR_MAIL_FAILED')
    await nothingWasSent(server)
    await sendThrough(slotsFor(server, 'none'))
    expect(server.mails).to.have.length(1)
  })

  it('none: everything goes in the clear, though STARTTLS is offered', async () => {
    const server = await startServer({ tls: good })
    await sendThrough(slotsFor(server, 'none', 'localhost'))
    expect(server.steps.STARTTLS).to.equal(0)
    expect(server.mails[0]).to.include({ isSecure: false, user: CREDENTIALS.username })
  })

  it('takes nothing below TLS 1.2', async () => {
    const ciphers = 'DEFAULT@SECLEVEL=0'
    const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers } as const
    const tls = { ...good, ...old }
    const { port, host } = await startServer({ tls, isImplicitTls: true })
    const spoken = await new Promise<string | null>((resolve, reject) => {
      const socket: TLSSocket = connect({ port, host, rejectUnauthorized: false, ...old }, () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
      socket.on('error', reject)
    })
    expect(spoken).to.equal('TLSv1.1')
    const honest = { tls: { ...good, maxVersion: 'TLSv1.2' } } as const
    const server = await refuses({ tls }, 'auto', honest)
    expect(server.steps.STARTTLS).to.equal(1)
  })
})
