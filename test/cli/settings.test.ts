import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { allSettings } from '../../src/settings/table.ts'
import { changesNothing, settingsOf } from '../support/admin.ts'
import { cliOf, expectSaid, startCli, suiteCli, type CliServer } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { suiteFolder } from '../support/folders.ts'

const GET = ['settings', 'get']
const SET = ['settings', 'set']
const UNSET = ['settings', 'unset']
const APPLY = ['settings', 'apply', 'recommended']
const HISTORY = ['settings', 'history']
/** A file of settings on stdin. */
const FILE = [...SET, '--file', '-']
const NOTHING_CHANGED = 'Nothing changed.\n'

describe('account-flows settings', () => {
  const cli = suiteCli()
  const file = suiteFolder()

  beforeEach(() =>
    cli.h.put({
      smtp_host: '',
      smtp_from: '',
      smtp_username: '',
      smtp_password: '',
      password_reset_expiration: '1h',
      smtp_port: '587',
    }),
  )

  const set = (...args: string[]) => cli.done([...SET, ...args])
  const inForce = async (key: string) => (await cli.settings())[key]

  describe('get', () => {
    it('prints the bare value of one setting; an empty line, or null, where there is none', async () => {
      for (const [name, text, json] of [
        ['smtp_port', '587\n', '587'],
        ['smtp_from', '\n', null],
      ] as const) {
        expect(await cli.done([...GET, name])).to.include({ stdout: text, stderr: '' })
        expect(await cli.json([...GET, name])).to.equal(json)
      }
    })

    it('of an unknown setting is refused with exit 1, and nothing is sent', async () => {
      const { env, requests } = await cli.door()
      for (const name of ['warnings', 'nonsense', 'constructor', '']) {
        const said = await cli.refused([...GET, name], 1, { env })
        expect(said).to.include('not the name of a setting').and.include('Nothing was sent.')
      }
      expect(requests).to.deep.equal([])
      expect((await cli.done([...GET, 'smtp_port'], { env })).stdout).to.equal('587\n')
      expect(requests).to.deep.equal(['GET /admin/api/settings'])
    })

    it('prints all settings in force, and never a secret (CLI-03)', async () => {
      await cli.h.put({ smtp_password: 'canary' })
      const { stdout } = await cli.done(GET)
      expectSaid(stdout, /^smtp_port +587$/m, /^smtp_password +\*\*\*$/m)
      expect(stdout).not.to.include('canary')
      expect(await cli.json(GET)).to.include({ smtp_port: '587', smtp_password: '***' })
    })
  })

  it('list shows every setting with its default and its meaning, and marks those that differ', async () => {
    await cli.h.put({ password_reset_expiration: '2h' })
    const { stdout } = await cli.done(['settings', 'list'])
    expectSaid(
      stdout,
      /^\* +password_reset_expiration +2h +1h +duration +How long /m,
      /^ +email_verification_expiration +24h +24h +duration +How long /m,
    )
    const rows = await cli.json(['settings', 'list'])
    expect(rows).to.have.length(allSettings.length)
    const [first] = rows
    expect(first).to.include({ name: 'password_reset_expiration', value: '2h', default: '1h' })
    expect(first).to.include({ is_default: false })
  })

  describe('apply recommended', () => {
    const changes = [
      { key: 'email_link_confirmation', before: 'off', after: 'other_browser' },
      { key: 'reset_requires_verified_email', before: 'false', after: 'true' },
      { key: 'resend_cooldown', before: '0s', after: '30s' },
      { key: 'validation_min_password_length', before: '8', after: '15' },
      { key: 'password_blocklist', before: 'off', after: 'common' },
    ]
    const lines = changes.map(({ key, before, after }) => `${key}: ${before} -> ${after}\n`)
    const before = Object.fromEntries(changes.map(({ key, before }) => [key, before]))
    const after = Object.fromEntries(changes.map(({ key, after }) => [key, after]))
    afterEach(() => cli.h.put(before))

    it('shows what would change with --dry-run; sets all of it at once, as one change that is told and recorded, and then nothing more', async () => {
      await changesNothing(cli.h, async () => {
        const shown = await cli.json([...APPLY, '--dry-run'])
        expect(shown).to.deep.include({ dry_run: true, changes })
      })
      const others = await cli.settings()
      expect((await cli.done(APPLY)).stdout).to.equal(lines.join(''))
      expect(await cli.settings()).to.deep.equal({ ...others, ...after })
      const events = cli.h.eventsOf('settings_changed')
      expect(events.at(-1)?.details?.['keys']).to.have.members(Object.keys(after))
      const message = 'The settings are as recommended, or stricter.'
      const advised = await cli.json(['doctor'], 1)
      expect(advised.checks).to.deep.include({ step: 'recommended', status: 'ok', message })

      expect((await cli.done(APPLY)).stdout).to.equal(NOTHING_CHANGED)
      expect(cli.h.eventsOf('settings_changed')).to.deep.equal(events)
    })

    it('leaves alone what is stricter, and the minimum length below a maximum that it would exceed', async () => {
      const stricter = { resend_cooldown: '1m', password_blocklist: 'pwned' }
      await cli.h.put({ ...stricter, validation_min_password_length: '16' })
      expect((await cli.done(APPLY)).stdout).to.equal(lines.slice(0, 2).join(''))
      const inForce = { ...after, ...stricter, validation_min_password_length: '16' }
      expect(await cli.settings()).to.include(inForce)

      const lengths = { validation_min_password_length: '8', validation_max_password_length: '12' }
      await cli.h.put({ ...before, ...lengths })
      await cli.done(APPLY)
      expect(await cli.settings()).to.include({ ...after, ...lengths })
      await cli.h.put({ validation_max_password_length: '64' })
    })

    it('at a terminal shows each with its reason, and asks; --yes asks nothing', async () => {
      await changesNothing(cli.h, async () => {
        const shown = await cli.atTerminal(APPLY, 'n\r', 1)
        const text = shown.replace(/\s+/g, ' ')
        for (const { key, before, after } of changes)
          expect(text).to.include(`${key}: ${before} -> ${after}, so that `)
        expectSaid(text, `Set the recommended values on ${cli.h.baseUrl}?`, 'Nothing was changed.')
        await cli.atTerminal([...APPLY, '--dry-run'], '', 0)
      })
      await cli.atTerminal(APPLY, 'y\r', 0)
      expect(await cli.settings()).to.include(after)
      expect(await cli.atTerminal(APPLY, '', 0)).to.include(NOTHING_CHANGED.trim())
      await cli.h.put(before)
      expect(await cli.atTerminal([...APPLY, '--yes'], '', 0)).to.not.include('[y/N]')
      expect(await cli.settings()).to.include(after)
    })

    it('at a terminal sets nothing that was not shown: after a change meanwhile it asks again', async () => {
      const terminal = startCli(APPLY, cli.env, true)
      const asked = (times: number) =>
        eventually('the question', () => terminal.stderr().split('[y/N]').length > times)
      await asked(1)
      await cli.h.put({ resend_cooldown: '2m' })
      await changesNothing(cli.h, async () => {
        terminal.stdin.write('y\r')
        await asked(2)
      })
      terminal.stdin.write('y\r')
      expect(await terminal.exited).to.equal(0)
      expect(terminal.stderr().match(/resend_cooldown/g)).to.have.length(1)
      expect(await cli.settings()).to.include({ ...after, resend_cooldown: '2m' })
    })

    it('overwrites nothing that somebody else changes meanwhile', async () => {
      await Promise.all([cli.done(APPLY), set('resend_cooldown=2m')])
      expect(await cli.settings()).to.include({ ...after, resend_cooldown: '2m' })
    })
  })

  describe('set', () => {
    it('takes a key and a value, and shows what changed, or that nothing did', async () => {
      const changed = await set('password_reset_expiration', '2h')
      expect(changed.stdout).to.equal('password_reset_expiration: 1h -> 2h\n')
      expect(await inForce('password_reset_expiration')).to.equal('2h')
      expect((await set('smtp_port=587')).stdout).to.equal(NOTHING_CHANGED)
    })

    it('takes several at once, all or none, and tells warnings on stderr', async () => {
      const args = [...SET, 'password_reset_expiration=2h', 'smtp_port=25']
      expect((await cli.json(args)).changes).to.deep.equal([
        { key: 'password_reset_expiration', before: '1h', after: '2h' },
        { key: 'smtp_port', before: '587', after: '25' },
      ])
      expect((await set('smtp_port', '26')).stderr).to.match(/^Warning: SMTP is not configured/)
    })

    // Which values are acceptable is in test/admin/settings.test.ts.
    it('has the verdicts of the admin API, typed or in a file: exit 1, its words, key by key, and nothing changes (CLI-02)', async () => {
      const bad = { smtp_port: '0', smtp_tls: 'AUTO', smtp_from: 'a@', resend_cooldown: '-1h' }
      const words = Object.keys(bad).map((key) => `${key}: expected `)
      await changesNothing(cli.h, async () => {
        const typed = Object.entries(bad).map(([key, value]) => `${key}=${value}`)
        const said = await cli.refused([...SET, 'password_reset_expiration=2h', ...typed], 1)
        expectSaid(said, ...words, /^smtp_port: expected .*, got "0"$/m)
        expectSaid(await cli.refused(FILE, 1, { stdin: JSON.stringify(bad) }), ...words)
        for (const smtp_port of [26, null, true, [], ['26'], { $gt: '' }]) {
          const stdin = JSON.stringify({ smtp_port, password_reset_expiration: '5h' })
          expect(await cli.refused(FILE, 1, { stdin })).to.include('smtp_port: expected ')
        }
        for (const name of ['', ' smtp_port', 'SMTP_PORT', '$set', 'constructor', 'toString']) {
          const stdin = JSON.stringify({ [name]: '26', smtp_port: '26' })
          for (const args of [[...SET, name, '26'], FILE])
            expect(await cli.refused(args, 1, { stdin })).to.include('name of a setting')
        }
      })
      await set('password_reset_expiration=3h')
      expect(await inForce('password_reset_expiration')).to.equal('3h')
    })

    it('tells of a host with its port the two commands that do what was meant', () =>
      changesNothing(cli.h, async () => {
        for (const host of ['localhost', '192.0.2.1', '[2001:db8::1]']) {
          const said = await cli.refused([...SET, 'smtp_host', `${host}:1025`], 1)
          const lines = said.split('\n')
          expect(lines).to.include.members([
            `  account-flows settings set smtp_host ${host.replace(/[[\]]/g, '')}`,
            '  account-flows settings set smtp_port 1025',
          ])
          expect(said).to.include('smtp_host: expected a host name or an IP address, without port')
        }
        for (const other of ['local host:1025', 'a;b:1', 'localhost:'])
          expect(await cli.refused([...SET, 'smtp_host', other], 1)).to.not.include('smtp_port')
      }))

    it('--dry-run checks, shows, and changes nothing', () =>
      changesNothing(cli.h, async () => {
        const { stdout } = await set('smtp_port=25', '--dry-run')
        expect(stdout).to.include('smtp_port: 587 -> 25')
        await cli.refused([...SET, 'smtp_port=x', '--dry-run'], 1)
      }))

    it('reads values from stdin, files and the environment, without their last line break', async () => {
      await writeFile(file('port'), '26\n')
      const byFile = ['--from-file', `smtp_port=${file('port')}`]
      const others = ['--from-stdin', 'smtp_host', '--from-env', 'smtp_from_name=NAME']
      const given = { stdin: 'mail.example\r\n', env: { NAME: 'Support' } }
      await cli.done([...SET, ...others, ...byFile, 'resend_cooldown=1m'], given)
      expect(await cli.settings()).to.include({
        smtp_host: 'mail.example',
        smtp_port: '26',
        smtp_from_name: 'Support',
        resend_cooldown: '1m',
      })
    })

    it('takes back what get --json has written, and keeps the secret', async () => {
      await cli.h.put({ smtp_password: 'kept', smtp_username: 'mailer', smtp_from_name: 'Before' })
      await writeFile(file('settings.json'), (await cli.run([...GET, '--json'])).stdout)
      await cli.h.put({ smtp_from_name: 'After' })
      const { stdout } = await set('--file', file('settings.json'))
      expect(stdout).to.equal('smtp_from_name: After -> Before\n')
      expect(await cli.settings()).to.include({ smtp_from_name: 'Before', smtp_password: '***' })
      const told = JSON.stringify({ smtp_from_name: 'Told', warnings: ['a warning'] })
      await cli.done(FILE, { stdin: told })
      expect(await cli.settings()).to.include({ smtp_from_name: 'Told' })
    })

    for (const [what, stdin] of [
      ['no JSON', '{'],
      ['no object', '["smtp_port"]'],
      ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
      ['no settings', '{}'],
    ] as const) {
      it(`refuses a file with ${what} with exit 2`, () =>
        changesNothing(cli.h, () => cli.refused(FILE, 2, { stdin })))
    }

    it('refuses with exit 1 what somebody else has changed since the ETag that was given', async () => {
      const args = [...SET, 'smtp_port=25', '--if-match']
      await changesNothing(cli.h, async () => {
        await cli.refused([...args, '"another"'], 1)
        const { error } = JSON.parse(await cli.refused([...args, '"another"', '--json'], 1))
        expect(error).to.include({ code: 'stale_settings', status: 412 })
      })
      await cli.done([...args, await settingsOf(cli.h).etag()])
      expect(await inForce('smtp_port')).to.equal('25')
    })

    it('of several at once makes each change, and loses none', async () => {
      const changes = { smtp_port: '26', resend_cooldown: '2m', mails_per_minute: '5' }
      await Promise.all(Object.entries(changes).map(([key, value]) => set(key, value)))
      expect(await cli.settings()).to.include(changes)
    })
  })

  it('unset gives the default back, or no value; changes nothing with --dry-run, or where one name is none', async () => {
    await changesNothing(cli.h, async () => {
      const dry = await cli.done([...UNSET, 'smtp_port', '--dry-run'])
      expect(dry.stdout).to.include('smtp_port: 587 -> none')
      const said = await cli.refused([...UNSET, 'smtp_port', 'canary'], 1)
      expect(said).to.include('name of a setting')
    })
    await cli.h.put({ password_reset_expiration: '2h' })
    const { stdout } = await cli.done([...UNSET, 'password_reset_expiration', 'smtp_port'])
    expect(stdout).to.equal('password_reset_expiration: 2h -> 1h\nsmtp_port: 587 -> none\n')
    expect(await inForce('smtp_port')).to.equal(undefined)
  })

  describe('a secret', () => {
    /** Nothing of it is sent or changes anything, and an honest call is done. */
    async function sendsNothing(args: string[], exitCode: number) {
      const { env, requests } = await cli.door()
      await changesNothing(cli.h, async () => {
        for (const more of [[], ['--json']])
          await cli.refused(['settings', ...args, ...more], exitCode, { env, stdin: 'canary' })
        expect(requests).to.deep.equal([])
      })
      await cli.done([...SET, 'smtp_port=26'], { env })
    }

    for (const args of [
      ['set', 'smtp_password', 'canary'],
      ['set', 'smtp_password=canary'],
      ['set', 'smtp_port=25', 'smtp_password=canary'],
      ['set', 'smtp_username=me', 'smtp_password', 'canary'],
      ['set', '--smtp_password=canary'],
      ['set', 'SMTP_PASSWORD=canary'],
      ['set', 'smtp-password=canary'],
      ['set', 'smtp_pasword', 'canary'],
      ['set', 'smtppasswrod=canary'],
      ['set', 'smtp_host', 'smtp_password=canary'],
      ['set', '--from-stdin', 'smtp_password=canary'],
      ['set', '--from-stdin=smtp-password=canary'],
      ['unset', 'smtp_password=canary'],
      ['unset', 'smtp_port', 'SMTP_PASSWORD=canary'],
      ['set', '--from-env', 'smtp_password=canary'],
      ['set', '--from-file', 'smtp_password=canary'],
      ['set', '--from-file', 'canary'],
      ['set', '--file', 'canary'],
    ]) {
      it(`as an argument is refused with exit 2, not repeated, and nothing is sent: ${args.join(' ')} (CLI-01)`, () =>
        sendsNothing(args, 2))
    }

    for (const args of [
      ['set', 'canary', 'canary'],
      ['set', 'smtp_port=25', 'canary=canary'],
      ['set', '--from-stdin', 'canary'],
      ['set', '--from-env', 'canary=HOME'],
      ['set', '--from-file', 'canary=/dev/null'],
      ['unset', 'smtp_port', 'canary'],
      ['unset', 'SMTP_PORT', 'canary'],
    ]) {
      it(`may be behind a name that is none; it is not repeated, and nothing is sent: ${args.join(' ')}`, async () => {
        await sendsNothing(args, 1)
        const { error } = JSON.parse(await cli.refused(['settings', ...args, '--json'], 1))
        expect(error).to.include({ code: 'unknown_setting' })
      })
    }

    it('the refusal tells the ways that are right, also for a name that is mistyped, and they are', async () => {
      for (const name of ['smtp_pasword', 'smtp-password', 'SMTP_Password', 'smtp_passwords']) {
        for (const args of [[name], [name, 'x'], [`${name}=x`]]) {
          const said = await cli.refused([...SET, ...args], 2)
          expect(said).to.include('--from-stdin smtp_password')
        }
      }
      const said = await cli.refused([...SET, 'smtp_password=canary'], 2)
      expect(said).to.include('--from-stdin smtp_password').and.include('--from-file')
      await writeFile(file('secret'), 'canary\n')
      for (const [args, options] of [
        [['--from-stdin', 'smtp_password'], { stdin: 'canary\n' }],
        [['--from-file', `smtp_password=${file('secret')}`], {}],
        [['--from-env', 'smtp_password=SECRET'], { env: { SECRET: 'a "canary" = 密码 ' } }],
      ] as const) {
        const { stdout, stderr } = await cli.done([...SET, ...args], options)
        expect(stdout).to.equal('smtp_password: set\n')
        expect(stderr).not.to.match(/canary|密码/)
        expect(await inForce('smtp_password')).to.equal('***')
        expect((await set('smtp_password=')).stdout).to.equal('smtp_password: forgotten\n')
        expect((await inForce('smtp_password')) ?? '').to.equal('')
      }
    })

    it('*** keeps it, and unset forgets it; it is not forgotten because stdin is empty, or a variable', async () => {
      await cli.h.put({ smtp_password: 'canary' })
      expect((await set('smtp_password=***')).stdout).to.equal(NOTHING_CHANGED)
      await cli.refused([...SET, '--from-stdin', 'smtp_password'], 2)
      const empty = { env: { SECRET: '' } }
      await cli.refused([...SET, '--from-env', 'smtp_password=SECRET'], 2, empty)
      expect(await inForce('smtp_password')).to.equal('***')
      const { stdout } = await cli.done([...UNSET, 'smtp_password'])
      expect(stdout).to.equal('smtp_password: forgotten\n')
    })

    it('without a terminal cannot be asked for: exit 2, with the ways that are right', async () =>
      expectSaid(await cli.refused([...SET, 'smtp_password'], 2), 'no terminal', '--from-stdin'))
  })
})

