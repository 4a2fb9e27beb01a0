import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { adminOf, outcomeOf, stepOf, suiteAdmin } from '../support/admin.ts'
import { onEachStore, startHarness, suiteHarness } from '../support/harness.ts'
import { eventually } from '../support/eventually.ts'
import { answers, startFaultySmtp, type Fault } from '../support/mail-server.ts'
import { dump, instead } from '../support/records.ts'
import type { Person } from '../support/person.ts'
import { serve } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'

const SECRET = 'client-secret-canary'
const REFRESH = 'refresh-token-0-canary'
const MAILBOX = 'accounts@idp.example'
const HOUR_MS = 3_600_000

/** What a token endpoint does with a request. */
type TokenAnswer = (form: URLSearchParams, res: ServerResponse) => unknown

/** @param next - what it answers in turn; afterwards an access token, good for an hour. */
async function startTokenServer(next: TokenAnswer[] = []) {
  const asked: URLSearchParams[] = []
  const issued: string[] = []
  const honest: TokenAnswer = (_form, res) => {
    issued.push(`access-token-${issued.length + 1}-canary`)
    res.end(JSON.stringify({ token_type: 'Bearer', expires_in: 3600, access_token: issued.at(-1) }))
  }
  const { url, close } = await serve((req, res) => {
    void text(req).then((body) => {
      const form = new URLSearchParams(body)
      asked.push(form)
      return (next.shift() ?? honest)(form, res)
    })
  })
  return { endpoint: `${url}/token`, asked, issued, close }
}

const says =
  (body: unknown, status = 200): TokenAnswer =>
  (_form, res) =>
    res.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))

/** It repeats what it was sent. */
const refuse =
  (error: string, status = 400): TokenAnswer =>
  (form, res) =>
    says({ error, error_description: `What you sent: ${form.toString()}` }, status)(form, res)

/** Answers a new refresh token beside the access token, and takes no other from then on. */
function rotating(): TokenAnswer {
  let [current, count] = [REFRESH, 0]
  return (form, res) => {
    if (form.get('refresh_token') !== current) {
      refuse('invalid_grant')(form, res)
      return
    }
    count += 1
    current = `refresh-token-${count}-canary`
    const token = { token_type: 'bearer', access_token: `rotated-access-token-${count}` }
    says({ ...token, expires_in: 3600, refresh_token: current })(form, res)
  }
}

const isAway = () => () => Promise.reject(new Error('the database is away'))

/** An SMTP server that knows XOAUTH2 alone, with the tokens that it was shown. */
async function startOAuthSmtp(
  isTaken: (token: string, user: string) => boolean,
  challenges = () => true,
) {
  const shown: string[] = []
  const loggedIn = new Set<number>()
  const fault: Fault = (step, { line, connection }) => {
    if (step === 'EHLO') return '250-here\r\n250 AUTH XOAUTH2'
    if (step === 'MAIL' && !loggedIn.has(connection)) return '530 5.7.0 Log in'
    // The client's answer to the challenge.
    if (step === 'other' && line === '') return '535 No'
    if (step !== 'AUTH') return undefined
    const [user = '', bearer = ''] = atob(line.split(' ')[2] ?? '').split('\u0001auth=')
    const token = bearer.slice('Bearer '.length, -2)
    shown.push(token)
    if (isTaken(token, user.slice('user='.length))) {
      loggedIn.add(connection)
      return undefined
    }
    // As Google does it, and as Microsoft does.
    return challenges() ? `334 ${btoa('{"status":"400"}')}` : `535 5.7.3 Unsuccessful ${token}`
  }
  return Object.assign(await startFaultySmtp({ fault }), { shown })
}

