import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { outcomeOf } from '../support/admin.ts'
import { expectSaid, startCli, suiteCli } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { opensForm } from '../support/example-server.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { startFaultySmtp } from '../support/mail-server.ts'
import { sha256 } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'
import { suiteFolder } from '../support/folders.ts'

const NASTY = 'mal\u001B[2Jice\u202E'
/** Where nothing listens. */
const DEAF_PORT = '1'

describe('account-flows for those who help others', () => {
  const file = suiteFolder()
  const cli = suiteCli({
    settings: { mails_per_account_per_hour: '0', mails_per_minute: '0' },
    mayLogErrors: true,
  })

  before(async () => {
    for (const username of ['alice', 'refused', 'deferred'])
      await cli.h.addUser({ username, email: `${username}@example.com` })
    await cli.h.addUser({ username: 'bob', email: 'bob@example.com', emailVerified: false })
    await cli.h.addUser({ username: 'carol', email: undefined })
    await cli.h.addUser({ username: 'shared@example.com', email: 'other@example.com' })
    await cli.h.addUser({ username: 'dave', email: 'shared@example.com' })
    await cli.h.addUser({ username: NASTY })
  })

  beforeEach(misbehave)

  function misbehave() {
    cli.h.mail.answers.set('refused@example.com', 'refuse')
    cli.h.mail.answers.set('deferred@example.com', 'defer')
  }

  /** What it says in words, and as JSON. */
  async function both(args: readonly string[], exitCode = 0) {
    const { stdout } = await cli.ended(args, exitCode)
    return { text: stdout, json: await cli.json(args, exitCode) }
  }

  const sendReset = (username: string, ...more: string[]) =>
    cli.run(['user', 'send-reset', username, ...more])
  const idOf = async (username: string): Promise<string> =>
    (await cli.json(['user', 'status', username])).id

  /** Asked for, and in this state now; nobody had waited for it. */
  async function resetMailOf(username: string, state: 'sent' | 'dead'): Promise<string> {
    const asked = await cli.json(['user', 'send-reset', username, '--wait', '0'])
    expect(asked).to.have.keys('mail_id')
    await outcomeOf(cli.h, asked.mail_id, state)
    return asked.mail_id
  }

  const verified = { state: 'ended', reason: 'already_verified' }
  const noAddress = { state: 'dead', reason: 'no_address' }
  const refusal = { state: 'dead', reason: 'ERR_MAIL_REFUSED' }
  const inOrder = /^ok +server_connect: .*$[^]*^ok +token: .*$[^]*^ok +rcpt: .*$[^]*^Ready/m
  const folded = /^skipped +(\w+, )+\w+\n\nReady/m
  const calls: [call: string, exitCode: number, json: object, ...said: (string | RegExp)[]][] = [
    ['mail test --to me@example.com', 0, { ok: true }, /^ok +rcpt: /m],
    ['mail test --to refused@example.com', 1, { ok: false }, /^FAILED +rcpt: .*\n +Answer: 5\d\d/m],
    ['doctor --to me@example.com', 0, { ok: true }, inOrder],
    ['doctor', 0, {}, /^advice +recommended: \w+: .*\n( +\w+: .* is recommended, .*\n){4} +See/m],
    ['doctor', 0, {}, folded, /^Ready(, with \d warnings?)?\.$/m, /^(?!.*skipped.*skipped)/s],
    ['user verify bob --yes', 0, { changed: false }, ''],
    ['user unverify bob --yes', 0, { changed: false }, ''],
    // What the server says does not steer the terminal.
    [`user status ${NASTY}`, 0, { username: NASTY }, /^username +mal\[2Jice$/m, /^(\n|\P{C})*$/u],
    ['user send-verification alice', 1, verified, /^Not sent/, 'no link is needed'],
    ['user send-reset carol', 1, noAddress, /^Not sent/, 'no e-mail address'],
    ['user send-reset refused', 1, refusal, /^Not sent/, 'mail server'],
    ['user send-reset deferred --wait 1', 1, { state: 'waiting' }, /^Not sent yet: it still waits/],
    ['user end-sessions alice --yes', 0, { oauth: 0, idp: 0 }, /^All sessions, .* are ended\./],
    ['user status alice', 0, {}, /^grants, codes and tokens ended +\d{4}-/m],
    ['keys rotate', 0, { keys: 1, unreadable: [] }, 'The ring has 1 key.'],
  ]
  for (const [call, exitCode, expected, ...said] of calls) {
    it(`${JSON.stringify(call)} says what was done, in words and as JSON: exit ${exitCode}`, async () => {
      const { text, json } = await both(call.split(' '), exitCode)
      expectSaid(text, ...said)
      expect(json).to.deep.include(expected)
    })
  }

  const CHANGE = ['dry_run', 'changes', 'warnings']
  for (const [call, ...fields] of [
    ['settings set smtp_from_name=Accounts --dry-run', ...CHANGE],
    ['settings unset smtp_from_name --dry-run', ...CHANGE],
    ['settings apply recommended --dry-run', ...CHANGE],
    ['settings history', 'versions'],
    ['mail preview --template password-reset', 'subject', 'html', 'text'],
    ['doctor', 'ok', 'checks'],
    ['user status alice', 'cause', 'summary', 'advice', 'hints', 'links', 'mails', 'events'],
    ['user verify alice', 'email', 'changed'],
    ['user send-reset dave --wait 0', 'mail_id'],
    ['audit tail', 'events'],
    ['outbox list', 'mails'],
    ['outbox purge --all-dead --yes', 'changed'],
    ['keys rotate', 'resealed', 'unreadable', 'keys'],
  ] as const) {
    it(`${call} --json is one object with ${fields.join(', ')}`, async () => {
      expect(await cli.json(call.split(' '))).to.include.all.keys(...fields)
    })
  }

  describe('mail', () => {
    const TEST = ['mail', 'test', '--to', 'me@example.com']
    const OPEN = ['mail', 'preview', '--template', 'password-reset', '--open']
    /** Each preview is of the moment it is made. */
    const timeless = (text: string) => text.replace(/\w+ \d+, \d+ at [\d:]+\s[AP]M/g, '').trimEnd()

    it('test --set tries what is not stored, and stores nothing', async () => {
      const { settings, h } = cli
      const before = await settings()
      const sent = () => h.mail.mails.filter(({ to }) => to.includes('me@example.com')).length
      const first = sent()
      const down = await cli.ended([...TEST, '--set', `smtp_port=${DEAF_PORT}`], 1)
      expect(down.stdout).to.match(/^FAILED +connect: /m)
      const from = 'other@example.com'
      await cli.done([...TEST, '--set', `smtp_from=${from}`, '--set', 'smtp_from_name=Other'])
      const { mail } = await h.mail.mailTo('me@example.com', first + 1)
      expect(mail.from?.text).to.equal(`"Other" <${from}>`)
      for (const [wrong, exitCode, said] of [
        ['smtp_port=many', 1, /^Nothing was sent: .*\nsmtp_port: expected /],
        ['smtp_password=canary', 2, /^A secret is never an argument/],
        ['smtp_hst=x', 1, /Did you mean smtp_host\?/],
      ] as const) {
        expect(await cli.refused([...TEST, '--set', wrong], exitCode)).to.match(said)
      }
      expect(await settings()).to.deep.equal(before)
      await cli.done(TEST)
      expect(sent()).to.equal(first + 2)
    })

    it('test --set asks for a secret beside any other, and for none without a terminal', async () => {
      await cli.h.put({ smtp_username: 'us', smtp_password: 'stored-password' })
      const other = await startFaultySmtp({ offersAuth: true })
      const named = ['--set', `smtp_port=${other.port}`, '--set', 'smtp_password']
      const secrets = [
        ['smtp_port=1', 'smtp_password=canary'],
        ['smtp_password', 'canary'],
        ['smtp_username', 'smtp_password=canary'],
      ]
      for (const [one = '', two = ''] of secrets) {
        const said = await cli.refused([...TEST, '--set', one, '--set', two], 2)
        if (two.includes('=')) expect(said).to.match(/^A secret is never an argument|^Which value/)
      }
      expect(await cli.refused([...TEST, ...named], 2)).to.include('no terminal')
      expect(other.connections).to.equal(0)
      for (const args of [named, [...named.slice(2), ...named.slice(0, 2)]]) {
        const shown = await cli.atTerminal([...TEST, ...args], 'canary\r', 0)
        expect(shown).to.include('smtp_password: ').and.not.include('canary')
      }
      await other.close()
      expect(other.logins).to.have.length(2)
      for (const login of other.logins) expect(JSON.stringify(login)).to.include('canary')
      expect((await cli.settings())['smtp_password']).to.equal('***')
      await cli.h.put({ smtp_username: '', smtp_password: '' })
    })

    it('test --set never takes the stored password to another server', async () => {
      await cli.h.put({ smtp_username: 'us', smtp_password: 'stored-password' })
      const other = await startFaultySmtp({ offersAuth: true })
      const { stdout } = await cli.run([...TEST, '--set', `smtp_port=${other.port}`])
      await other.close()
      const warning = 'configuration: The stored smtp_password belongs to another smtp_host'
      expectSaid(stdout, new RegExp(`^warning +${warning}`, 'm'), '--set smtp_password asks for it')
      expect(stdout).not.to.include('Set smtp_password')
      expect(other.connections).to.equal(1)
      expect([other.steps.AUTH, other.logins]).to.deep.equal([0, []])
      expect((await cli.settings())['smtp_password']).to.equal('***')
      await cli.h.put({ smtp_username: '', smtp_password: '' })
    })

    for (const template of ['password-reset', 'email-verification', 'password-changed']) {
      it(`preview shows the mail ${template}`, async () => {
        const args = ['mail', 'preview', '--template', template]
        const { text, json } = await both(args)
        expect(timeless(text)).to.equal(timeless(`Subject: ${json.subject}\n\n${json.text}`))
        for (const part of ['html', 'text']) {
          const { stdout } = await cli.done([...args, `--${part}`])
          expect(timeless(stdout)).to.equal(timeless(json[part]))
        }
      })
    }

    it('preview --open starts the browser with a file that only its owner reads, and with nothing of the connection; or says where the file is: exit 1', async () => {
      const script = `#!/bin/sh\nenv >${file('seen')}\ncat "$1" >${file('page')}\n`
      await writeFile(file('browser.sh'), script, { mode: 0o700 })
      const env = { BROWSER: file('browser.sh'), KEPT: 'kept', PATH: process.env['PATH'] ?? '' }
      const path = (await cli.done(OPEN, { env })).stdout.trim()
      expect((await stat(path)).mode & 0o777).to.equal(0o600)
      expect((await stat(dirname(path))).mode & 0o777).to.equal(0o700)
      await rm(dirname(path), { recursive: true })
      expect(await readFile(file('page'), 'utf8')).to.include('<html')
      const seen = await readFile(file('seen'), 'utf8')
      expect(seen).to.match(/^KEPT=kept$/m)
      expect(seen).not.to.include('ACCOUNT_FLOWS_').and.not.include(ADMIN_TOKEN)
      const { stdout, stderr } = await cli.ended(OPEN, 1, { env: { PATH: '' } })
      await rm(stdout.trim())
      expect(stderr).to.include('Open the file yourself')
    })
  })

  describe('doctor', () => {
    it('exit 1 where a check of the server failed', async () => {
      await cli.h.put({ smtp_port: DEAF_PORT })
      const { text, json } = await both(['doctor'], 1)
      expectSaid(text, /^FAILED +connect: /m, /\nNot ready: .+\.\n$/)
      expect(json.ok).to.equal(false)
      await cli.h.put({ smtp_port: String(cli.h.mail.port) })
      const { smtp_host: host = '' } = await cli.settings()
      await cli.h.put({ smtp_host: '' })
      expect((await both(['doctor'], 1)).text).to.match(/\nNot ready: no mail server is set\.\n$/)
      await cli.h.put({ smtp_host: host })
    })

    for (const [what, urlOf, step] of [
      ['the name has no address', () => 'https://idp.invalid', 'server_dns'],
      ['nothing listens', () => `http://127.0.0.1:${DEAF_PORT}`, 'server_connect'],
      ['TLS is not spoken', (url: string) => url.replace('http:', 'https:'), 'server_tls'],
      ['no admin API is', (url: string) => `${url}/elsewhere`, 'admin_api'],
    ] as const) {
      it(`exit 3 where ${what}, and says so`, async () => {
        const { text, json } = await both(['doctor', '--url', urlOf(cli.h.baseUrl)], 3)
        expect(text).to.match(new RegExp(`^FAILED +${step}: `, 'm'))
        expect(json.checks.at(-1)).to.include({ step, status: 'failed' })
      })
    }
  })

  describe('user', () => {
    it('status tells what is known, by username, address or id', async () => {
      const { text, json } = await both(['user', 'status', 'alice'])
      expectSaid(text, /^e-mail +alice@example.com$/m, /^verified +yes$/m)
      for (const args of [['alice@example.com'], [json.id], ['--id', json.id]])
        expect(await cli.json(['user', 'status', ...args])).to.include({ username: 'alice' })
    })

    it('status says first what to run, a line for each command, with the name that was typed', async () => {
      const first = async (...args: string[]) => {
        const { stdout } = await cli.done(['user', 'status', ...args])
        return stdout.split('\n\n')[0]?.split('\n').slice(1)
      }
      await cli.h.addUser({ username: "o'neil & co", email: 'oneil@example.com' })
      for (const [typed, name] of [
        ["o'neil & co", "'o'\\''neil & co'"],
        ['oneil@example.com', 'oneil@example.com'],
      ] as const)
        expect(await first(typed)).to.deep.equal([`  account-flows user send-reset ${name}`])

      const { id } = await cli.h.addUser({
        username: '-x',
        emailVerified: false,
        email: 'x@x.example',
      })
      const steps = (name: string) => [
        `  account-flows user send-verification ${name}`,
        'If you are sure that the address belongs to the person:',
        `  account-flows user verify ${name}`,
      ]
      expect(await first('--', '-x')).to.deep.equal(steps('-- -x'))
      // By an address that is not verified, no other command finds the account.
      for (const args of [['x@x.example'], ['--id', id]])
        expect(await first(...args)).to.deep.equal(steps(`--id ${id}`))
    })

    it('status fits on one screen, and says nothing twice; --all shows the rest', async () => {
      const { id } = await cli.h.addUser({ username: 'busy', disabled: true })
      for (let count = 0; count < 5; count++) await sendReset('busy', '--wait', '0')
      await eventually('all are dead', async () => {
        const { mails } = await cli.json(['user', 'status', 'busy'])
        return mails.every(({ state }: { state: string }) => state === 'dead')
      })
      const shown = await cli.atTerminal(['user', 'status', 'busy'], '', 0)
      expect(shown.split('\n').length).to.be.at.most(24)
      expect(shown.match(/The account is disabled/g)).to.have.length(1)
      expect(shown).to.match(/^ {2}account-flows user status --all busy$/m)
      // The newest of all is the question before this one.
      expect(shown).to.match(/^newest event +password_reset_\w+, /m)
      const { text, json } = await both(['user', 'status', 'busy', '--all'])
      expect(text).not.to.include('--all')
      for (const mail of json.mails) expectSaid(text, mail.id)
      expectSaid(text, /^Links\nnone$/m, `account=${id}`)
      expect(await cli.json(['user', 'status', 'busy'])).to.have.all.keys(json)
    })

    it('exit 1 where nobody is meant, or several; these are listed', async () => {
      const nobody = await cli.refused(['user', 'status', 'nobody@users.example'], 1)
      expect(nobody).to.match(/^There is no account .* Ask the person how it is spelled\.\n$/)
      const args = ['user', 'status', 'shared@example.com']
      expectSaid((await cli.ended(args, 1)).stderr, /^id +username$/m, / dave$/m)
      const { candidates } = JSON.parse(await cli.refused([...args, '--json'], 1)).error
      expect(candidates).to.have.length(2)
      await cli.done(['user', 'status', '--id', candidates[0].id])
    })

    it('send-reset mails a link that works, tells the mail before it waits, unless with --json, and waits until it is sent', async () => {
      const { stdout, stderr } = await cli.done(['user', 'send-reset', 'alice'])
      expect(stdout).to.match(/^Sent at /)
      expect(stderr).to.match(/^The mail was asked for: \S+\n$/)
      const { link } = await cli.h.mail.mailTo('alice@example.com')
      expect(await opensForm(link)).to.equal(true)
      const asJson = await cli.done(['user', 'send-reset', 'alice', '--json'])
      expect(asJson.stderr).to.equal('')
      expect(JSON.parse(asJson.stdout)).to.include({ state: 'sent' })
    })

    it('send-reset waits on while the server is away, or cannot work, and says so at the end of the wait: exit 3', async () => {
      const troubles: ((response: ServerResponse) => unknown)[] = [
        (response) => answerJson(response, 503, { title: 'Not now', code: 'unavailable' }),
        (response) => response.destroy(),
        (response) => answerJson(response, 502, 'a proxy'),
      ]
      const { env } = await cli.door(
        ({ method }, response) => method === 'GET' && troubles.shift()?.(response),
      )
      const { stdout } = await cli.done(['user', 'send-reset', 'alice'], { env })
      expect(stdout).to.match(/^Sent at /)
      expect(troubles).to.deep.equal([])

      const away = await cli.door(({ method }, response) => method === 'GET' && response.destroy())
      const args = ['user', 'send-reset', 'alice', '--wait', '1']
      const said = await cli.refused(args, 3, { env: away.env })
      expect(said).to.match(/^The mail was asked for: \S+\n.* cannot be reached/)
    })

    it('invite mails a link to the form for a first password, and says why to nobody else', async () => {
      const imported = { email: 'imported@example.com', emailVerified: false }
      await cli.h.addUser({ username: 'imported', passwordHash: undefined, ...imported })
      const { stdout } = await cli.done(['user', 'invite', imported.email])
      expect(stdout).to.match(/^Sent at /)
      const { link } = await cli.h.mail.mailTo(imported.email)
      expect(await opensForm(link)).to.equal(true)
      expect(await cli.json(['link', 'explain', link])).to.include({ kind: 'invitation' })
      const said = await cli.refused(['user', 'invite', 'alice'], 1)
      expect(said).to.include('the account has a password').and.include('user send-reset')
    })

    it('send-verification mails a link', async () => {
      await cli.done(['user', 'send-verification', 'bob'])
      expect((await cli.h.mail.mailTo('bob@example.com')).kind).to.equal('email_verification')
    })

    it('email-changed mails a link to the new address, and a notice to the one before', async () => {
      const { username, email = '' } = await cli.h.addUser({ username: 'moved' })
      const { stdout } = await cli.done(['user', 'email-changed', username])
      expectSaid(stdout, /^No verification mail is due\.$/m, /^No notice is due\.$/m)
      const left = ['user', 'email-changed', username, '--before', 'left@example.com']
      expectSaid((await cli.done(left)).stdout, /^The notice was asked for: \S+$/m)
      expect((await cli.h.mail.mailTo('left@example.com')).kind).to.equal('email_changed')
      expect(await cli.refused([...left.slice(0, -1), 'nowhere'], 1)).to.include('not an e-mail')
      expect(cli.h.mail.mails.filter(({ to }) => to.includes(email))).to.deep.equal([])
    })

    it('forget --yes erases what is recorded of an id, and tells how much, and what is under way and left: exit 1', async () => {
      const { id } = await cli.h.addUser({ username: 'forgotten' })
      await sendReset('forgotten')
      const { stdout } = await cli.done(['user', 'forget', id, '--yes'])
      expectSaid(stdout, /^Reset links erased: 1$/m, /^Events erased: [1-9]/m)
      const again = await cli.json(['user', 'forget', id, '--yes'])
      expect(again).to.include({ reset_links: 0, events: 0, under_way: 0 })

      const person = await cli.h.addUser({ username: 'under-way' })
      await sendReset('under-way')
      const { link } = await person.mail(1)
      // As by a process that is at work on it.
      const at = new Date()
      const by = { address: undefined, userAgent: undefined }
      const claim = { newHash: 'hash', by, at, leaseUntil: new Date(at.getTime() + 60_000) }
      const { resetTokens } = cli.h.store
      const found = await resetTokens.find(sha256(tokenOf(link)))
      await resetTokens.claim({ id: found?.id ?? '' }, claim)
      const left = (await cli.ended(['user', 'forget', person.id, '--yes'], 1)).stdout
      expectSaid(left, /^Not erased, because still in progress: 1\./m, /^Reset links erased: 0$/m)
    })
  })

  it('link explain tells of a link on stdin, and does not use it up; exit 1 for what is no link', async () => {
    const person = await cli.h.addUser({ username: 'explained' })
    await sendReset('explained')
    const { link } = await person.mail(1)
    const live = await cli.done(['link', 'explain', '-'], { stdin: `${link}\n` })
    expect(live.stderr).to.equal('')
    expect(live.stdout).to.match(/^ +state +live$/m)
    const json = await cli.done(['link', 'explain', '-', '--json'], { stdin: link })
    expect(JSON.parse(json.stdout)).to.include({ state: 'live', kind: 'password_reset' })

    await person.choosesPassword('another password of the tests', link)
    const used = await cli.done(['link', 'explain', link])
    expect(used.stdout).to.match(/^ +state +used$/m)
    expect(used.stderr).to.include('your shell history').and.not.include(link)
    const none = await cli.ended(['link', 'explain', 'https://example.com/'], 1)
    expect(none.stdout).to.match(/^ +state +not_a_link$/m)
  })

  describe('outbox', () => {
    const RETRY_DEAD = ['outbox', 'retry', '--all-dead', '--yes']
    const listed = async (state: string): Promise<{ id: string }[]> =>
      (await cli.json(['outbox', 'list', '--state', state])).mails

    before(async () => {
      misbehave()
      await sendReset('refused')
      await sendReset('deferred', '--wait', '1')
    })

    it('lists mails that wait, and dead letters; of one account', async () => {
      const account = await idOf('refused')
      const { text, json } = await both(['outbox', 'list', '--account', account])
      expect(json.mails).not.to.deep.equal([])
      for (const mail of json.mails) {
        expect(mail).to.include({ account_id: account, state: 'dead' })
        expect(text).to.include(mail.id)
      }
      expect(await listed('waiting')).not.to.deep.equal([])
      expect((await cli.json(['outbox', 'list', '--limit', '1'])).mails).to.have.length(1)
    })

    it('show tells what a mail that left is known by, and never its token', async () => {
      const { id, email = '' } = await cli.h.addUser({ username: 'ann' })
      const mailId = await resetMailOf('ann', 'sent')
      const { link, mail } = await cli.h.mail.mailTo(email)
      const { text, json } = await both(['outbox', 'show', mailId])
      expectSaid(
        text,
        /^Sent at /,
        mail.messageId ?? 'none',
        /^queue id +4F\d+Qx$/m,
        /^History\n.* password_reset_requested [^]* password_reset_mail_sent /m,
      )
      expect(text).not.to.include(tokenOf(link))
      expect(json).to.include({ state: 'sent', message_id: mail.messageId })
      expect(json.history).to.have.length(2)
      expect(json.history[0]).to.include({ account_id: id, username: 'ann' })
    })

    it('show tells of a dead letter why, whose it is and what was tried', async () => {
      const { id } = await cli.h.addUser({ username: 'off', disabled: true })
      const { stdout } = await cli.done(['outbox', 'show', await resetMailOf('off', 'dead')])
      expectSaid(
        stdout,
        /^Not sent, and there will be no other attempt/,
        /^Reason: disabled: /m,
        `off (${id})`,
      )
      const unknown = await cli.ended(['outbox', 'show', 'no-such-mail'], 1)
      expect(unknown.stdout).to.match(/^There is no record of the mail/)
    })

    it('retry --all-dead asks again for each dead letter, goes on while there are more that change, and tells how many they were', async () => {
      await cli.done(['outbox', 'purge', '--all-dead', '--yes'])
      await sendReset('refused')
      const dead = await listed('dead')
      expect(dead).not.to.deep.equal([])
      cli.h.mail.answers.set('refused@example.com', 'take')
      const firstAnswers = [
        { changed: 200, more_before: '2999-01-02T00:00:00.000Z' },
        { changed: 40, more_before: '2999-01-01T00:00:00.000Z' },
      ]
      const { env, requests } = await cli.door((_, response) => {
        const answer = firstAnswers.shift()
        return answer && answerJson(response, 200, answer)
      })
      const { stdout } = await cli.done(RETRY_DEAD, { env })
      expect(stdout).to.equal(`${240 + dead.length} mails to be sent now.\n`)
      expect(requests).to.deep.equal(Array(3).fill('POST /admin/api/outbox/retry'))
      await cli.h.mail.mailTo('refused@example.com')

      const same = { changed: 0, more_before: '2999-01-01T00:00:00.000Z' }
      const endless = await cli.door((_, response) => answerJson(response, 200, same))
      const none = await cli.done(RETRY_DEAD, endless)
      expect(none.stdout).to.equal('0 mails to be sent now.\n')
      expect(endless.requests).to.have.length(2)
    })

    it('purge removes one, or all dead letters; retry asks again for one', async () => {
      await sendReset('refused')
      await sendReset('refused')
      const [dead = expect.fail()] = await listed('dead')
      const retried = await cli.done(['outbox', 'retry', dead.id])
      expect(retried.stdout).to.match(/^1 mail /)
      await outcomeOf(cli.h, dead.id, 'dead')
      await cli.done(['outbox', 'purge', dead.id, '--yes'])
      expect((await listed('dead')).map(({ id }) => id)).not.to.include(dead.id)
      await cli.done(['outbox', 'purge', '--all-dead', '--yes'])
      expect(await listed('dead')).to.deep.equal([])
    })

    it('exit 1 where there is no such mail, and says how to name one whose id begins with a hyphen', async () => {
      for (const args of [
        ['retry', 'none'],
        ['purge', 'none', '--yes'],
        ['retry', '--', '-none'],
        ['purge', '--yes', '--', '-none'],
      ]) {
        await cli.refused(['outbox', ...args], 1)
      }
      const said = await cli.refused(['outbox', 'retry', '-none'], 2)
      expect(said).to.include('"--" before a value')
    })
  })

  describe('audit tail', () => {
    const FOLLOW = ['audit', 'tail', '-f', '--type', 'settings_changed', '--json']
    const follow = (env: Record<string, string>, more = ['-n', '1']) => {
      const tail = startCli([...FOLLOW, ...more], env)
      return { ...tail, lines: () => tail.stdout().split('\n').filter(Boolean) }
    }

    it('shows the last events, newest last, of one account or type', async () => {
      const account = await idOf('alice')
      await cli.run(['user', 'end-sessions', 'alice', '--yes'])
      const { text, json } = await both(['audit', 'tail', '-n', '3', '--account', account])
      expect(json.events).to.have.length(3)
      expect(text.trimEnd().split('\n')).to.have.length(3)
      const times = json.events.map((event: { recorded_at: string }) => event.recorded_at)
      expect(times).to.deep.equal(times.toSorted())
      const types = ['settings_changed', 'password_reset_mail_sent']
      const { events } = await cli.json(['audit', 'tail', '--type', ...types])
      for (const { type } of events) expect(type).to.be.oneOf(types)
    })

    it('--follow shows each new event once, one JSON value a line, until Ctrl-C: exit 0 [full]', async () => {
      const tail = follow(cli.env)
      await eventually('the first event', () => tail.lines().length > 0)
      for (const [index, count] of ['2001', '2002', '600'].entries()) {
        await cli.h.put({ mails_per_minute: count })
        await eventually('the new event', () => tail.lines().length === index + 2)
      }
      tail.signal('SIGINT')
      expect(await tail.exited).to.equal(0)
      const ids = tail.lines().map((line) => JSON.parse(line).id)
      expect(new Set(ids).size).to.equal(4)
    })

    it('--follow with --since shows no event from before that time [full]', async () => {
      await cli.h.put({ mails_per_minute: '2004' })
      const last = await eventually('an event', async () => {
        const args = ['audit', 'tail', '-n', '1', '--type', 'settings_changed']
        return (await cli.json(args)).events[0]
      })
      const since = new Date(Date.parse(last.recorded_at) + 1).toISOString()
      const { env, requests } = await cli.door()
      const tail = follow({ ...cli.env, ...env }, ['--since', since])
      await eventually('requests', () => requests.length >= 3)
      await cli.h.put({ mails_per_minute: '600' })
      await eventually('the new event', () => tail.stdout().includes('"mails_per_minute"'))
      tail.signal('SIGINT')
      expect(await tail.exited).to.equal(0)
      expect(tail.lines()).to.have.length(1)
      expect(JSON.parse(tail.lines()[0] ?? '').recorded_at >= since).to.equal(true)
    })

    it('--follow goes on when the server was away, says so once, and ends while it waits for an answer [full]', async () => {
      let isAway = false
      let isSilent = false
      const { env, requests } = await cli.door((request) => (isAway ? request.destroy() : isSilent))
      const asksAgain = async (times: number) => {
        const before = requests.length
        await eventually('vain requests', () => requests.length >= before + times)
      }
      const tail = follow({ ...cli.env, ...env })
      await eventually('the first event', () => tail.lines().length === 1)
      isAway = true
      await asksAgain(2)
      await cli.h.put({ mails_per_minute: '2003' })
      isAway = false
      await eventually('the event meanwhile', () => tail.lines().length === 2)
      expect(tail.stderr()).to.equal('The server cannot be reached; still trying.\n')
      isSilent = true
      await asksAgain(1)
      tail.signal('SIGINT')
      expect(await tail.exited).to.equal(0)
      expect(tail.lines()).to.have.length(2)
      await cli.h.put({ mails_per_minute: '600' })
    })

    it('and outbox list take with --since how long ago, or a time, and refuse what is neither: exit 2', async () => {
      const { id } = await cli.h.addUser({ username: 'eve' })
      await resetMailOf('eve', 'sent')
      const audit = ['audit', 'tail', '--account', id]
      const outbox = ['outbox', 'list']
      const events = async (...since: string[]) =>
        (await cli.json([...audit, ...since])).events as { recorded_at: string }[]
      const all = await events()
      expect(all.length).to.be.greaterThan(1)
      expect(await events('--since', '1h')).to.deep.equal(all)
      const lastAt = all.at(-1)?.recorded_at ?? ''
      expect((await events('--since', lastAt)).length).to.be.within(1, all.length)
      for (const later of ['2099-01-01', '2099-01-01 08:12:04 UTC'])
        expect(await events('--since', later)).to.deep.equal([])
      const { mails } = await cli.json(outbox)
      expect((await cli.json([...outbox, '--since', '1h'])).mails).to.have.length(mails.length)
      const later = ['--since', '2099-01-01T00:00:00Z']
      expect((await cli.json([...outbox, ...later])).mails).to.deep.equal([])

      const days = ['2026-02-31T', '2026-02-31', '2025-02-29T08:00:00Z']
      for (const wrong of ['yesterday', '2', '-2h', ...days, ''])
        for (const list of [audit, outbox]) await cli.refused([...list, `--since=${wrong}`], 2)
    })
  })
})

function answerJson(response: ServerResponse, status: number, body: unknown): true {
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  response.writeHead(status, { 'content-type': type }).end(JSON.stringify(body))
  return true
}
