import type { AddressInfo, Socket } from 'node:net'
import { expect } from 'chai'
import { SMTPServer } from 'smtp-server'
import { createMailCheck } from '../../src/smtp/check.ts'
import { smtpSlots } from '../../src/smtp/sender.ts'
import type { SmtpSettings } from '../../src/smtp/settings.ts'
import type { CheckedStep, MailCheckOptions, MailStep } from '../../src/ports/index.ts'
import { settingsTable, type Settings } from '../../src/settings/table.ts'
import { newCertificate, type Certificate } from '../support/certificates.ts'
import { countClientSockets } from '../support/client-sockets.ts'
import { eventually } from '../support/eventually.ts'
import {
  answers,
  drops,
  fallsSilent,
  goesAway,
  neverEnds,
  startFaultySmtp,
  trickles,
  type Fault,
  type FaultySmtp,
  type FaultySmtpOptions,
  type Step,
} from '../support/faulty-smtp.ts'
import { freePort } from '../support/free-port.ts'
import { startMailServer } from '../support/mail-server.ts'
import { MAIL, sendThrough, settingsLike } from '../support/mail-sending.ts'
import { CREDENTIALS, SENDER, suiteSmtp } from '../support/suite-smtp.ts'
import { ACCESS_TOKENS, NO_ROTATION } from '../support/no-rotation.ts'
import { movableClock, moveTime, resetTime } from '../support/time.ts'
import { inTrustingProcess } from '../support/trusting-process.ts'

const STEPS: MailStep[] = ['dns', 'connect', 'tls', 'auth', 'from', 'rcpt', 'data']
const { password: PASSWORD } = CREDENTIALS
const LOOPBACK = ['localhost', '127.0.0.1']
const DAY_MS = 86_400_000
const authority = newCertificate({})
const certificate = newCertificate({ names: LOOPBACK, signer: authority })
const { to, ...mail } = MAIL