const rollback = (version: number | string, ...more: string[]) => [
  'settings',
  'rollback',
  String(version),
  ...more,
]

describe('account-flows settings history and rollback', () => {
  let h: Harness
  let cli: CliServer

  beforeEach(async () => {
    h = await startHarness()
    cli = cliOf(h)
  })
  afterEach(() => h.close())

  /** What is kept, and what somebody writes there by hand. */
  const stored = () => h.store.settings.read()
  type Stored = Awaited<ReturnType<typeof stored>>
  const writeByHand = (values: object, version: number, history?: Stored['history']) =>
    h.store.settings.write({ ...values }, version, history)

  const version = async () => (await stored()).version
  const put = async (settings: Record<string, string>) => {
    await h.put(settings)
    return version()
  }
  const versions = async () => (await cli.json(HISTORY)).versions

  /** Ends like this, and nothing is changed. */
  async function refused(args: string[], exitCode: number, ...words: string[]) {
    const before = await stored()
    expectSaid(await cli.refused(args, exitCode), ...words)
    expect(await stored()).to.deep.equal(before)
  }

  it('tells newest first when, who, and what was changed; of a secret only that it was', async () => {
    const from = await put({ resend_cooldown: '10s', smtp_from_name: 'One' })
    await put({ resend_cooldown: '30s', smtp_password: 'canary' })
    await cli.done([...UNSET, 'resend_cooldown', 'smtp_from_name'])
    const { stdout } = await cli.done(HISTORY)
    const lines = stdout.replaceAll(/\S+Z,/g, 'at a time,').split('\n')
    expect(lines.slice(0, 9)).to.deep.equal([
      `version ${from + 2}: at a time, admin_token (in force)`,
      '  resend_cooldown: 30s -> 0s (default)',
      '  smtp_from_name: One -> none',
      `version ${from + 1}: at a time, admin_token`,
      '  resend_cooldown: 10s -> 30s',
      '  smtp_password: changed',
      `version ${from}: at a time, admin_token`,
      '  resend_cooldown: 0s (default) -> 10s',
      '  smtp_from_name: none -> One',
    ])
    const { values, history } = await stored()
    const sealed = values['smtp_password'] ?? ''
    expect(sealed).not.to.equal('')
    for (const text of [JSON.stringify(history), JSON.stringify(await versions())])
      expect(text).not.to.include('canary').and.not.include(sealed)
  })

  it('names the host for what it began with, and nobody for what was written by hand, of which it shows no secret', async () => {
    const all = await versions()
    expect(all.at(-1)).to.deep.equal({ version: 0, settings: {} })
    expect(all.at(-2)).to.include({ version: 1, actor: 'initialSettings' })
    const before = await stored()
    await writeByHand({ ...before.values, smtp_username: 'by hand' }, before.version)
    await put({ smtp_username: 'ann' })
    const [now, byHand] = await versions()
    expect(now).to.deep.include({ actor: 'admin_token' })
    expect(byHand).not.to.have.any.keys('at', 'actor')
    expect(byHand.changes).to.deep.include({ key: 'smtp_username', after: 'by hand' })
    const { stdout } = await cli.done(HISTORY)
    expect(stdout).to.include(`version ${byHand.version}: time unknown, person unknown`)

    const { values, version: held, history: [first = expect.fail(), ...rest] = [] } = await stored()
    const damaged = { ...first, values: { ...first.values, smtp_password: 'canary' } }
    const present = {
      version: held + 1,
      secrets: [],
      values: { ...values, smtp_password: 'canary' },
    }
    await writeByHand(values, held, [damaged, ...rest, present])
    expect(JSON.stringify(await versions())).not.to.include('canary')
    expect((await cli.done(HISTORY)).stdout).not.to.include('canary')
  })

  it('keeps 20 versions, whatever comes', async () => {
    for (let count = 0; count < 25; count++) await put({ resend_cooldown: `${10 + count}s` })
    const all = await versions()
    expect(all).to.have.length(20)
    expect(all[0].version - all[19].version).to.equal(19)
    expect(all[19]).not.to.have.property('changes')
    expect((await stored()).history).to.have.length(20)
    await refused(rollback(1, '--yes'), 1, 'version 1 is not kept any more', 'settings history')
    await cli.done(rollback(all[19].version, '--yes'))
    expect((await cli.settings())['resend_cooldown']).to.equal('15s')
  })

  it('goes back: values return, what had none loses its own, secrets stay; it is said, and recorded', async () => {
    const good = await put({ resend_cooldown: '10s', smtp_password: 'canary' })
    const bad = await put({ resend_cooldown: '20s', smtp_from_name: 'Oops' })
    const newest = await put({ smtp_username: 'ann' })
    const { values } = await stored()
    const seen = h.eventsOf('settings_changed').length
    const { stdout, stderr } = await cli.done(rollback(good, '--yes'))
    expectSaid(stdout, 'resend_cooldown: 20s -> 10s', 'smtp_from_name: Oops -> none')
    expectSaid(
      stderr,
      new RegExp(`takes back:\\n  version ${newest}: .*\\n  version ${bad}: `),
      'smtp_password stays as it is',
    )
    const after = await stored()
    expect(after.version).to.equal(newest + 1)
    expect(after.values['smtp_password']).to.equal(values['smtp_password'])
    expect(after.values).not.to.have.any.keys('smtp_from_name', 'smtp_username')
    expect(after.values).to.include({ resend_cooldown: '10s' })
    const events = h.eventsOf('settings_changed').slice(seen)
    expect(events).to.have.length(1)
    const changed = ['resend_cooldown', 'smtp_from_name', 'smtp_username']
    expect(events[0]?.details?.['keys']).to.have.members(changed)
    // And forth again; then to before the first change.
    await cli.done(rollback(newest, '--yes'))
    expect(await cli.settings()).to.include({ resend_cooldown: '20s', smtp_username: 'ann' })
    await cli.done(rollback(0, '--yes'))
    const { smtp_password: left = '', ...others } = (await stored()).values
    expect([left, others]).to.deep.equal(['', {}])
  })

  it('says that a password goes with its server, and how to give it again', async () => {
    const good = await version()
    await put({ smtp_host: 'mail.example', smtp_password: 'canary' })
    const { stdout, stderr } = await cli.done(rollback(good, '--yes'))
    expect(stdout).to.include('smtp_password: forgotten')
    expect(stderr).to.include('account-flows settings set smtp_password')
    expect(await cli.settings()).not.to.have.property('smtp_password')
  })

  it('changes nothing with --dry-run, and shows what it would', async () => {
    const good = await version()
    const bad = await put({ resend_cooldown: '20s' })
    const before = await stored()
    const { stdout } = await cli.done(rollback(good, '--dry-run'))
    expectSaid(stdout, 'Nothing was changed. These are the changes', 'resend_cooldown: 20s -> ')
    const dry = await cli.json(rollback(good, '--dry-run'))
    expect(dry).to.deep.include({ dry_run: true, takes_back: [bad] })
    expect(await stored()).to.deep.equal(before)
    expect(await cli.json(rollback(good, '--yes'))).to.deep.include({ dry_run: false })
    expect(await version()).to.equal(bad + 1)
  })

  it('asks first, and says what it takes back and what that weakens; without a terminal it needs --yes', async () => {
    const good = await version()
    const bad = await put({ resend_cooldown: '20s' })
    await refused(rollback(good), 2, '--yes')
    for (const [answer, exitCode, now] of [
      ['n\r', 1, bad],
      ['y\r', 0, bad + 1],
    ] as const) {
      const shown = await cli.atTerminal(rollback(good), answer, exitCode)
      const question = `Go back to version ${good} on ${h.baseUrl}?`
      expectSaid(shown, 'This takes back:', `version ${bad}: `, 'cooldown: 20s -> 0s', question)
      expect(await version()).to.equal(now)
    }
    const weak = await put({ smtp_tls: 'none' })
    await put({ smtp_tls: 'starttls' })
    const shown = await cli.atTerminal(rollback(weak), 'n\r', 1)
    expect(shown).to.match(/smtp_tls is none.*Go back to version/s)
    expect(await cli.settings()).to.include({ smtp_tls: 'starttls' })
  })

  it('takes back nothing that was not shown: a change meanwhile wins, and is told', async () => {
    const good = await version()
    await put({ resend_cooldown: '20s' })
    const terminal = startCli(rollback(good), cli.env, true)
    await eventually('the question', () => terminal.stderr().includes('[y/N]'))
    await put({ smtp_from_name: 'Meanwhile' })
    const before = await stored()
    terminal.stdin.write('y\r')
    expect(await terminal.exited).to.equal(1)
    expectSaid(
      terminal.stderr().replace(/\s+/g, ' '),
      'another admin just changed the settings',
      'account-flows settings history',
    )
    expect(await stored()).to.deep.equal(before)
    await cli.done(rollback(good, '--yes'))
  })

  it('refuses the version in force, one that is yet to come, what is no number, and one whose values are not acceptable any more', async () => {
    const now = await put({ resend_cooldown: '20s' })
    await refused(rollback(now, '--yes'), 1, 'in force already', `go back to version ${now - 1}`)
    await refused(rollback(now + 1, '--yes'), 1, `no version ${now + 1} yet`, `0 to ${now}`)
    await refused(rollback(now + 1, '--yes', '--json'), 1, '"code":"unknown_version"')
    await refused(rollback('canary', '--yes'), 2, 'whole number')
    await cli.done(rollback(now - 1, '--yes'))

    const { version: held, values } = await stored()
    const wrong = { version: held, secrets: [], values: { ...values, resend_cooldown: 'never' } }
    await writeByHand({ ...values, smtp_from_name: 'New' }, held, [wrong])
    await refused(rollback(held, '--yes'), 1, 'resend_cooldown: expected')
    await put({ smtp_from_name: 'Newer' })
    await cli.done(rollback(held + 1, '--yes'))
  })

  it('knows the version in force of a store without a history, and keeps it from then on', async () => {
    const { values, version: held } = await stored()
    await writeByHand({ ...values, smtp_from_name: 'Old' }, held, [])
    const { stdout, stderr } = await cli.done(HISTORY)
    expect(stdout).to.match(/^version \d+: time unknown, person unknown \(in force\)\n/)
    expect(stderr).to.include('There is no earlier version')
    await refused(rollback(held, '--yes'), 1, 'not kept any more')
    await put({ smtp_from_name: 'New' })
    await cli.done(rollback(held + 1, '--yes'))
    expect((await cli.settings())['smtp_from_name']).to.equal('Old')
  })
})
