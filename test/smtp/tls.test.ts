import type { Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { tlsPolicy, type SmtpSettings } from '../../src/smtp/settings.ts'
import { newCertificate, type Certificate } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import {
  answers,
  onFirst,
  startFaultySmtp,
  type Fault,
  type FaultySmtp,
  type FaultySmtpOptions,
} from '../support/mail-server.ts'
import {
  CREDENTIALS,
  expectWhole,
  failureIn,
  failureOf,
  good,
  inTrustingProcess,
  LOOPBACK,
  sendThrough,
  settingsFor,
  signed,
  statuses,
  stepOf,
  suiteSmtp,
  type Outcome,
} from './smtp-suite.ts'

type Tls = SmtpSettings['tls']

const DAY_MS = 86_400_000
const daysFromNow = (days: number) => new Date(Date.now() + days * DAY_MS)
const HTTP = 'HTTP/1.1 400 Bad Request\r\n\r\n'
const OLD = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const

/** Offers STARTTLS, and does this in place of the handshake. */
const instead =
  (act: (socket: Socket) => unknown): Fault =>
  (step, { socket }) => {
    if (step === 'EHLO') return '250-here\r\n250 STARTTLS'
    if (step !== 'STARTTLS') return undefined
    socket.once('data', () => act(socket))
    return '220 Go ahead'
  }
const speaksHttp = instead((socket) => socket.write(HTTP))
// What was said in plain text after the STARTTLS answer is not believed.
const injects = answers(
  'STARTTLS',
  ['220 Go ahead', '250-here', '250 AUTH PLAIN', '235 Ok', '250 Ok'].join('\r\n'),
)

/** No login, no mail, and nothing that waits for one. */
async function nothingWasSent(server: FaultySmtp) {
  await eventually('the connection is closed', () => server.open === 0)
  expect([server.logins, server.mails]).to.deep.equal([[], []])
  expect(server.steps).to.include({ AUTH: 0, MAIL: 0 })
}

describe('The setting smtp_tls', () => {
  const { start, slotsFor, check, sockets } = suiteSmtp()

  it('decides by the port where it is auto, and demands less of a loopback host only then', () => {
    const policy = (tls: Tls, port: number, host: string) => {
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
    const asked: { tls: Tls; options: FaultySmtpOptions; host: string }[] = []
    const results: (Outcome & { server: FaultySmtp })[] = []

    /** What came of it, once mails were sent and the settings checked in one process. */
    function trying(tls: 'starttls' | 'implicit', options: FaultySmtpOptions, host = '127.0.0.1') {
      const isImplicitTls = tls === 'implicit'
      const index = asked.push({ tls, host, options: { ...options, isImplicitTls } }) - 1
      return () => {
        const found = results[index] ?? expect.fail('it was not tried')
        expectWhole(found.steps)
        return found
      }
    }

    before(async () => {
      const all = await Promise.all(
        asked.map(async ({ tls, host, options }) => {
          const server = await startFaultySmtp({ offersAuth: true, ...options })
          return { server, settings: settingsFor(server, { tls, host }) }
        }),
      )
      const outcomes = await inTrustingProcess(all.map(({ settings }) => settings))
      for (const [index, { server }] of all.entries()) {
        results.push({ ...(outcomes[index] ?? expect.fail('it was not tried')), server })
      }
    })
    after(() => Promise.all(results.map(({ server }) => server.close())))

    const bad: [what: string, tls: Certificate, told: RegExp, advice: RegExp][] = [
      [
        'expired',
        signed({ validUntil: new Date('2020-02-03T00:00:00Z') }),
        /expired \(2020-02-03\).*\((CERT_HAS_EXPIRED)\)/,
        /Renew it.*clock of this machine says \d{4}-\d\d-\d\d/,
      ],
      [
        'not valid yet',
        signed({ validFrom: daysFromNow(2) }),
        /valid only from \d{4}-\d\d-\d\d on \((CERT_NOT_YET_VALID)\)/,
        /clock of this machine/,
      ],
      [
        'for other names',
        signed({ names: ['mail.example', '127.0.0.2'] }),
        /not for 127\.0\.0\.1 but for mail\.example, 127\.0\.0\.2 \((ERR_TLS_CERT_ALTNAME_INVALID)/,
        /smtp_host/,
      ],
      [
        'self-signed',
        newCertificate({ names: LOOPBACK }),
        /signed only by itself \((DEPTH_ZERO_SELF_SIGNED_CERT)\)/,
        /NODE_EXTRA_CA_CERTS/,
      ],
      [
        'of an authority that only bears the name of the trusted one',
        signed({ signer: newCertificate({}) }),
        /authority that is not trusted here \((CERT_SIGNATURE_FAILURE)\)/,
        /NODE_EXTRA_CA_CERTS/,
      ],
    ]
    for (const [what, tls, told, advice] of bad) {
      for (const mode of ['starttls', 'implicit'] as const) {
        const tried = trying(mode, { tls })
        it(`${mode}: of a certificate that is ${what} it tells the reason, and nobody logs in (MAIL-15)`, async () => {
          const { server, steps, sent } = tried()
          const failed = failureIn(steps)
          expect(failed.step).to.equal('tls')
          expect(failed.message).to.match(told)
          expect(failed.advice).to.match(advice)
          const [, code] = told.exec(failed.message) ?? []
          expect(sent).to.equal(`ERR_MAIL_FAILED: The mail was not sent (${code} while connecting)`)
          await nothingWasSent(server)
        })
      }
    }

    const frank = trying('starttls', { tls: good, fault: injects, offersAuth: false })
    it('what was said in plain text after the STARTTLS answer is not believed', async () => {
      const { server, steps, sent } = frank()
      const failed = failureIn(steps)
      const none = 'A login is set, but the server offers no login here.'
      expect([failed.step, failed.message]).to.deep.equal(['auth', none])
      expect(failed.advice).to.include('over TLS')
      expect(sent).to.equal('ERR_MAIL_FAILED: The mail was not sent (ENOAUTH while connecting)')
      await nothingWasSent(server)
    })

    const trusted = [
      trying('starttls', { tls: good }),
      trying('implicit', { tls: { ...good, maxVersion: 'TLSv1.2' } }),
      trying('starttls', { tls: signed({ validUntil: daysFromNow(5.5) }) }),
      trying('starttls', { tls: good }, 'localhost'),
      trying('implicit', { tls: good }, 'localhost'),
    ]
    it('mails and logins go over TLS to one that it vouches for, and it tells protocol, cipher and until when (MAIL-15)', () => {
      const all = trusted.map((tried) => tried())
      const tls = all.map(({ steps }) => stepOf(steps, 'tls'))
      expect(statuses(tls)).to.deep.equal(['ok', 'ok', 'warning', 'ok', 'ok'])
      expect(tls[0]?.message).to.match(/^STARTTLS .*TLSv1\.3 with TLS_\w+; .*until \d{4}-/)
      expect(tls[1]?.message).to.match(/^Implicit TLS .*TLSv1\.2 with \w+; .*until \d{4}-/)
      expect(tls[2]?.advice).to.match(/expires in 5 days/)
      for (const { server, steps, sent } of all) {
        expect(statuses(steps)).not.to.include('failed')
        expect(sent).to.equal('sent')
        expect(server.mails).to.have.length(2)
        for (const mail of server.mails)
          expect(mail).to.include({ isSecure: true, user: CREDENTIALS.username })
        expect(server.logins.map(({ isSecure }) => isSecure)).to.deep.equal([true, true])
      }
    })

    const listed = answers('greeting', '554 5.7.1 Listed')
    const refusing = trying('implicit', { tls: good, fault: listed })
    it('over implicit TLS, a greeting that refuses fails after the handshake', () => {
      const { server, steps } = refusing()
      const failed = failureIn(steps)
      expect([failed.step, failed.reply]).to.deep.equal(['tls', '554 5.7.1 Listed'])
      expect(failed.message).to.include('554')
      expect(server.mails).to.deep.equal([])
    })
  })

  const saysAtStarttls = (reply: string) => ({ tls: good, fault: answers('STARTTLS', reply) })
  const noHello = answers('EHLO', '502 5.5.1 Not here')
  const closes = instead((socket) => socket.destroy())
  const stripped = /does not offer STARTTLS.*may remove it/
  /** Any address of this machine, but by its name no loopback host. */
  const elsewhere = { host: '0.0.0.0' }
  const starttls = { tls: 'starttls' } as const
  const alone = newCertificate({ names: [elsewhere.host] })
  type Row = [string, FaultySmtpOptions, Partial<SmtpSettings>, RegExp?]
  const insecure: Row[] = [
    ['STARTTLS is not offered', {}, starttls, stripped],
    ['another host does not offer STARTTLS', {}, elsewhere, stripped],
    ['another host has only its own certificate', { tls: alone }, elsewhere, /only by itself/],
    ['STARTTLS is answered with 454', saysAtStarttls('454 4.7.0 No TLS'), starttls],
    ['the answer to STARTTLS is none', saysAtStarttls('\u0001\u0002 nonsense'), starttls],
    ['EHLO is refused', { tls: good, fault: noHello }, starttls],
    ['HTTP follows STARTTLS', { fault: speaksHttp }, starttls, /handshake failed/],
    ['HTTP follows STARTTLS', { fault: speaksHttp }, {}, /handshake failed \(\w+\).*proxy/],
    ['the server closes after STARTTLS', { fault: closes }, {}, /handshake failed \(E\w+\)/],
    ['a server knows only TLS 1.1', { tls: { ...good, ...OLD } }, {}, /failed \(\w+\).*TLS 1\.2/],
    ['the server knows no TLS', {}, { tls: 'implicit' }, /failed \(\w+\).*smtp_tls to starttls/],
  ]
  for (const [what, options, other, told] of insecure) {
    it(`${other.tls ?? 'auto'}: no login and no mail leaves where ${what}, and the check says so (MAIL-14)`, async () => {
      const server = await start(options)
      const settings = settingsFor(server, other)
      const failed = failureIn(await check(settings))
      expect(failed.step).to.equal('tls')
      if (told) expect(`${failed.message} ${failed.advice}`).to.match(told)
      const slots = slotsFor(server, other)
      expect((await failureOf(sendThrough(slots))).code).to.equal('ERR_MAIL_FAILED')
      await eventually('the socket is closed', () => sockets.open() === 0)
      await nothingWasSent(server)
      const honest = await start({ tls: { ...good, maxVersion: 'TLSv1.2' } })
      await sendThrough(slotsFor(honest))
      expect(honest.mails.map(({ isSecure }) => isSecure)).to.deep.equal([true])
    })
  }

  it('takes nothing below TLS 1.2, which a server that knows only 1.1 does speak', async () => {
    const { port, host } = await start({ tls: { ...good, ...OLD }, isImplicitTls: true })
    const spoken = await new Promise<string | null>((resolve, reject) => {
      const socket: TLSSocket = connect({ port, host, rejectUnauthorized: false, ...OLD }, () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
      socket.on('error', reject)
    })
    expect(spoken).to.equal('TLSv1.1')
  })

  it('auto: the next mail goes over another connection, once a loopback host goes through with STARTTLS', async () => {
    const server = await start({ fault: onFirst(1, speaksHttp) })
    const slots = slotsFor(server)
    expect((await failureOf(sendThrough(slots))).code).to.equal('ERR_MAIL_FAILED')
    await nothingWasSent(server)
    await sendThrough(slots)
    expect(server.mails).to.have.length(1)
  })

  it('auto: a loopback host need not show a good certificate, but what it said in plain text is not believed', async () => {
    const fault: Fault = (step, dialogue) => (dialogue.isSecure ? '' : injects(step, dialogue))
    const server = await start({ tls: good, fault })
    const deadline = new AbortController()
    const connecting = failureOf(slotsFor(server).connect(deadline.signal))
    await server.reaches('EHLO', 2)
    deadline.abort()
    expect((await connecting).message).to.include('stopped while connecting')
    await nothingWasSent(server)
  })

  it('auto: a loopback host may do without, or show what nobody vouches for, and that is said', async () => {
    const without = stepOf(await check(settingsFor(await start())), 'tls')
    expect(without.status).to.equal('ok')
    expect(without.message).to.match(/^No TLS.*loopback/)
    const untrusted = await start({ tls: newCertificate({ names: LOOPBACK }) })
    const lenient = stepOf(await check(settingsFor(untrusted)), 'tls')
    expect(lenient.status).to.equal('ok')
    expect(lenient.message).to.match(/TLSv1\.3.*DEPTH_ZERO_SELF_SIGNED_CERT.*loopback/)
  })

  it('none: everything goes in the clear, though STARTTLS is offered; that and the login are warnings', async () => {
    const server = await start({ tls: good })
    const open = { tls: 'none', ...elsewhere } as const
    const steps = await check(settingsFor(server, open))
    expect(statuses(steps)).to.deep.equal(['ok', 'ok', 'warning', 'warning', 'ok', 'ok', 'ok'])
    expect(stepOf(steps, 'tls').advice).to.include('offers STARTTLS')
    expect(stepOf(steps, 'auth').message).to.include('unencrypted')
    await sendThrough(slotsFor(server, open))
    await sendThrough(slotsFor(server, { tls: 'none', host: 'localhost' }))
    expect(server.steps.STARTTLS).to.equal(0)
    expect(server.mails).to.have.length(3)
    for (const mail of server.mails)
      expect(mail).to.include({ isSecure: false, user: CREDENTIALS.username })
  })
})