onEachStore('The login to the mail server by access token (smtp_auth xoauth2)', (technology) => {
  const logged: string[] = []
  const answered: string[] = []
  const h = suiteHarness({
    technology,
    flows: { log: (...line) => logged.push(JSON.stringify(line)) },
  })
  const admin = suiteAdmin(h)
  let next: TokenAnswer[] = []
  let isTaken = (_token: string) => true
  let challenges = true
  let tokens: Awaited<ReturnType<typeof startTokenServer>>
  let smtp: Awaited<ReturnType<typeof startOAuthSmtp>>

  beforeEach(async () => {
    ;[next, isTaken, challenges] = [[], () => true, true]
    tokens = await startTokenServer(next)
    smtp = await startOAuthSmtp(
      (token, user) => user === MAILBOX && isTaken(token),
      () => challenges,
    )
    await admin.unsetSettings(['smtp_oauth_refresh_token', 'smtp_oauth_scope'])
    await put({
      smtp_username: MAILBOX,
      smtp_auth: 'xoauth2',
      smtp_oauth_token_endpoint: tokens.endpoint,
      smtp_oauth_client_id: 'client-1',
    })
    await goesTo(smtp)
  })

  afterEach('no secret is told, logged or stored in the clear', async () => {
    await h.isIdle()
    answered.push(JSON.stringify([await admin.getSettings(), logged]), await dump(h))
    expect(answered.splice(0).join()).to.not.match(/canary|access-token-/)
    await Promise.all([tokens.close(), smtp.close()])
  })

  async function put(settings: Record<string, string>) {
    answered.push(JSON.stringify(await admin.putSettings(settings)))
  }

  /** Mails go to this server, with the secret that is forgotten with the one before. */
  const goesTo = ({ port }: { port: number }) =>
    put({ smtp_port: String(port), smtp_oauth_client_secret: SECRET })

  async function isTakenToBeSent(accountId: string): Promise<boolean> {
    const [job] = await h.store.outbox.list({ accountId, limit: 1 }, new Date())
    return job?.isHeld === true && job.attempts > 0
  }

  async function sendOne(): Promise<Person> {
    const user = await h.addVerified()
    const { mail_id } = await admin.sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'sent')
    return user
  }

  /** Asks for a mail that cannot leave. */
  async function failOne() {
    const user = await h.addVerified()
    const { mail_id } = await admin.sendReset({ id: user.id })
    const failed = () => user.events('password_reset_mail_failed')[0]
    const { details } = await eventually('it failed', failed)
    return { user, mail_id, details }
  }

  async function tested(settings: Record<string, string> = {}) {
    const report = await admin.testMail({ to: 'me@users.example', settings })
    answered.push(JSON.stringify(report))
    return { ...report, of: (wanted: string) => stepOf(report.checks, wanted) }
  }

  /** The mail leaves at its next attempt. */
  async function leavesLater(mail_id: string) {
    await moveTime(60_000)
    await outcomeOf(h, mail_id, 'sent')
  }

  /** What is broken is mended, and the check finds nothing wrong. */
  async function isFine(server?: { close(): Promise<unknown> }) {
    await server?.close()
    if (server) await goesTo(smtp)
    expect((await tested()).ok).to.equal(true)
  }

  const refreshTokensAsked = () => tokens.asked.map((form) => form.get('refresh_token'))

  it('uses a refresh token, and keeps the one that takes its place, sealed', async () => {
    const answer = rotating()
    next.push(answer, answer, answer)
    await put({ smtp_oauth_refresh_token: REFRESH })
    const { history: before = [] } = await h.store.settings.read()
    for (let hour = 0; hour < 3; hour += 1) {
      await sendOne()
      await h.later(HOUR_MS)
    }
    const used = [REFRESH, 'refresh-token-1-canary', 'refresh-token-2-canary']
    expect(refreshTokensAsked()).to.deep.equal(used)
    for (const form of tokens.asked) expect(form.get('grant_type')).to.equal('refresh_token')
    expect(smtp.shown).to.deep.equal([1, 2, 3].map((count) => `rotated-access-token-${count}`))
    const { values, version, history: after = [] } = await h.store.settings.read()
    expect(values['smtp_oauth_refresh_token']).to.match(/^eyJ/)
    expect(after).to.deep.equal([...before.slice(0, -1), { ...before.at(-1), version }])
  })

  it('stores a new refresh token later where that failed, also if the endpoint gives no other one then', async () => {
    const newest = 'refresh-token-newest-canary'
    const { settings } = h.store
    next.push(says({ access_token: 'access-token-x', expires_in: 60, refresh_token: newest }))
    await put({ smtp_oauth_refresh_token: REFRESH })
    const before = await settings.read()
    await instead(settings, 'write', isAway, async () => {
      await sendOne()
      expect(await settings.read()).to.deep.equal(before)
    })
    // An admin tries another refresh token meanwhile, which is none of the sender's.
    next.push(says({ access_token: 'access-token-y', expires_in: 60, refresh_token: 'y-canary' }))
    expect((await tested({ smtp_oauth_refresh_token: 'x-canary' })).ok).to.equal(true)
    await h.later(HOUR_MS)
    await sendOne()
    const restarted = await startHarness({ flows: { store: h.records, users: h.users } })
    answered.push(JSON.stringify(await adminOf(restarted).testMail({ to: 'me@users.example' })))
    await restarted.close()
    expect(refreshTokensAsked()).to.deep.equal([REFRESH, 'x-canary', newest, newest])
  })

  it('goes back to the stored refresh token where the one that could not be stored is refused', async () => {
    next.push(says({ access_token: 'access-token-x', expires_in: 60, refresh_token: 'x-canary' }))
    next.push(refuse('invalid_grant'))
    await put({ smtp_oauth_refresh_token: REFRESH })
    await instead(h.store.settings, 'write', isAway, async () => {
      await sendOne()
      await h.later(HOUR_MS)
      await sendOne()
    })
    expect(refreshTokensAsked()).to.deep.equal([REFRESH, 'x-canary', REFRESH])
  })

  it('keeps no refresh token in the place of one that an admin set meanwhile', async () => {
    const other = 'refresh-token-of-the-admin-canary'
    next.push(async (form, res) => {
      await put({ smtp_oauth_refresh_token: other })
      const rotated = 'refresh-token-rotated-canary'
      says({ access_token: 'access-token-x', expires_in: 60, refresh_token: rotated })(form, res)
    })
    await put({ smtp_oauth_refresh_token: REFRESH })
    await sendOne()
    await h.later(HOUR_MS)
    await sendOne()
    expect(refreshTokensAsked()).to.deep.equal([REFRESH, other])
  })

  it('tries the refresh token that another process stored, where its own was used up a moment ago', async () => {
    const own = 'refresh-token-of-this-process-canary'
    const newer = 'refresh-token-of-another-process-canary'
    next.push(async (form, res) => {
      await put({ smtp_oauth_refresh_token: newer })
      refuse('invalid_grant')(form, res)
    })
    await put({ smtp_oauth_refresh_token: own })
    const user = await sendOne()
    expect(refreshTokensAsked()).to.deep.equal([own, newer])
    expect(user.events('password_reset_mail_failed')).to.deep.equal([])
  })

  it('is tried once the refresh token is set, also after a mail that could not leave without one', async () => {
    await admin.unsetSettings(['smtp_oauth_client_secret'])
    const { mail_id } = await failOne()
    expect(tokens.asked).to.deep.equal([])
    await put({ smtp_oauth_refresh_token: REFRESH })
    await outcomeOf(h, mail_id, 'sent')
    expect(refreshTokensAsked()).to.deep.equal([REFRESH])
  })

  it('uses a refresh token once, and its access token on, while the name of the sender changes', async () => {
    const answer = rotating()
    let goOn = () => {}
    const isLetGo = new Promise<void>((resolve) => (goOn = resolve))
    next.push(
      async (...of) => {
        await isLetGo
        return answer(...of)
      },
      answer,
      answer,
    )
    await put({ smtp_oauth_refresh_token: REFRESH })
    const mailIds: string[] = []
    for (const name of ['One', 'Another']) {
      await put({ smtp_from_name: name, mail_reply_to: `${name}@idp.example` })
      const { id } = await h.addVerified()
      mailIds.push((await admin.sendReset({ id })).mail_id)
      await eventually('a token is asked for', () => tokens.asked[0])
      await eventually('the job is taken', () => isTakenToBeSent(id))
    }
    goOn()
    for (const mailId of mailIds) await outcomeOf(h, mailId, 'sent')
    expect(refreshTokensAsked()).to.deep.equal([REFRESH])
    expect(new Set(smtp.shown)).to.have.property('size', 1)
    await admin.unsetSettings(['smtp_from_name', 'mail_reply_to'])
  })

  it('with a secret that no key opens, mails wait and nobody is asked, until it is given again', async () => {
    const { users } = h
    const user = await h.addVerified()
    const secrets = [randomBytes(32)]
    const other = await startHarness({
      flows: { store: h.records, users, secrets },
      mayLogErrors: true,
    })
    const { checks } = await adminOf(other).testMail({ to: 'me@users.example' })
    expect(checks[0]).to.include({ step: 'configuration', status: 'failed' })
    expect(tokens.asked).to.deep.equal([])
    await adminOf(other).putSettings({ smtp_oauth_client_secret: SECRET })
    await h.flows.stop({ withinMs: 2_000 })
    const { mail_id } = await adminOf(other).sendReset({ id: user.id })
    await outcomeOf(other, mail_id, 'sent')
    expect(tokens.asked.at(-1)?.get('client_secret')).to.equal(SECRET)
    await other.close()
    await h.flows.start()
    await put({ smtp_oauth_client_secret: SECRET })
    await sendOne()
  })

  // What has nothing to do with the store is said once.
  if (technology !== 'memory') return

  it('asks for a token as the client itself, once for all connections, and shows it to the mail server', async () => {
    const scope = 'https://outlook.office365.com/.default'
    await put({ smtp_oauth_scope: scope })
    const users = await Promise.all(Array.from({ length: 10 }, () => h.addVerified()))
    await Promise.all(users.map(({ id }) => admin.sendReset({ id })))
    await eventually('all mails are there', () => smtp.mails.length === users.length)
    const client = { client_id: 'client-1', client_secret: SECRET }
    expect(tokens.asked.map((form) => Object.fromEntries(form))).to.deep.equal([
      { grant_type: 'client_credentials', ...client, scope },
    ])
    expect(new Set(smtp.shown)).to.deep.equal(new Set(tokens.issued))
  })

  it('renews the token before its end, and not earlier', async () => {
    await sendOne()
    await h.later(HOUR_MS - 120_000)
    await sendOne()
    expect(tokens.asked).to.have.length(1)
    await h.later(90_000)
    await sendOne()
    expect(tokens.asked).to.have.length(2)
    expect(smtp.shown.at(-1)).to.equal(tokens.issued[1])
  })

  for (const challenge of [true, false]) {
    it(`renews a token once that the mail server does not take any more (${challenge ? 'after a challenge' : 'at once'})`, async () => {
      challenges = challenge
      await sendOne()
      await h.later(60_000)
      const [revoked] = tokens.issued
      isTaken = (token) => token !== revoked
      await sendOne()
      expect(tokens.asked).to.have.length(2)
      expect(smtp.shown).to.deep.equal([revoked, revoked, tokens.issued[1]])
      const failure = h.eventsOf('password_reset_mail_failed').at(-1)
      expect(failure?.details?.['step']).to.not.equal('AUTH XOAUTH2')
    })
  }

  it('does not ask again and again for a token that the mail server never takes, and the check tells that from one that does not come', async () => {
    isTaken = () => false
    const { mail_id, details } = await failOne()
    expect(tokens.asked).to.have.length(1)
    expect(details).to.deep.equal({ step: 'AUTH XOAUTH2', code: '535' })
    for (const challenge of [true, false]) {
      challenges = challenge
      const { of } = await tested()
      expect(of('token')).to.include({ status: 'ok' })
      expect(of('auth').status).to.equal('failed')
      expect(of('auth').message).to.include('refuses the access token with AUTH XOAUTH2 (535)')
      expect(of('auth').reply).to.match(/^535/)
    }
    isTaken = () => true
    await leavesLater(mail_id)
  })

  it('forgets both secrets with their endpoint, and asks no other one with them', async () => {
    await put({ smtp_oauth_refresh_token: REFRESH })
    const other = await startTokenServer()
    const { answer } = await admin.putSettings({ smtp_oauth_token_endpoint: other.endpoint })
    const told = (name: string) =>
      `smtp_oauth_token_endpoint changed without ${name}: the old value is deleted`
    const secrets = ['smtp_oauth_client_secret', 'smtp_oauth_refresh_token']
    expect(answer.warnings?.slice(0, 2)).to.deep.equal(secrets.map(told))
    expect((await admin.getSettings()).answer).to.not.have.any.keys(secrets)
    const { of } = await tested()
    expect(of('configuration').message).to.include('smtp_oauth_client_secret missing')
    expect(other.asked).to.deep.equal([])
    await put({ smtp_oauth_client_secret: SECRET })
    await sendOne()
    expect(other.asked).to.have.length(1)
    await other.close()
  })

  it('shows no token to another mail server, nor that of one mailbox to another (SET-08)', async () => {
    await sendOne()
    const other = await startOAuthSmtp(() => true)
    const { answer } = await admin.putSettings({ smtp_port: String(other.port) })
    expect(answer.warnings?.join()).to.include(
      'smtp_port changed without smtp_oauth_client_secret: the old value is deleted',
    )
    const { mail_id } = await failOne()
    await tested({ smtp_port: String(smtp.port), smtp_username: MAILBOX })
    expect(other.shown).to.deep.equal([])
    expect(tokens.asked).to.have.length(1)

    await put({ smtp_oauth_client_secret: SECRET })
    await leavesLater(mail_id)
    expect(other.shown).to.have.length(1)
    expect(tokens.asked).to.have.length(2)
    await put({ smtp_username: 'another@users.example' })
    await sendOne()
    expect(tokens.asked).to.have.length(3)
    await other.close()
  })

  it('tries no other endpoint with a stored secret, and names the secret that is missing then', async () => {
    await put({ smtp_password: 'password-canary' })
    const other = await startTokenServer()
    const tried = async (settings: Record<string, string>) =>
      (await tested(settings)).of('configuration')
    expect(await tried({ smtp_oauth_token_endpoint: other.endpoint })).to.include({
      status: 'warning',
      message:
        'The stored smtp_oauth_client_secret belongs to another smtp_host or smtp_port or smtp_oauth_token_endpoint and stays there: no login was tried.',
      advice: 'Give it again: --set smtp_oauth_client_secret asks for it.',
    })
    const moved = { smtp_host: 'localhost', smtp_oauth_client_secret: '' }
    expect((await tried(moved)).message).to.include('smtp_oauth_client_secret missing')
    expect(other.asked).to.deep.equal([])
    expect((await tested()).ok).to.equal(true)
    await other.close()
    await admin.unsetSettings(['smtp_password'])
  })

  const wherever = /smtp_oauth_token_endpoint/
  const tooMuch = `{"a":"${'x'.repeat(100_000)}"}`
  const away: TokenAnswer = (_form, res) => res.writeHead(302, { location: '/other' }).end()
  const odd: [what: string, answer: TokenAnswer, code: RegExp, advice: RegExp][] = [
    ['refuses the client', refuse('invalid_client', 401), /401 invalid_client/, /may have expired/],
    ['refuses the client so', refuse('unauthorized_client'), /400 unauthorized/, /oauth_client_id/],
    ['refuses the refresh token', refuse('invalid_grant'), /400 invalid_grant/, /new smtp_oauth_r/],
    ['repeats a secret', refuse(SECRET.replaceAll('-', '')), /^(?!.*clientsecret).*400/, wherever],
    ['says what no table knows', refuse('odd_reason'), /400 odd_reason/, /Look up the error code/],
    ['refuses the scope', refuse('invalid_scope'), /400 invalid_scope/, /outlook\.office365\.com/],
    ['fails', says('busy', 503), /503/, wherever],
    ['leads elsewhere', away, /302/, wherever],
    ['answers HTML', says('<h1>Sign in</h1>'), /not JSON/, wherever],
    ['answers too much', says(tooMuch), /not JSON/, wherever],
    ['answers null', says('null'), /not JSON/, wherever],
    ['answers no token', says('{}'), /no token in it/, wherever],
    ['answers two lines', says({ access_token: 'a\r\nRSET' }), /no token in it/, wherever],
    ['answers another', says({ access_token: 'x', token_type: 'mac' }), /another kind/, wherever],
    ['hangs up', (_form, res) => res.destroy(), /ECONNRESET|UND_ERR_SOCKET/, wherever],
  ]
  for (const [what, answer, code, advice] of odd) {
    it(`tells an endpoint that ${what}, in the step token, mails wait, and support is told`, async () => {
      next.push(answer, answer)
      const { checks, of } = await tested()
      const steps = ['configuration', 'dns', 'connect', 'tls', 'token']
      expect(checks.map(({ step }) => step).slice(0, 5)).to.deep.equal(steps)
      expect(of('token').status).to.equal('failed')
      expect(of('token').message).to.match(code)
      expect(of('token').advice).to.match(advice)
      expect(of('auth').status).to.equal('skipped')

      const { user, mail_id, details } = await failOne()
      expect(details?.['step']).to.equal('token')
      expect(details?.['code']).to.match(code)
      const { summary } = await admin.userStatus({ id: user.id })
      expect(summary).to.match(/ while asking for an access token\.$/)
      await leavesLater(mail_id)
    })
  }

  it('gives an endpoint that hangs 10 seconds, and then says so, and tells one that nobody listens at', async () => {
    next.push(() => {})
    const checking = tested()
    await eventually('it is asked', () => tokens.asked.length === 1)
    await moveTime(10_000)
    expect((await checking).of('token').message).to.include('(out of time)')
    await isFine()
    await tokens.close()
    expect((await tested()).of('token').message).to.include('(ECONNREFUSED)')
  })

  const refusals: [answer: string, message: RegExp, advice: RegExp][] = [
    ['534 5.7.9 By browser first', /the access token .* \(534\)/, /smtp_username \(the mail/],
    ['550 5.7.0 No', /the access token .* \(550\)/, /smtp_oauth_scope/],
    ['454 4.7.0 Not now', /the access token .* \(454\)/, /^Try again in a few minutes\.$/],
    ['504 5.5.4 Unknown', /the login with AUTH XOAUTH2 \(504\)/, /does not support XOAUTH2/],
    ['538 5.7.11 Encrypt', /wants TLS before the login \(538\)/, /Set smtp_tls/],
  ]
  for (const [answer, message, advice] of refusals) {
    it(`advises nothing about a password where the mail server answers ${answer}`, async () => {
      const server = await startFaultySmtp({ offersAuth: true, fault: answers('AUTH', answer) })
      await goesTo(server)
      const { of } = await tested()
      expect(of('auth').message).to.match(message)
      expect(of('auth').advice)
        .to.match(advice)
        .and.to.not.match(/smtp_password|CRAM/)
      await isFine(server)
    })
  }

  it('advises nothing about a password where the mail server offers no login, or wants one that is not complete', async () => {
    const server = await startFaultySmtp({ fault: answers('MAIL', '530 5.7.0 Log in') })
    await goesTo(server)
    const { message, advice } = (await tested()).of('auth')
    expect(message).to.equal('A login is set, but the server offers no login here.')
    expect(advice).to.not.include('smtp_password')
    await put({ smtp_oauth_client_secret: '' })
    const incomplete = await tested()
    expect(incomplete.of('auth').message).to.equal('No login is set, and none was needed so far.')
    expect(incomplete.of('from').advice).to.include('or what smtp_auth xoauth2 needs')
    await isFine(server)
  })
})
