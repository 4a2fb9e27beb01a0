import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { SMTPServer } from 'smtp-server'
import { createMailCheck } from '../../src/smtp/check.ts'
import type { CheckedStep, MailCheckOptions, MailStep } from '../../src/ports/index.ts'
import { settingsTable } from '../../src/settings/table.ts'
import { eventually } from '../support/eventually.ts'
import {
  answers,
  drops,
  fallsSilent,
  goesAway,
  neverEnds,
  trickles,
  type Fault,
  type Step,
} from '../support/mail-server.ts'
import { freePort } from '../support/free-port.ts'
import { movableClock, moveTime } from '../support/time.ts'
import {
  CREDENTIALS,
  failureIn,
  good,
  LOOPBACK,
  MAIL,
  NO_LOGIN,
  NO_ROTATION,
  SENDER,
  sendThrough,
  settingsFor,
  statuses,
  stepOf,
  STEPS,
  suiteSmtp,
} from './smtp-suite.ts'

const { password: PASSWORD } = CREDENTIALS
const { to, ...mail } = MAIL
const allOk = STEPS.map(() => 'ok')

describe('The check of the mail server', () => {
  const { start, slotsFor, check, sockets, endWith } = suiteSmtp()

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

    it('without a greeting the server may expect TLS, which is said', async () => {
      const server = await start({ tls: good, isImplicitTls: true })
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
    for (const [how, faultAt] of [
      ['says nothing', fallsSilent],
      ['never ends a line', trickles],
    ] as const) {
      it(`tells at which step the time ran out, where the server ${how} at ${at}`, async () => {
        const server = await start({ tls: good, fault: faultAt(at) })
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
        const slots = slotsFor(server)
        await sendThrough(slots)
        slots.close()
        expect(server.logins).to.deep.equal([mechanism, mechanism, mechanism])
        await eventually('no connection is left', () => slots.isEmpty())
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