describe('The check of the mail server', () => {
  after(resetTime)
  const { start, endWith } = suiteSmtp()
  let sockets: ReturnType<typeof countClientSockets>

  beforeEach(() => {
    sockets = countClientSockets()
  })
  afterEach(() => sockets.stop())

  function settingsFor({ port }: { port: number }, other: Partial<SmtpSettings> = {}) {
    const server = { host: '127.0.0.1', port, tls: 'auto', from: SENDER }
    return { ...server, ...CREDENTIALS, ...other } as SmtpSettings
  }

  /** Sends a mail. Every answer has all steps in their order, nothing after a failure, no secret, and no socket behind it. */
  async function check(
    settings: SmtpSettings,
    options: MailCheckOptions = { to, mail },
  ): Promise<CheckedStep[]> {
    const checkMail = createMailCheck(movableClock, NO_ROTATION)
    const [, ...rest] = await checkMail(settingsLike(settings), options)
    const steps = rest as CheckedStep[]
    expect(sockets.open).to.equal(0)
    expectWhole(steps)
    return steps
  }

  function expectWhole(steps: CheckedStep[]) {
    expect(steps.map(({ step }) => step)).to.deep.equal(STEPS)
    const failedAt = steps.findIndex(({ status }) => status === 'failed')
    if (failedAt >= 0) {
      expect(steps.slice(0, failedAt).map(({ status }) => status)).not.to.include('failed')
      for (const { status, message } of steps.slice(failedAt + 1)) {
        expect([status, message]).to.deep.equal(['skipped', 'Not tried: an earlier step failed.'])
      }
      expect(steps[failedAt]?.advice).to.be.a('string')
    }
    expect(JSON.stringify(steps)).not.to.include(PASSWORD)
    for (const { reply, message } of steps) {
      expect(message.length).to.be.greaterThan(0)
      expect(reply ?? '').to.match(/^\P{C}{0,500}$/u)
    }
  }

  function stepOf(steps: CheckedStep[], wanted: MailStep): CheckedStep {
    const found = steps.find(({ step }) => step === wanted)
    if (!found) throw new Error(`no step ${wanted}`)
    return found
  }

  function failureIn(steps: CheckedStep[]): CheckedStep {
    const failed = steps.find(({ status }) => status === 'failed')
    if (!failed) throw new Error(`nothing failed: ${JSON.stringify(steps)}`)
    return failed
  }

  const statuses = (steps: Pick<CheckedStep, 'status'>[]) => steps.map(({ status }) => status)
  const allOk = STEPS.map(() => 'ok')

  it('sends the given mail, and tells at each step what the server said', async () => {
    const queued = answers('dot', '250 2.0.0 queued as 4Fx1')
    const server = await start({ tls: certificate, fault: queued })
    const steps = await check(settingsFor(server))
    expect(statuses(steps)).to.deep.equal(allOk)
    expect(steps.map(({ reply }) => reply)).to.deep.equal([
      undefined,
      '220 here ESMTP',
      '250 here AUTH PLAIN',
      '235 Welcome',
      '250 Ok',
      '250 Ok',
      '250 2.0.0 queued as 4Fx1',
    ])
    expect(stepOf(steps, 'connect').message).to.include(`127.0.0.1 port ${server.port}`)
    expect(stepOf(steps, 'auth').message).to.include('AUTH PLAIN')
    expect(server.mails).to.have.length(1)
    expect(server.mails[0]).to.include({ from: 'no-reply@login.example.com', isSecure: true })
    expect(server.mails[0]?.to).to.deep.equal([to])
    expect(server.logins).to.deep.equal([
      { user: CREDENTIALS.username, password: PASSWORD, isSecure: true },
    ])
    expect(server.steps.QUIT).to.equal(1)
    await eventually('the server sees the end', () => server.open === 0)
  })

  it('the mail arrives as it was given, also where its lines start with a dot', async () => {
    const server = await startMailServer({ login: CREDENTIALS })
    endWith(server.close)
    const text = '.\n.. dots\nGrüße\n.last'
    const steps = await check(settingsFor(server), { to, mail: { ...mail, text } })
    expect(statuses(steps)).to.deep.equal(allOk)
    const { mail: received } = await server.mailTo(to)
    expect(received.text?.trim()).to.equal(text)
    expect(received.subject).to.equal(mail.subject)
    expect(received.from?.value[0]?.address).to.equal('no-reply@login.example.com')
  })

  for (const [what, given, expected, tried] of [
    ['a recipient nothing but the sender', {}, ['ok', 'skipped', 'skipped'], { RCPT: 0 }],
    ['a mail the recipient, and nothing more,', { to }, ['ok', 'ok', 'skipped'], { RCPT: 1 }],
  ] as const) {
    it(`without ${what} is tried`, async () => {
      const server = await start()
      const steps = await check(settingsFor(server), given)
      expect(statuses(steps)).to.deep.equal(['ok', 'ok', 'ok', 'ok', ...expected])
      if (expected[1] === 'skipped')
        expect(stepOf(steps, 'rcpt').advice).to.match(/^To try one, give an address/)
      expect(server.steps).to.include({ MAIL: 1, ...tried, DATA: 0, QUIT: 1 })
      expect(server.mails).to.deep.equal([])
    })
  }

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

  describe('finding the host', () => {
    it('tells its addresses, and that a literal needs no look-up', async () => {
      const server = await start()
      const byName = stepOf(await check(settingsFor(server, { host: 'localhost' })), 'dns')
      expect(byName.status).to.equal('ok')
      expect(byName.message).to.include('127.0.0.1')
      const byAddress = stepOf(await check(settingsFor(server)), 'dns')
      const message = '127.0.0.1 is an IP address and needs no DNS look-up.'
      expect(byAddress).to.include({ status: 'ok', message })
    })

    it('fails for a name that nobody knows', async () => {
      const host = `${'x'.repeat(64)}.example`
      const failed = failureIn(await check(settingsFor({ port: 25 }, { host })))
      expect(failed.step).to.equal('dns')
      expect(failed.message).to.match(/cannot be found \((?:ENOTFOUND|EAI_\w+)\)/)
    })
  })

  describe('connecting', () => {
    it('fails where nothing listens, and names the port', async () => {
      const port = await freePort()
      for (const host of LOOPBACK) {
        const failed = failureIn(await check(settingsFor({ port }, { host })))
        expect(failed.step).to.equal('connect')
        expect(failed.message).to.include(`port ${port}`).and.include('ECONNREFUSED')
        expect(failed.advice).to.include('smtp_port')
      }
    })

    it('without a greeting the server may expect TLS, which is said', async () => {
      const server = await start({ tls: certificate, isImplicitTls: true })
      const checking = check(settingsFor(server))
      await eventually('it waits for a greeting', () => server.connections === 1)
      await moveTime(30_000)
      const failed = failureIn(await checking)
      expect(failed.step).to.equal('connect')
      expect(failed.message).to.include('answers there (out of time)')
      expect(failed.advice).to.include('needs smtp_tls implicit')
      expect(server.mails).to.deep.equal([])
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
  const more = answers('MAIL', '250 Ok\r\n250 Ok\r\n354 Go on')
  type Failure = [what: string, fault: Fault, step: MailStep, reply: string, told: RegExp]
  /** Where the server says nothing that could be shown, the reply is empty. */
  const failures: Failure[] = [
    ...refusals.map(([at, step, reply, told]): Failure => [
      `says ${reply} at ${at}`,
      answers(at, reply),
      step,
      reply,
      told,
    ]),
    ['is too busy', goesAway('greeting'), 'connect', leaving, /\(421\).*few minutes/],
    ['closes at once', drops('greeting'), 'connect', '', /answers there.*needs smtp_tls implicit/],
    [
      'is another kind',
      answers('greeting', HTTP),
      'connect',
      HTTP,
      /no mail server answers there \(not SMTP\).*smtp_port/,
    ],
    [
      'refuses the hello',
      refusesHello,
      'tls',
      '550 5.7.1 No',
      /refuses the first command.*\(550\)/,
    ],
    ['closes at the login', drops('AUTH'), 'auth', '', /No proper answer/],
    ['goes away at the sender', goesAway('MAIL'), 'from', leaving, /\(421\)/],
    ['closes after the mail', drops('dot'), 'data', '', /No proper answer/],
    ['never ends an answer', neverEnds('MAIL'), 'from', '', /not SMTP/],
    ['answers more than was asked', more, 'data', '354 Go on', /\(354\)/],
  ]
  for (const [what, fault, step, reply, told] of failures) {
    it(`tells the step and the reason where the server ${what}`, async () => {
      const server = await start({ tls: certificate, fault })
      const failed = failureIn(await check(settingsFor(server)))
      expect([failed.step, failed.reply ?? '']).to.deep.equal([step, reply])
      expect(`${failed.message} ${failed.advice}`).to.match(told)
      if (step !== 'data') expect(server.mails).to.deep.equal([])
      if (STEPS.indexOf(step) < STEPS.indexOf('auth')) expect(server.logins).to.deep.equal([])
      await eventually('the server sees the end', () => server.open === 0)
    })
  }

  const silences: Partial<Record<Step, MailStep>> = {
    greeting: 'connect',
    EHLO: 'tls',
    STARTTLS: 'tls',
    AUTH: 'auth',
    MAIL: 'from',
    RCPT: 'rcpt',
    DATA: 'data',
    dot: 'data',
  }
  for (const [how, fault] of [
    ['says nothing', fallsSilent],
    ['never ends a line', trickles],
  ] as const) {
    for (const [at, step] of Object.entries(silences) as [Step, MailStep][]) {
      it(`tells at which step the time ran out, where the server ${how} at ${at}`, async () => {
        const server = await start({ tls: certificate, fault: fault(at) })
        const checking = check(settingsFor(server))
        await server.reaches(at)
        await moveTime(30_000)
        const failed = failureIn(await checking)
        expect([failed.step, failed.message.slice(-14)]).to.deep.equal([step, '(out of time).'])
        await eventually('the server sees the end', () => server.open === 0)
        expect(server.mails).to.have.length(at === 'dot' ? 1 : 0)
      })
    }
  }

  it('a server that never says goodbye does not hold it up', async () => {
    const server = await start({ fault: fallsSilent('QUIT') })
    const checking = check(settingsFor(server))
    await server.reaches('QUIT')
    await moveTime(2_000)
    expect(statuses(await checking)).to.deep.equal(allOk)
    expect(server.mails).to.have.length(1)
  })

  describe('TLS', () => {
    /** Offers STARTTLS, and does this in place of the handshake. */
    const instead =
      (act: (socket: Socket) => void): Fault =>
      (step, { socket }) => {
        if (step === 'EHLO') return '250-here\r\n250 STARTTLS'
        if (step !== 'STARTTLS') return undefined
        socket.once('data', () => act(socket))
        return '220 Go ahead'
      }
    const speaksHttp = instead((socket) => socket.write(`${HTTP}\r\n\r\n`))
    const closes = instead((socket) => socket.destroy())
    const ciphers = 'DEFAULT@SECLEVEL=0'
    const old = { ...certificate, maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers } as const
    const stripped = /does not offer STARTTLS.*may remove it/
    const tlsFailures: [string, FaultySmtpOptions, Partial<SmtpSettings>, RegExp][] = [
      ['STARTTLS is required and not offered', {}, { tls: 'starttls' }, stripped],
      // Any address of this machine, but by its name no loopback host.
      ['it is not offered on another host', {}, { host: '0.0.0.0' }, stripped],
      ['HTTP answers the handshake', { fault: speaksHttp }, {}, /handshake failed \(\w+\).*proxy/],
      ['the server closes during it', { fault: closes }, {}, /handshake failed \(E\w+\)/],
      [
        'implicit TLS is none',
        {},
        { tls: 'implicit' },
        /handshake failed \(\w+\).*smtp_tls to starttls/,
      ],
      ['a server knows only TLS 1.1', { tls: old }, {}, /handshake failed \(\w+\).*TLS 1\.2/],
    ]
    for (const [what, options, other, told] of tlsFailures) {
      it(`where ${what}, it says so, and nobody logs in`, async () => {
        const server = await start(options)
        const failed = failureIn(await check(settingsFor(server, other)))
        expect(failed.step).to.equal('tls')
        expect(`${failed.message} ${failed.advice}`).to.match(told)
        expect([server.logins, server.mails]).to.deep.equal([[], []])
        await eventually('the server sees the end', () => server.open === 0)
      })
    }

    it('a loopback host may do without, or show what nobody vouches for, and that is said', async () => {
      const plain = await start()
      const without = stepOf(await check(settingsFor(plain)), 'tls')
      expect(without.status).to.equal('ok')
      expect(without.message).to.match(/^No TLS.*loopback/)
      const untrusted = await start({ tls: newCertificate({ names: LOOPBACK }) })
      const lenient = stepOf(await check(settingsFor(untrusted)), 'tls')
      expect(lenient.status).to.equal('ok')
      expect(lenient.message).to.match(/TLSv1\.3.*DEPTH_ZERO_SELF_SIGNED_CERT.*loopback/)
    })

    it('smtp_tls none is a warning, and so is a login that others can read', async () => {
      const server = await start({ tls: certificate })
      const steps = await check(settingsFor(server, { tls: 'none', host: '0.0.0.0' }))
      expect(statuses(steps)).to.deep.equal(['ok', 'ok', 'warning', 'warning', 'ok', 'ok', 'ok'])
      expect(stepOf(steps, 'tls').advice).to.include('offers STARTTLS')
      expect(stepOf(steps, 'auth').message).to.include('unencrypted')
      expect(server.steps.STARTTLS).to.equal(0)
      expect(server.mails.map(({ isSecure }) => isSecure)).to.deep.equal([false])
    })

    it('what was said in plain text after the STARTTLS answer is not believed', async () => {
      const injected = ['220 Go ahead', '250-here', '250 AUTH PLAIN', '235 Ok', '250 Ok']
      const server = await start({
        tls: certificate,
        offersAuth: false,
        fault: answers('STARTTLS', injected.join('\r\n')),
      })
      const failed = failureIn(await check(settingsFor(server)))
      expect(failed.step).to.equal('auth')
      expect(failed.message).to.include('the server offers no login here')
      expect([server.logins, server.mails]).to.deep.equal([[], []])
    })

    describe('in a process that trusts an authority (NODE_EXTRA_CA_CERTS):', () => {
      const asked: { tls: SmtpSettings['tls']; options: FaultySmtpOptions }[] = []
      const checked: { server: FaultySmtp; steps: CheckedStep[] }[] = []

      /** Of this server, once all are checked in one process. */
      function checking(tls: 'starttls' | 'implicit', options: FaultySmtpOptions) {
        const isImplicitTls = tls === 'implicit'
        const index = asked.push({ tls, options: { ...options, isImplicitTls } }) - 1
        return () => {
          const found = checked[index]
          if (!found) throw new Error('it was not checked')
          expectWhole(found.steps)
          return found
        }
      }

      before(async () => {
        const all = await Promise.all(
          asked.map(async ({ tls, options }) => {
            const server = await startFaultySmtp({ offersAuth: true, ...options })
            return { server, settings: settingsFor(server, { tls }) }
          }),
        )
        const settings = all.map((each) => each.settings)
        const answers = await inTrustingProcess<CheckedStep[]>('check', authority, settings)
        expect(answers).to.have.length(all.length)
        for (const [index, { server }] of all.entries()) {
          checked.push({ server, steps: answers[index] ?? [] })
        }
      })
      after(async () => {
        for (const { server } of checked) await server.close()
      })

      const signed = (wish: Parameters<typeof newCertificate>[0]) =>
        newCertificate({ names: LOOPBACK, signer: authority, ...wish })
      const bad: Record<string, { tls: Certificate; message: RegExp; advice: RegExp }> = {
        expired: {
          tls: signed({ validUntil: new Date('2020-02-03T00:00:00Z') }),
          message: /expired \(2020-02-03\).*CERT_HAS_EXPIRED/,
          advice: /Renew it.*clock of this machine says \d{4}-\d\d-\d\d/,
        },
        'not valid yet': {
          tls: signed({ validFrom: new Date(Date.now() + 2 * DAY_MS) }),
          message: /valid only from \d{4}-\d\d-\d\d on \(CERT_NOT_YET_VALID\)/,
          advice: /clock of this machine/,
        },
        'for other names': {
          tls: signed({ names: ['mail.example', '127.0.0.2'] }),
          message: /not for 127\.0\.0\.1 but for mail\.example, 127\.0\.0\.2 \(ERR_TLS_CERT/,
          advice: /smtp_host/,
        },
        'self-signed': {
          tls: newCertificate({ names: LOOPBACK }),
          message: /signed only by itself \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
          advice: /NODE_EXTRA_CA_CERTS/,
        },
        'of an authority that only bears the name of the trusted one': {
          tls: signed({ signer: newCertificate({}) }),
          message: /authority that is not trusted here \(CERT_SIGNATURE_FAILURE\)/,
          advice: /NODE_EXTRA_CA_CERTS/,
        },
      }

      for (const [what, { tls, message, advice }] of Object.entries(bad)) {
        for (const mode of ['starttls', 'implicit'] as const) {
          const result = checking(mode, { tls })
          it(`${mode}: of a certificate that is ${what} it tells the reason, and nobody logs in`, () => {
            const { server, steps } = result()
            const failed = failureIn(steps)
            expect(failed.step).to.equal('tls')
            expect(failed.message).to.match(message)
            expect(failed.advice).to.match(advice)
            expect([server.logins, server.mails, server.open]).to.deep.equal([[], [], 0])
            expect(server.steps).to.include({ AUTH: 0, MAIL: 0 })
          })
        }
      }

      const soon = signed({ validUntil: new Date(Date.now() + 5.5 * DAY_MS) })
      const trusted = [
        checking('starttls', { tls: certificate }),
        checking('implicit', { tls: { ...certificate, maxVersion: 'TLSv1.2' } }),
        checking('starttls', { tls: soon }),
      ]
      it('tells protocol, cipher and until when the certificate is valid, and warns before it ends', () => {
        const results = trusted.map((result) => result())
        const tls = results.map(({ steps }) => stepOf(steps, 'tls'))
        expect(tls.map(({ status }) => status)).to.deep.equal(['ok', 'ok', 'warning'])
        expect(tls[0]?.message).to.match(/^STARTTLS .*TLSv1\.3 with TLS_\w+; .*until \d{4}-/)
        expect(tls[1]?.message).to.match(/^Implicit TLS .*TLSv1\.2 with \w+; .*until \d{4}-/)
        expect(tls[2]?.advice).to.match(/expires in 5 days/)
        for (const { server, steps } of results) {
          expect(statuses(steps)).not.to.include('failed')
          expect(server.mails.map(({ isSecure }) => isSecure)).to.deep.equal([true])
        }
      })

      const listed = answers('greeting', '554 5.7.1 Listed')
      const refusing = checking('implicit', { tls: certificate, fault: listed })
      it('over implicit TLS, a greeting that refuses fails after the handshake', () => {
        const { server, steps } = refusing()
        const failed = failureIn(steps)
        expect([failed.step, failed.reply]).to.deep.equal(['tls', '554 5.7.1 Listed'])
        expect(failed.message).to.include('554')
        expect(server.mails).to.deep.equal([])
      })
    })
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
        const slots = smtpSlots(settingsFor(server), movableClock, ACCESS_TOKENS)
        await sendThrough(slots)
        slots.close()
        expect(server.logins).to.deep.equal([mechanism, mechanism, mechanism])
        await eventually('the slots is empty', () => slots.isEmpty())
      })
    }

    it('fails where the server offers none, and says what to try', async () => {
      const plain = await start({ offersAuth: false })
      const failed = failureIn(await check(settingsFor(plain)))
      const none = 'A login is set, but the server offers no login here.'
      expect([failed.step, failed.message]).to.deep.equal(['auth', none])
      expect(failed.advice).to.include('over TLS')
      expect(plain.mails).to.deep.equal([])
    })

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
      const { host, port, tls, from } = settingsFor(await start())
      const steps = await check({ host, port, tls, from })
      expect(statuses(steps)).to.deep.equal(['ok', 'ok', 'ok', 'skipped', 'ok', 'ok', 'ok'])
      const reply = '530 5.7.0 Authentication required'
      const strict = await start({ fault: answers('MAIL', reply) })
      const failed = failureIn(await check({ host, port: strict.port, tls, from }))
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
      expect(steps.map(({ reply }) => reply)).to.deep.equal([
        undefined,
        '220 …',
        '250 here AUTH PLAIN',
        '235 …',
        '250 …',
        '250 …',
        '250 …',
      ])
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
    function settingsWith(values: Record<string, string>): Settings {
      const parsed = Object.entries(settingsTable).map(
        ([key, { name, default: byDefault, parse }]) => {
          const value = values[name] ?? byDefault
          return [key, value === undefined ? undefined : parse(value)]
        },
      )
      return Object.fromEntries(parsed)
    }
    const complete = (port: number) => ({
      smtp_host: '127.0.0.1',
      smtp_port: String(port),
      smtp_from: 'no-reply@login.example.com',
    })

    it('says which of them are missing, and tries nothing', async () => {
      const settings = settingsWith({ smtp_host: '127.0.0.1' })
      const steps = await createMailCheck(movableClock, NO_ROTATION)(settings, { to, mail })
      expect(steps.map(({ step }) => step)).to.deep.equal(['configuration', ...STEPS])
      expect(statuses(steps)).to.deep.equal(['failed', ...STEPS.map(() => 'skipped')])
      expect(steps[0]?.message).to.include('smtp_port and smtp_from missing')
      expect(sockets.most).to.equal(0)
    })

    it('goes on to the server where they are complete', async () => {
      const server = await start({ tls: certificate })
      const login = { smtp_username: 'mailer', smtp_password: PASSWORD }
      const settings = settingsWith({ ...complete(server.port), ...login })
      const steps = await createMailCheck(movableClock, NO_ROTATION)(settings, { to, mail })
      expect(steps.map(({ step }) => step)).to.deep.equal(['configuration', ...STEPS])
      expect(statuses(steps)).to.deep.equal(['ok', ...allOk])
      expect(server.mails).to.have.length(1)
      expect(sockets.open).to.equal(0)
    })

    for (const [given, missing] of [
      ['smtp_username', 'smtp_password'],
      ['smtp_password', 'smtp_username'],
    ] as const) {
      it(`warns of ${given} without ${missing}, and does not log in`, async () => {
        const server = await start()
        const settings = settingsWith({ ...complete(server.port), [given]: PASSWORD })
        const steps = await createMailCheck(movableClock, NO_ROTATION)(settings, { to })
        expect(steps[0]?.status).to.equal('warning')
        expect(steps[0]?.message).to.include(`${given} is set but ${missing} is not`)
        expect(steps.find(({ step }) => step === 'auth')?.status).to.equal('skipped')
        expect(steps.find(({ step }) => step === 'rcpt')?.status).to.equal('ok')
        expect(server.logins).to.deep.equal([])
        expect(JSON.stringify(steps)).not.to.include(PASSWORD)
      })
    }
  })
})
