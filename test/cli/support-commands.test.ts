import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { suiteCli } from '../support/cli-server.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { jsonOf, startCli, type CliRun } from '../support/cli-in-process.ts'
import { eventually } from '../support/eventually.ts'
import { opensForm } from '../support/example-requests.ts'
import { freePort } from '../support/free-port.ts'
import { answerJson, openFrontDoor, type Doorkeeper } from '../support/front-door.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { sha256, tokenOf } from '../support/observe.ts'

const NASTY = 'mal\u001B[2Jice\u202E'

describe('account-flows for those who help others', () => {
  const answers = new Map<string, MailAnswer>()
  const file = suiteFolder()
  const cli = suiteCli({
    mail: { answer: (to) => answers.get(to) ?? 'take' },
    settings: { mails_per_account_per_hour: '0', mails_per_minute: '0' },
    mayLogErrors: true,
  })

  before(async () => {
    for (const username of ['alice', 'refused', 'deferred']) {
      await cli.h.addUser({ username, email: `${username}@example.com` })
    }
    await cli.h.addUser({ username: 'bob', email: 'bob@example.com', emailVerified: false })
    await cli.h.addUser({ username: 'carol', email: undefined })
    await cli.h.addUser({ username: 'shared@example.com', email: 'other@example.com' })
    await cli.h.addUser({ username: 'dave', email: 'shared@example.com' })
    await cli.h.addUser({ username: NASTY })
  })

  beforeEach(misbehave)

  function misbehave() {
    answers.set('refused@example.com', 'refuse')
    answers.set('deferred@example.com', 'defer')
  }

  /** Each preview is of the moment it is made. */
  const timeless = (text: string) => text.replace(/\w+ \d+, \d+ at [\d:]+\s[AP]M/g, '').trimEnd()

  /** With exit code and words: the run; with `--json` what it printed. */
  async function both(
    args: string[],
    exitCode = 0,
  ): Promise<{ text: CliRun; json: ReturnType<typeof jsonOf> }> {
    const text = await cli.run(args)
    expect(text.exitCode, text.stdout + text.stderr).to.equal(exitCode)
    const asJson = await cli.run([...args, '--json'])
    expect(asJson.exitCode, asJson.stderr).to.equal(exitCode)
    return { text, json: jsonOf(asJson) }
  }

  async function sentTo(address: string, username: string) {
    await cli.done(['user', 'send-reset', username])
    return cli.h.mail.mailTo(address)
  }

  async function idOf(username: string): Promise<string> {
    return (await cli.json(['user', 'status', username])).id
  }

  describe('mail', () => {
    it('test sends a mail, and tells each step', async () => {
      const { text, json } = await both(['mail', 'test', '--to', 'me@example.com'])
      await cli.h.mail.mailTo('me@example.com', 2)
      expect(text.stdout).to.match(/^ok +rcpt: /m)
      expect(json).to.include({ ok: true })
    })

    it('test tells what the mail server said, and what to do: exit 1', async () => {
      const { text, json } = await both(['mail', 'test', '--to', 'refused@example.com'], 1)
      expect(text.stdout).to.match(/^FAILED +rcpt: .*\n +Answer: 5\d\d/m)
      expect(json).to.include({ ok: false })
      expect((await cli.run(['mail', 'test', '--to', 'me@example.com'])).exitCode).to.equal(0)
    })

    for (const template of ['password-reset', 'email-verification', 'password-changed']) {
      it(`preview shows the mail ${template}`, async () => {
        const { text, json } = await both(['mail', 'preview', '--template', template])
        expect(timeless(text.stdout)).to.equal(timeless(`Subject: ${json.subject}\n\n${json.text}`))
        const html = await cli.run(['mail', 'preview', '--template', template, '--html'])
        expect(timeless(html.stdout)).to.equal(timeless(json.html))
        const plain = await cli.run(['mail', 'preview', '--template', template, '--text'])
        expect(timeless(plain.stdout)).to.equal(timeless(json.text))
      })
    }

    it('preview --open starts the browser with a file that only its owner reads', async () => {
      const args = ['mail', 'preview', '--template', 'password-reset', '--open']
      const { stdout } = await cli.done(args, { env: { BROWSER: '/bin/cat' } })
      const path = stdout.trim()
      expect(await readFile(path, 'utf8')).to.include('<html')
      expect((await stat(path)).mode & 0o777).to.equal(0o600)
      expect((await stat(dirname(path))).mode & 0o777).to.equal(0o700)
      await rm(dirname(path), { recursive: true })
    })

    it('preview --open gives the browser nothing of the connection', async () => {
      const browser = file('browser.sh')
      await writeFile(browser, `#!/bin/sh\nenv >${file('seen')}\n`, { mode: 0o700 })
      const args = ['mail', 'preview', '--template', 'password-reset', '--open']
      const { PATH = '' } = process.env
      const env = { BROWSER: browser, KEPT: 'kept', PATH }
      const { stdout } = await cli.done(args, { env })
      await rm(dirname(stdout.trim()), { recursive: true })
      expect(await readFile(file('seen'), 'utf8'))
        .to.match(/^KEPT=kept$/m)
        .and.not.include('ACCOUNT_FLOWS_')
        .and.not.include(ADMIN_TOKEN)
    })

    it('preview --open says where the file is where nothing opens it: exit 1', async () => {
      const args = ['mail', 'preview', '--template', 'password-reset', '--open']
      const { exitCode, stdout, stderr } = await cli.run(args, { env: { PATH: '' } })
      expect(exitCode).to.equal(1)
      await rm(stdout.trim())
      expect(stderr).to.include('Open the file yourself')
    })
  })

  describe('doctor', () => {
    it('checks the way to the server, and then from the server', async () => {
      const { text, json } = await both(['doctor', '--to', 'me@example.com'])
      expect(text.stdout).to.match(/^ok +server_connect: .*$[^]*^ok +token: .*$[^]*^ok +rcpt: /m)
      expect(text.stdout).to.match(/^advice +recommended: .*\n +See the changes/m)
      expect(json.ok).to.equal(true)
      for (const { step, status, message } of json.checks) {
        expect(step).to.be.a('string')
        expect(message).to.be.a('string')
        const isAdvised = step === 'recommended'
        expect(status).to.be.oneOf(isAdvised ? ['advice'] : ['ok', 'warning', 'skipped'])
      }
    })

    it('exit 1 where a check of the server failed', async () => {
      await cli.h.put({ smtp_port: String(await freePort()) })
      try {
        const { text, json } = await both(['doctor'], 1)
        expect(text.stdout).to.match(/^FAILED +connect: /m)
        expect(json.ok).to.equal(false)
      } finally {
        await cli.h.put({ smtp_port: String(cli.h.mail.port) })
      }
    })

    for (const [what, urlOf, step] of [
      ['the name has no address', () => 'https://idp.invalid', 'server_dns'],
      ['nothing listens', () => 'http://127.0.0.1:1', 'server_connect'],
      ['TLS is not spoken', (url: string) => url.replace('http:', 'https:'), 'server_tls'],
      ['no admin API is', (url: string) => `${url}/elsewhere`, 'admin_api'],
    ] as const) {
      it(`exit 3 where ${what}, and says so`, async () => {
        const { text, json } = await both(['doctor', '--url', urlOf(cli.h.baseUrl)], 3)
        expect(text.stdout).to.match(new RegExp(`^FAILED +${step}: `, 'm'))
        expect(json.checks.at(-1)).to.include({ step, status: 'failed' })
      })
    }

    it('exit 4 where the token is wrong, and says so', async () => {
      const wrong = await cli.run(['doctor'], { env: { ACCOUNT_FLOWS_TOKEN: 'wrong' } })
      expect(wrong.exitCode).to.equal(4)
      expect(wrong.stdout).to.match(/^FAILED +token: /m)
    })
  })

  describe('user', () => {
    it('status tells what is known, by username, address or id', async () => {
      const { text, json } = await both(['user', 'status', 'alice'])
      expect(text.stdout)
        .to.match(/^e-mail +alice@example.com$/m)
        .and.match(/^verified +yes$/m)
      for (const args of [['alice@example.com'], [json.id], ['--id', json.id]]) {
        expect((await both(['user', 'status', ...args])).json).to.include({ username: 'alice' })
      }
    })

    it('exit 1 where nobody is meant, or several; these are listed', async () => {
      const nobody = await cli.run(['user', 'status', 'nobody'])
      expect(nobody).to.include({ exitCode: 1, stdout: '' })
      const args = ['user', 'status', 'shared@example.com']
      const several = await cli.run(args)
      expect(several.exitCode).to.equal(1)
      expect(several.stderr)
        .to.match(/^id +username$/m)
        .and.match(/ dave$/m)
      const { candidates } = JSON.parse((await cli.run([...args, '--json'])).stderr).error
      expect(candidates).to.have.length(2)
      expect((await cli.run(['user', 'status', '--id', candidates[0].id])).exitCode).to.equal(0)
    })

    it('what the server says does not steer the terminal, and JSON says it all', async () => {
      const { text, json } = await both(['user', 'status', NASTY])
      expect(text.stdout)
        .to.match(/^username +mal\[2Jice$/m)
        .and.not.match(/[^\n\P{C}]/u)
      expect(json.username).to.equal(NASTY)
    })

    it('send-reset mails a link that works, and waits until it is sent', async () => {
      const run = await cli.done(['user', 'send-reset', 'alice'])
      expect(run.stdout).to.match(/^Sent at /)
      const { link } = await cli.h.mail.mailTo('alice@example.com')
      expect(await opensForm(link)).to.equal(true)
      expect(await cli.json(['user', 'send-reset', 'alice'])).to.include({ state: 'sent' })
    })

    it('invite mails a link to the form for a first password, and says why to nobody else', async () => {
      const imported = { email: 'imported@example.com', emailVerified: false }
      await cli.h.addUser({ username: 'imported', passwordHash: undefined, ...imported })
      const run = await cli.done(['user', 'invite', 'imported@example.com'])
      expect(run.stdout).to.match(/^Sent at /)
      const { link } = await cli.h.mail.mailTo('imported@example.com')
      expect(await opensForm(link)).to.equal(true)
      expect(await cli.json(['link', 'explain', link])).to.include({ kind: 'invitation' })
      const refused = await cli.run(['user', 'invite', 'alice'])
      expect(refused).to.include({ exitCode: 1, stdout: '' })
      expect(refused.stderr).to.include('the account has a password').and.include('user send-reset')
    })

    it('send-reset tells the mail before it waits, unless with --json', async () => {
      const run = await cli.run(['user', 'send-reset', 'dave'])
      expect(run).to.include({ exitCode: 0 })
      expect(run.stderr).to.match(/^The mail was asked for: \S+\n$/)
      const asJson = await cli.run(['user', 'send-reset', 'dave', '--json'])
      expect(asJson).to.include({ exitCode: 0, stderr: '' })
    })

    it('send-reset waits on while the server is away, or cannot work', async () => {
      const troubles: Doorkeeper[] = [
        (_, response) => answerJson(response, 503, { title: 'Not now', code: 'unavailable' }),
        (request) => Boolean(request.destroy()),
        (_, response) => answerJson(response, 502, 'a proxy'),
      ]
      const door = await openFrontDoor(cli.h.baseUrl, (request, response) =>
        request.method === 'GET' ? (troubles.shift()?.(request, response) ?? false) : false,
      )
      const env = { ACCOUNT_FLOWS_URL: door.url }
      const run = await cli.done(['user', 'send-reset', 'alice'], { env })
      expect(run.stdout).to.match(/^Sent at /)
      expect(troubles).to.deep.equal([])
      await door.close()
    })

    it('send-reset says that the server is away at the end of the wait: exit 3', async () => {
      const door = await openFrontDoor(cli.h.baseUrl, (request) =>
        request.method === 'GET' ? Boolean(request.destroy()) : false,
      )
      const env = { ACCOUNT_FLOWS_URL: door.url }
      const run = await cli.run(['user', 'send-reset', 'alice', '--wait', '1'], { env })
      expect(run).to.include({ exitCode: 3, stdout: '' })
      expect(run.stderr).to.match(/^The mail was asked for: \S+\n.* cannot be reached/)
      await door.close()
    })

    it('send-verification mails a link', async () => {
      await cli.done(['user', 'send-verification', 'bob'])
      expect((await cli.h.mail.mailTo('bob@example.com')).kind).to.equal('email_verification')
    })

    it('--wait 0 does not wait', async () => {
      const { json } = await both(['user', 'send-reset', 'dave', '--wait', '0'])
      expect(json).to.have.keys('mail_id')
      await cli.h.mail.mailTo('shared@example.com')
    })

    for (const [args, reason, words] of [
      [['send-verification', 'alice'], 'already_verified', 'no link is needed'],
      [['send-reset', 'carol'], 'no_address', 'no e-mail address'],
      [['send-reset', 'refused'], 'ERR_MAIL', 'mail server'],
    ] as const) {
      it(`${args.join(' ')}: exit 1, and says why`, async () => {
        const { text, json } = await both(['user', ...args], 1)
        expect(text.stdout)
          .to.match(/^Not sent/)
          .and.include(words)
        expect(json.reason).to.match(new RegExp(`^${reason}`))
        expect(json.state).to.be.oneOf(['ended', 'dead'])
      })
    }

    it('says that a mail still waits: exit 1', async () => {
      const { text, json } = await both(['user', 'send-reset', 'deferred', '--wait', '1'], 1)
      expect(text.stdout).to.match(/^Not sent yet: it still waits/)
      expect(json).to.include({ state: 'waiting' })
    })

    it('end-sessions --yes ends everything', async () => {
      const { text, json } = await both(['user', 'end-sessions', 'alice', '--yes'])
      expect(text.stdout).to.match(/^All sessions, grants and tokens are ended\./)
      expect(json).to.include({ oauth: 0, idp: 0 })
      const status = await cli.json(['user', 'status', 'alice'])
      expect(status.oauth_sessions_ended_at).to.be.a('string')
    })

    it('forget --yes erases what is recorded of an id, and tells how much', async () => {
      const { id } = await cli.h.addUser({ username: 'forgotten' })
      await cli.done(['user', 'send-reset', 'forgotten'])
      const { stdout } = await cli.done(['user', 'forget', id, '--yes'])
      expect(stdout)
        .to.match(/^Reset links erased: 1$/m)
        .and.match(/^Events erased: [1-9]/m)
      const again = await cli.json(['user', 'forget', id, '--yes'])
      expect(again).to.include({ reset_links: 0, events: 0, under_way: 0 })
    })

    it('forget says what is under way, and that it is left: exit 1', async () => {
      const { id, email } = await cli.h.addUser({ username: 'under-way' })
      const { link } = await sentTo(String(email), 'under-way')
      const tokenHash = sha256(tokenOf(link))
      const now = new Date()
      const claim = { newHash: 'hash', by: { address: undefined, userAgent: undefined }, at: now }
      const leaseUntil = new Date(now.getTime() + 60_000)
      await cli.h.store.resetTokens.claim(tokenHash, { ...claim, leaseUntil })
      const { exitCode, stdout } = await cli.run(['user', 'forget', id, '--yes'])
      expect(exitCode).to.equal(1)
      expect(stdout).to.match(/^Not erased, because still in progress: 1\./m)
      expect(stdout).to.match(/^Reset links erased: 0$/m)
    })
  })

  describe('link explain', () => {
    it('tells of a link on stdin, and does not use it up', async () => {
      await cli.run(['user', 'send-reset', 'alice'])
      const count = cli.h.mail.mails.filter(({ to }) => to.includes('alice@example.com')).length
      const { link } = await cli.h.mail.mailTo('alice@example.com', count)
      const live = await cli.run(['link', 'explain', '-'], { stdin: `${link}\n` })
      expect(live).to.include({ exitCode: 0, stderr: '' })
      expect(live.stdout).to.match(/^ +state +live$/m)
      const json = await cli.run(['link', 'explain', '-', '--json'], { stdin: link })
      expect(jsonOf(json)).to.include({ state: 'live', kind: 'password_reset' })

      await cli.h.reset(link, 'another password of the tests')
      const used = await cli.run(['link', 'explain', link])
      expect(used.exitCode).to.equal(0)
      expect(used.stdout).to.match(/^ +state +used$/m)
      expect(used.stderr).to.include('your shell history').and.not.include(link)
    })

    it('exit 1 for what is no link', async () => {
      const run = await cli.run(['link', 'explain', '-'], { stdin: 'https://example.com/' })
      expect(run.exitCode).to.equal(1)
      expect(run.stdout).to.match(/^ +state +not_a_link$/m)
    })
  })

  describe('outbox', () => {
    const lists = async (
      state: string,
    ): Promise<{ id: string; account_id: string; next_attempt_at?: string; is_held: boolean }[]> =>
      (await cli.json(['outbox', 'list', '--state', state])).mails

    before(async () => {
      misbehave()
      await cli.run(['user', 'send-reset', 'refused'])
      await cli.run(['user', 'send-reset', 'deferred', '--wait', '1'])
    })

    it('lists mails that wait, and dead letters; of one account', async () => {
      const account = await idOf('refused')
      const { text, json } = await both(['outbox', 'list', '--account', account])
      expect(json.mails).not.to.deep.equal([])
      for (const mail of json.mails) {
        expect(mail).to.include({ account_id: account, state: 'dead' })
        expect(text.stdout).to.include(mail.id)
      }
      expect(await lists('waiting')).not.to.deep.equal([])
      const one = await both(['outbox', 'list', '--limit', '1'])
      expect(one.json.mails).to.have.length(1)
    })

    it('retry sends a waiting mail now [full]', async () => {
      // Not while a worker is about to try again by itself.
      const waiting = await eventually('the pauses have grown', async () => {
        const [mail] = await lists('waiting')
        const pause = Date.parse(mail?.next_attempt_at ?? '') - Date.now()
        return pause > 3_000 && mail?.is_held === false && mail.id
      })
      answers.set('deferred@example.com', 'take')
      const run = await cli.done(['outbox', 'retry', waiting])
      expect(run.stdout).to.match(/^1 mail /)
      await cli.h.mail.mailTo('deferred@example.com')
    })

    it('retry --all-dead asks again for each dead letter', async () => {
      answers.set('refused@example.com', 'take')
      const run = await cli.done(['outbox', 'retry', '--all-dead', '--yes', '--json'])
      expect(jsonOf(run).changed).to.be.above(0)
      await cli.h.mail.mailTo('refused@example.com')
    })

    it('retry --all-dead goes on while there are more, and tells how many they were', async () => {
      await cli.run(['outbox', 'purge', '--all-dead', '--yes'])
      await cli.run(['user', 'send-reset', 'refused'])
      const dead = await lists('dead')
      expect(dead).not.to.deep.equal([])
      const firstAnswers = [
        { changed: 200, more_before: '2999-01-02T00:00:00.000Z' },
        { changed: 40, more_before: '2999-01-01T00:00:00.000Z' },
      ]
      const door = await openFrontDoor(cli.h.baseUrl, (_, response) => {
        const answer = firstAnswers.shift()
        return answer === undefined ? false : answerJson(response, 200, answer)
      })
      const env = { ACCOUNT_FLOWS_URL: door.url }
      const run = await cli.done(['outbox', 'retry', '--all-dead', '--yes'], { env })
      expect(run.stdout).to.equal(`${240 + dead.length} mails to be sent now.\n`)
      expect(door.requests).to.deep.equal(Array(3).fill('POST /admin/api/outbox/retry'))
      await door.close()
    })

    it('retry --all-dead ends where nothing more can be done', async () => {
      const door = await openFrontDoor(cli.h.baseUrl, (_, response) =>
        answerJson(response, 200, { changed: 0, more_before: '2999-01-01T00:00:00.000Z' }),
      )
      const env = { ACCOUNT_FLOWS_URL: door.url }
      const run = await cli.run(['outbox', 'retry', '--all-dead', '--yes'], { env })
      expect(run).to.include({ exitCode: 0, stdout: '0 mails to be sent now.\n' })
      expect(door.requests).to.have.length(2)
      await door.close()
    })

    it('purge removes one, or all dead letters', async () => {
      await cli.run(['user', 'send-reset', 'refused'])
      await cli.run(['user', 'send-reset', 'refused'])
      const [dead] = await lists('dead')
      await cli.done(['outbox', 'purge', dead?.id ?? '', '--yes'])
      expect((await lists('dead')).map(({ id }) => id)).not.to.include(dead?.id)
      await cli.done(['outbox', 'purge', '--all-dead', '--yes'])
      expect(await lists('dead')).to.deep.equal([])
    })

    it('says how to name a mail whose id begins with a hyphen', async () => {
      const { exitCode, stderr } = await cli.run(['outbox', 'retry', '-none'])
      expect(exitCode).to.equal(2)
      expect(stderr).to.include('"--" before a value')
    })

    it('exit 1 where there is no such mail', async () => {
      for (const args of [
        ['retry', 'none'],
        ['purge', 'none', '--yes'],
        ['retry', '--', '-none'],
        ['purge', '--yes', '--', '-none'],
      ]) {
        const run = await cli.run(['outbox', ...args])
        expect(run).to.include({ exitCode: 1, stdout: '' })
      }
    })
  })

  describe('audit tail', () => {
    it('shows the last events, newest last, of one account or type', async () => {
      const account = await idOf('alice')
      await cli.run(['user', 'end-sessions', 'alice', '--yes'])
      const { text, json } = await both(['audit', 'tail', '-n', '3', '--account', account])
      expect(json.events).to.have.length(3)
      expect(text.stdout.trimEnd().split('\n')).to.have.length(3)
      const times = json.events.map((event: { recorded_at: string }) => event.recorded_at)
      expect(times).to.deep.equal(times.toSorted())
      const args = ['audit', 'tail', '--type', 'settings_changed', 'password_reset_mail_sent']
      for (const { type } of (await both(args)).json.events) {
        expect(type).to.be.oneOf(['settings_changed', 'password_reset_mail_sent'])
      }
    })

    it('--follow shows each new event once, one JSON value a line, until Ctrl-C: exit 0 [full]', async () => {
      const args = ['audit', 'tail', '-f', '-n', '1', '--type', 'settings_changed', '--json']
      const tail = startCli(args, cli.env)
      const lines = () => tail.stdout().split('\n').filter(Boolean)
      await eventually('the first event', () => lines().length > 0)
      for (const [index, port] of ['2001', '2002'].entries()) {
        await cli.h.put({ mails_per_minute: port })
        await eventually('the new event', () => lines().length === index + 2)
      }
      await cli.h.put({ mails_per_minute: '600' })
      await eventually('the last event', () => lines().length === 4)
      tail.signal('SIGINT')
      expect(await tail.exited).to.equal(0)
      const ids = lines().map((line) => JSON.parse(line).id)
      expect(new Set(ids).size).to.equal(4)
    })

    it('--follow goes on when the server was away, says so once, and ends while it waits for an answer [full]', async () => {
      let isAway = false
      let isSilent = false
      let refused = 0
      const door = await openFrontDoor(cli.h.baseUrl, (request) => {
        if (isAway) refused += 1
        return isAway ? Boolean(request.destroy()) : isSilent
      })
      const args = ['audit', 'tail', '-f', '-n', '1', '--type', 'settings_changed', '--json']
      const tail = startCli(args, { ...cli.env, ACCOUNT_FLOWS_URL: door.url })
      const lines = () => tail.stdout().split('\n').filter(Boolean)
      await eventually('the first event', () => lines().length === 1)
      isAway = true
      await eventually('some vain requests', () => refused >= 2)
      await cli.h.put({ mails_per_minute: '2003' })
      isAway = false
      await eventually('the event meanwhile', () => lines().length === 2)
      expect(tail.stderr()).to.equal('The server cannot be reached; still trying.\n')
      isSilent = true
      const before = door.requests.length
      await eventually('a request without an answer', () => door.requests.length > before)
      tail.signal('SIGINT')
      expect(await tail.exited).to.equal(0)
      expect(lines()).to.have.length(2)
      await cli.h.put({ mails_per_minute: '600' })
      await door.close()
    })
  })

  it('keys rotate tells what was encrypted again', async () => {
    const { text, json } = await both(['keys', 'rotate'])
    expect(text.stdout).to.include('The ring has 1 key.')
    expect(json).to.include({ keys: 1 })
    expect(json.unreadable).to.deep.equal([])
  })
})
