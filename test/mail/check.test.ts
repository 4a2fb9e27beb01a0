import type { AddressInfo, Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { SMTPServer } from 'smtp-server'
import type { CheckedStep, MailCheckOptions, MailStep } from '../../src/mail/sending.ts'
import { settingsTable } from '../../src/settings/table.ts'
import { createMailCheck } from '../../src/mail/smtp/check.ts'
import { tlsPolicy } from '../../src/mail/smtp/connection.ts'
import { stepOf } from '../support/admin.ts'
import { type Certificate, newCertificate } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/serve.ts'
import {
  answers,
  drops,
  fallsSilent,
  type Fault,
  type FaultySmtp,
  type FaultySmtpOptions,
  goesAway,
  neverEnds,
  onFirst,
  startFaultySmtp,
  type Step,
} from '../support/mail-server.ts'
import { movableClock, moveTime } from '../support/time.ts'
import {
  CREDENTIALS,
  expectWhole,
  failureIn,
  failureOf,
  good,
  inTrustingProcess,
  LOOPBACK,
  MAIL,
  NO_LOGIN,
  NO_ROTATION,
  type Outcome,
  SENDER,
  sendThrough,
  settingsFor,
  signed,
  type SmtpSettings,
  statuses,
  STEPS,
  suiteSmtp,
} from './smtp-suite.ts'

const { password: PASSWORD } = CREDENTIALS
const { to, ...mail } = MAIL
const allOk = STEPS.map(() => 'ok')

describe('The check of the mail server', () => {
  const { start, senderFor, check, sockets, endWith } = suiteSmtp()

  it('sends the given mail, and tells at each step what the server said', async () => {
    const queued = answers('dot', '250 2.0.0 queued as 4Fx1')
    const server = await start({ tls: good, fault: queued })
    const steps = await check(settingsFor(server))
    expect(statuses(steps)).to.deep.equal(allOk)
    const greeted = [undefined, '220 here ESMTP', '250 here AUTH PLAIN', '235 Welcome']
    const replies = [...greeted, '250 Ok', '250 Ok', '250 2.0.0 queued as 4Fx1']
    expect(steps.map(({ reply }) => reply)).to.deep.equal(replies)
    expect(stepOf(steps, 'connect').message).to.include(`127.0.0.1 port ${server.port}`)
    expect(stepOf(steps, 'auth').message).to.include('AUTH PLAIN')
    expect(server.mails).to.have.length(1)
    expect(server.mails[0]).to.include({ from: 'no-reply@login.example.com', isSecure: true })
    expect(server.mails[0]?.to).to.deep.equal([to])
    expect(server.mails[0]?.raw).to.include(`Subject: ${MAIL.subject}`)
    expect(server.logins).to.deep.equal([
      { user: CREDENTIALS.username, password: PASSWORD, isSecure: true },
    ])
    expect(server.steps.QUIT).to.equal(1)
    await eventually('the server sees the end', () => server.open === 0)
  })

  it('a recipient that is no plain address is not told to the server', async () => {
    const injection = 'ada@example.org>\r\nRCPT TO:<eve@example.org'
    const others = ['Ada <ada@example.org>', 'ada@example.org, eve@example.org', '']
    for (const bad of [injection, ...others]) {
      const server = await start()
      const steps = await check(settingsFor(server), { to: bad, mail })
      expect(failureIn(steps).step).to.equal('rcpt')
      if (bad) expect(JSON.stringify(steps)).not.to.include(JSON.stringify(bad).slice(1, -1))
      expect(server.steps, bad).to.include({ RCPT: 0, DATA: 0, other: 0 })
      expect(server.mails).to.deep.equal([])
    }
  })

  describe('reaching the host', () => {
    it('tells its addresses, and that a literal needs no look-up; fails for a name that nobody knows', async () => {
      const server = await start()
      const byName = stepOf(await check(settingsFor(server, { host: 'localhost' })), 'dns')
      expect(byName.status).to.equal('ok')
      expect(byName.message).to.include('127.0.0.1')
      const byAddress = stepOf(await check(settingsFor(server)), 'dns')
      const message = '127.0.0.1 is an IP address and needs no DNS look-up.'
      expect(byAddress).to.include({ status: 'ok', message })
      const host = `${'x'.repeat(64)}.example`
      const failed = failureIn(await check(settingsFor({ port: 25 }, { host })))
      expect(failed.step).to.equal('dns')
      expect(failed.message).to.match(/cannot be found \((?:ENOTFOUND|EAI_\w+)\)/)
    })

    it('fails where nothing listens, and names the port', async () => {
      const port = await freePort()
      for (const host of LOOPBACK) {
        const failed = failureIn(await check(settingsFor({ port }, { host })))
        expect(failed.step).to.equal('connect')
        expect(failed.message).to.include(`port ${port}`).and.include('ECONNREFUSED')
        expect(failed.advice).to.include('smtp_port')
      }
    })
  })

  const refusals: [at: Step, step: MailStep, reply: string, told: RegExp][] = [
    ['greeting', 'connect', '554 5.7.1 Your address is listed', /this machine \(554\).*blocked/],
    ['STARTTLS', 'tls', '454 4.7.0 TLS not available', /STARTTLS, but then refuses it \(454\)/],
    ['AUTH', 'auth', '535 5.7.8 Wrong login of mailer', /AUTH PLAIN \(535\).*smtp_password/],
    ['AUTH', 'auth', '534 5.7.9 Application-specific one required', /\(534\).*app password/],
    ['AUTH', 'auth', '454 4.7.0 Later', /\(454\).*few minutes/],
    ['MAIL', 'from', '553 5.7.1 Not yours', /no-reply@\S+ \(553\).*smtp_from/],
    ['MAIL', 'from', '450 4.1.8 Domain not found', /\(450\).*few minutes/],
    ['RCPT', 'rcpt', '550 5.1.1 No such user', /recipient \(550\).*exists/],
    ['RCPT', 'rcpt', '554 5.7.1 Relay access denied', /recipient \(554\).*does not relay our mail/],
    ['RCPT', 'rcpt', '451 4.7.1 Come again later', /\(451\).*Try again in a few minutes/],
    ['DATA', 'data', '451 4.3.0 Full', /\(451\).*few minutes/],
    ['dot', 'data', '554 5.7.1 Looks like spam', /the mail \(554\).*filter/],
  ]
  const refusesHello: Fault = (step) =>
    step === 'EHLO' || step === 'other' ? '550 5.7.1 No' : undefined
  const leaving = '421 4.3.2 Shutting down'
  const HTTP = 'HTTP/1.1 400 Bad Request'
  const another = answers('greeting', HTTP)
  const more = answers('MAIL', '250 Ok\r\n250 Ok\r\n354 Go on')
  type Failure = [what: string, fault: Fault, step: MailStep, reply: string, told: RegExp]
  /** Where the server says nothing that could be shown, the reply is empty. */
  const failures: Failure[] = [
    ['is too busy', goesAway('greeting'), 'connect', leaving, /\(421\).*few minutes/],
    ['closes at once', drops('greeting'), 'connect', '', /answers there.*needs smtp_tls implicit/],
    ['is another kind', another, 'connect', HTTP, /there \(not SMTP\).*smtp_port/],
    ['refuses the hello', refusesHello, 'tls', '550 5.7.1 No', /the first command.*\(550\)/],
    ['closes at the login', drops('AUTH'), 'auth', '', /No proper answer/],
    ['goes away at the sender', goesAway('MAIL'), 'from', leaving, /\(421\)/],
    ['closes after the mail', drops('dot'), 'data', '', /No proper answer/],
    ['never ends an answer', neverEnds('MAIL'), 'from', '', /not SMTP/],
    ['answers more than was asked', more, 'data', '354 Go on', /\(354\)/],
  ]
  const refused = refusals.map(([at, step, reply, told]): Failure => {
    return [`says ${reply} at ${at}`, answers(at, reply), step, reply, told]
  })
  for (const [what, fault, step, reply, told] of [...refused, ...failures]) {
    it(`tells the step and the reason where the server ${what}`, async () => {
      const server = await start({ tls: good, fault })
      const failed = failureIn(await check(settingsFor(server)))
      expect([failed.step, failed.reply ?? '']).to.deep.equal([step, reply])
      expect(`${failed.message} ${failed.advice}`).to.match(told)
      if (step !== 'data') expect(server.mails).to.deep.equal([])
      if (STEPS.indexOf(step) < STEPS.indexOf('auth')) expect(server.logins).to.deep.equal([])
      await eventually('the server sees the end', () => server.open === 0)
    })
  }

  const silences: [at: Step, step: MailStep][] = [
    ['greeting', 'connect'],
    ['EHLO', 'tls'],
    ['STARTTLS', 'tls'],
    ['AUTH', 'auth'],
    ['MAIL', 'from'],
    ['RCPT', 'rcpt'],
    ['DATA', 'data'],
    ['dot', 'data'],
  ]
  for (const [at, step] of silences) {
    it(`tells at which step the time ran out, where the server says nothing at ${at}`, async () => {
      const server = await start({ tls: good, fault: fallsSilent(at) })
      const checking = check(settingsFor(server))
      await server.reaches(at)
      await moveTime(30_000)
      const failed = failureIn(await checking)
      expect([failed.step, failed.message.slice(-14)]).to.deep.equal([step, '(out of time).'])
      if (at === 'greeting') expect(failed.advice).to.include('needs smtp_tls implicit')
      await eventually('the server sees the end', () => server.open === 0)
      expect(server.mails).to.have.length(at === 'dot' ? 1 : 0)
    })
  }

  it('a server that never says goodbye does not hold it up', async () => {
    const server = await start({ fault: fallsSilent('QUIT') })
    const checking = check(settingsFor(server))
    await server.reaches('QUIT')
    await moveTime(2_000)
    expect(statuses(await checking)).to.deep.equal(allOk)
    expect(server.mails).to.have.length(1)
  })

  describe('logging in', () => {
    async function startWith(mechanism: string) {
      const logins: string[] = []
      const server = new SMTPServer({
        authMethods: [mechanism],
        allowInsecureAuth: true,
        disableReverseLookup: true,
        disabledCommands: ['STARTTLS'],
        onAuth({ method, username, password, validatePassword }, _session, callback) {
          logins.push(method)
          const isRight = password === PASSWORD || (!password && validatePassword(PASSWORD))
          if (username === CREDENTIALS.username && isRight) return callback(null, { user: 'x' })
          callback(new Error('Wrong login'))
        },
        onData(stream, _session, callback) {
          stream.on('end', () => callback()).resume()
        },
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
      endWith(() => new Promise<void>((resolve) => server.close(resolve)))
      return { port: (server.server.address() as AddressInfo).port, logins }
    }

    for (const mechanism of ['PLAIN', 'LOGIN', 'CRAM-MD5']) {
      it(`goes by AUTH ${mechanism} where the server offers only that, as mails do`, async () => {
        const server = await startWith(mechanism)
        const steps = await check(settingsFor(server))
        expect(statuses(steps)).to.deep.equal(allOk)
        expect(stepOf(steps, 'auth').message).to.include(`AUTH ${mechanism}`)
        const wrong = failureIn(await check(settingsFor(server, { password: 'another' })))
        expect([wrong.step, wrong.reply?.slice(0, 3)]).to.deep.equal(['auth', '535'])
        const sender = senderFor(server)
        await sendThrough(sender)
        sender.close()
        expect(server.logins).to.deep.equal([mechanism, mechanism, mechanism])
        await eventually('no connection is left', () => sockets.open() === 0)
      })
    }

    it('fails where the server offers only ways that are not supported', async () => {
      const fault: Fault = (step) => {
        if (step === 'EHLO') return '250-here\r\n250 AUTH XOAUTH2'
        return step === 'AUTH' ? '504 5.5.4 Unknown' : undefined
      }
      const failed = failureIn(await check(settingsFor(await start({ fault }))))
      expect([failed.step, failed.reply]).to.deep.equal(['auth', '504 5.5.4 Unknown'])
      expect(failed.advice).to.include('PLAIN, LOGIN or CRAM-MD5')
    })

    it('is skipped without user and password, until the server asks for them', async () => {
      const steps = await check(settingsFor(await start(), NO_LOGIN))
      expect(statuses(steps)).to.deep.equal(['ok', 'ok', 'ok', 'skipped', 'ok', 'ok', 'ok'])
      const reply = '530 5.7.0 Authentication required'
      const strict = await start({ fault: answers('MAIL', reply) })
      const failed = failureIn(await check(settingsFor(strict, NO_LOGIN)))
      expect([failed.step, failed.reply]).to.deep.equal(['from', reply])
      expect(failed.advice).to.include('smtp_username and smtp_password')
      expect(strict.mails).to.deep.equal([])
    })

    it('is tried with a server that knows only HELO, as mails do', async () => {
      const fault: Fault = (step, { line }) => {
        if (step === 'EHLO') return '502 5.5.1 Not here'
        return line.startsWith('HELO') ? '250 here' : undefined
      }
      const server = await start({ fault })
      expect(statuses(await check(settingsFor(server)))).to.deep.equal(allOk)
      expect(server.logins).to.have.length(1)
    })
  })

  describe('what the server said', () => {
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    const sent = base64(`\0${CREDENTIALS.username}\0${PASSWORD}`)

    it('is hidden but for its codes where it holds the password, as it is or as it was sent', async () => {
      let said = ''
      const server = await start({ fault: (step) => (step === 'AUTH' ? said : undefined) })
      const invisible = Array.from(PASSWORD).join('\u200b')
      for (const secret of [PASSWORD, base64(PASSWORD), sent, invisible]) {
        said = `535-5.7.8 Wrong:\r\n535 5.7.8 ${secret}`
        const failed = failureIn(await check(settingsFor(server)))
        expect([failed.step, failed.reply], secret).to.deep.equal(['auth', '535 5.7.8 …'])
      }
      expect(server.mails).to.deep.equal([])
    })

    it('is hidden at every step, also where all goes well', async () => {
      const said = `${PASSWORD} ${sent}`
      const codes: Partial<Record<Step, string>> = { greeting: '220', AUTH: '235' }
      for (const step of ['MAIL', 'RCPT', 'dot'] as const) codes[step] = '250'
      const fault: Fault = (step) => (codes[step] ? `${codes[step]} ${said}` : undefined)
      const server = await start({ fault })
      const steps = await check(settingsFor(server))
      expect(statuses(steps)).to.deep.equal(allOk)
      const shown = ['220 …', '250 here AUTH PLAIN', '235 …', '250 …', '250 …', '250 …']
      expect(steps.map(({ reply }) => reply)).to.deep.equal([undefined, ...shown])
    })

    it('is shown in at most 500 printable characters', async () => {
      const lines = ['first\u0007\u001b[31m', '\u202etfel', 'x'.repeat(600)]
      const reply = lines.map((line, index) => `550${index === 2 ? ' ' : '-'}${line}`).join('\r\n')
      const server = await start({ fault: answers('RCPT', reply) })
      const failed = failureIn(await check(settingsFor(server)))
      expect(failed.reply).to.match(/^550 first \[31m tfel x+$/)
      expect(failed.reply).to.have.length(500)
    })
  })

  describe('with its first step, the settings', () => {
    const host = { smtp_host: '127.0.0.1', smtp_from: SENDER }
    const complete = ({ port }: { port: number }) => ({ ...host, smtp_port: String(port) })

    /** What it says of settings as an admin writes them; without those that are not given. */
    async function checkOf(values: Record<string, string>, options: MailCheckOptions) {
      const parsed = Object.entries(settingsTable).map(([key, setting]) => {
        const value = values[setting.name] ?? setting.default
        return [key, value === undefined ? undefined : setting.parse(value)]
      })
      const settings = Object.fromEntries(parsed)
      const steps = await createMailCheck(movableClock, NO_ROTATION)(settings, options)
      expect(steps.map(({ step }) => step)).to.deep.equal(['configuration', ...STEPS])
      expect(JSON.stringify(steps)).not.to.include(PASSWORD)
      expect(sockets.open()).to.equal(0)
      const [settingsStep, ...others] = steps
      return { first: settingsStep, others: others as CheckedStep[] }
    }

    it('says which of them are missing, and tries nothing; goes on to the server where they are complete', async () => {
      const none = await checkOf({ smtp_host: '127.0.0.1' }, { to, mail })
      expect(none.first?.status).to.equal('failed')
      expect(none.first?.message).to.include('smtp_port and smtp_from missing')
      expect(statuses(none.others)).to.deep.equal(STEPS.map(() => 'skipped'))
      expect(sockets.most()).to.equal(0)
      const server = await start({ tls: good })
      const login = { smtp_username: 'mailer', smtp_password: PASSWORD }
      const { first, others } = await checkOf({ ...complete(server), ...login }, { to, mail })
      expect([first?.status, ...statuses(others)]).to.deep.equal(['ok', ...allOk])
      expect(server.mails).to.have.length(1)
    })

    for (const [given, missing] of [
      ['smtp_username', 'smtp_password'],
      ['smtp_password', 'smtp_username'],
    ] as const) {
      it(`warns of ${given} without ${missing}, and does not log in`, async () => {
        const server = await start()
        const { first, others } = await checkOf({ ...complete(server), [given]: PASSWORD }, { to })
        expect(first?.status).to.equal('warning')
        expect(first?.message).to.include(`${given} is set but ${missing} is not`)
        expect(stepOf(others, 'auth').status).to.equal('skipped')
        expect(stepOf(others, 'rcpt').status).to.equal('ok')
        expect(server.logins).to.deep.equal([])
      })
    }
  })
})

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
  const { start, senderFor, check, sockets } = suiteSmtp()

  it('decides by the port where it is auto, and demands less of a loopback host only then', () => {
    const policy = (tls: Tls, port: number, host: string) => {
      const found = tlsPolicy({ smtpHost: host, smtpPort: port, smtpTls: tls })
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
      const sender = senderFor(server, other)
      expect((await failureOf(sendThrough(sender))).code).to.equal('ERR_MAIL_FAILED')
      await eventually('the socket is closed', () => sockets.open() === 0)
      await nothingWasSent(server)
      const honest = await start({ tls: { ...good, maxVersion: 'TLSv1.2' } })
      await sendThrough(senderFor(honest))
      expect(honest.mails.map(({ isSecure }) => isSecure)).to.deep.equal([true])
    })
  }

  it('takes nothing below TLS 1.2, which a server that knows only 1.1 does speak', async () => {
    const { port } = await start({ tls: { ...good, ...OLD }, isImplicitTls: true })
    const at = { port, host: '127.0.0.1', rejectUnauthorized: false, ...OLD }
    const spoken = await new Promise<string | null>((resolve, reject) => {
      const socket: TLSSocket = connect(at, () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
      socket.on('error', reject)
    })
    expect(spoken).to.equal('TLSv1.1')
  })

  it('auto: the next mail goes over another connection, once a loopback host goes through with STARTTLS', async () => {
    const server = await start({ fault: onFirst(1, speaksHttp) })
    const sender = senderFor(server)
    expect((await failureOf(sendThrough(sender))).code).to.equal('ERR_MAIL_FAILED')
    await nothingWasSent(server)
    await sendThrough(sender)
    expect(server.mails).to.have.length(1)
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
    await sendThrough(senderFor(server, open))
    await sendThrough(senderFor(server, { tls: 'none', host: 'localhost' }))
    expect(server.steps.STARTTLS).to.equal(0)
    expect(server.mails).to.have.length(3)
    for (const mail of server.mails)
      expect(mail).to.include({ isSecure: false, user: CREDENTIALS.username })
  })
})
