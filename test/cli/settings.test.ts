import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { allSettings } from '../../src/settings/table.ts'
import { suiteCli } from '../support/cli-server.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { settingsOf } from '../support/admin.ts'
import { openFrontDoor } from '../support/front-door.ts'

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

  const set = (...args: string[]) => cli.run(['settings', 'set', ...args])
  const inForce = async (key: string) => (await cli.settings())[key]

  describe('get', () => {
    it('prints the bare value of one setting', async () => {
      const shown = { exitCode: 0, stdout: '587\n', stderr: '' }
      expect(await cli.run(['settings', 'get', 'smtp_port'])).to.deep.equal(shown)
      expect(await cli.json(['settings', 'get', 'smtp_port'])).to.equal('587')
    })

    it('prints an empty line, or null, where there is no value', async () => {
      const none = { exitCode: 0, stdout: '\n' }
      expect(await cli.run(['settings', 'get', 'smtp_from'])).to.include(none)
      expect(await cli.json(['settings', 'get', 'smtp_from'])).to.equal(null)
    })

    it('refuses a name that is none with exit 1', async () => {
      const { exitCode, stdout, stderr } = await cli.run(['settings', 'get', 'warnings'])
      expect({ exitCode, stdout }).to.deep.equal({ exitCode: 1, stdout: '' })
      expect(stderr).to.include('no setting with this name')
    })

    it('prints all settings in force, and never a secret (CLI-03)', async () => {
      await cli.h.put({ smtp_password: 'canary' })
      const text = await cli.run(['settings', 'get'])
      expect(text.stdout)
        .to.match(/^smtp_port +587$/m)
        .and.match(/^smtp_password +\*\*\*$/m)
      expect(await cli.json(['settings', 'get'])).to.include({ smtp_port: '587' })
      expect(text.stdout + text.stderr).not.to.include('canary')
    })
  })

  describe('list', () => {
    it('shows every setting with its default and its meaning, and marks those that differ', async () => {
      await cli.h.put({ password_reset_expiration: '2h' })
      const { stdout } = await cli.done(['settings', 'list'])
      expect(stdout)
        .to.match(/^\* +password_reset_expiration +2h +1h +duration +How long /m)
        .and.match(/^ +email_verification_expiration +24h +24h +duration +How long /m)
      const rows = await cli.json(['settings', 'list'])
      expect(rows).to.have.length(allSettings.length)
      expect(rows[0]).to.include({
        name: 'password_reset_expiration',
        value: '2h',
        default: '1h',
        is_default: false,
      })
    })
  })

  describe('apply recommended', () => {
    const apply = ['settings', 'apply', 'recommended']
    const before = {
      email_link_confirmation: 'off',
      reset_requires_verified_email: 'false',
      resend_cooldown: '0s',
      validation_min_password_length: '8',
      password_blocklist: 'off',
    }
    const after = {
      email_link_confirmation: 'other_browser',
      reset_requires_verified_email: 'true',
      resend_cooldown: '30s',
      validation_min_password_length: '15',
      password_blocklist: 'common',
    }
    afterEach(() => cli.h.put(before))

    it('sets all of it at once, as one change that is told and recorded, and then nothing more', async () => {
      const others = await cli.settings()
      const { stdout } = await cli.done(apply)
      expect(stdout).to.equal(
        'email_link_confirmation: off -> other_browser\n' +
          'reset_requires_verified_email: false -> true\n' +
          'resend_cooldown: 0s -> 30s\n' +
          'validation_min_password_length: 8 -> 15\n' +
          'password_blocklist: off -> common\n',
      )
      expect(await cli.settings()).to.deep.equal({ ...others, ...after })
      const changes = cli.h.events.filter(({ type }) => type === 'settings_changed')
      expect(Reflect.get(Object(changes.at(-1)?.details), 'keys')).to.have.members(
        Object.keys(after),
      )
      const advised = await cli.json(['doctor'])
      expect(advised.checks).to.deep.include.members([
        {
          step: 'recommended',
          status: 'ok',
          message: 'The settings are as recommended, or stricter.',
        },
      ])

      expect((await cli.done(apply)).stdout).to.equal('Nothing changed.\n')
      expect(cli.h.events.filter(({ type }) => type === 'settings_changed')).to.deep.equal(changes)
    })

    it('--dry-run shows what would change, and changes nothing', async () => {
      const settings = await cli.settings()
      const { dry_run, changes } = await cli.json([...apply, '--dry-run'])
      expect(dry_run).to.equal(true)
      expect(changes).to.deep.equal(
        Object.entries(after).map(([key, value]) => ({
          key,
          before: Reflect.get(before, key),
          after: value,
        })),
      )
      expect(await cli.settings()).to.deep.equal(settings)
    })

    it('leaves alone what is stricter', async () => {
      const stricter = {
        resend_cooldown: '1m',
        password_blocklist: 'pwned',
        validation_min_password_length: '16',
      }
      await cli.h.put(stricter)
      const { stdout } = await cli.done(apply)
      expect(stdout.trim().split('\n')).to.deep.equal([
        'email_link_confirmation: off -> other_browser',
        'reset_requires_verified_email: false -> true',
      ])
      expect(await cli.settings()).to.include({ ...after, ...stricter })
    })

    it('leaves the minimum length alone below a maximum that it would exceed', async () => {
      await cli.h.put({ validation_max_password_length: '12' })
      await cli.done(apply)
      expect(await cli.settings()).to.include({
        ...after,
        validation_min_password_length: '8',
        validation_max_password_length: '12',
      })
      await cli.h.put({ validation_max_password_length: '64' })
    })

    it('overwrites nothing that somebody else changes meanwhile', async () => {
      await Promise.all([cli.done(apply), cli.done(['settings', 'set', 'resend_cooldown=2m'])])
      expect(await cli.settings()).to.include({ ...after, resend_cooldown: '2m' })
    })

    it('is refused, with exit 2, for a name that is none, and for none', async () => {
      const settings = await cli.settings()
      for (const args of [
        ['settings', 'apply', 'canary'],
        ['settings', 'apply'],
      ]) {
        const { exitCode, stdout, stderr } = await cli.run(args)
        expect({ exitCode, stdout }).to.deep.equal({ exitCode: 2, stdout: '' })
        expect(stderr).not.to.include('canary')
      }
      expect(await cli.settings()).to.deep.equal(settings)
    })
  })

  describe('set', () => {
    it('takes a key and a value, and shows what changed', async () => {
      const run = await set('password_reset_expiration', '2h')
      expect(run).to.include({ exitCode: 0, stdout: 'password_reset_expiration: 1h -> 2h\n' })
      expect(await inForce('password_reset_expiration')).to.equal('2h')
    })

    it('takes several at once, all or none', async () => {
      const refused = await set('password_reset_expiration=2h', 'smtp_port=0')
      expect(refused).to.include({ exitCode: 1, stdout: '' })
      expect(refused.stderr).to.match(/^smtp_port: expected .*, got "0"$/m)
      expect(await cli.settings()).to.include({
        password_reset_expiration: '1h',
        smtp_port: '587',
      })
      const args = ['settings', 'set', 'password_reset_expiration=2h', 'smtp_port=25']
      expect((await cli.json(args)).changes).to.deep.equal([
        { key: 'password_reset_expiration', before: '1h', after: '2h' },
        { key: 'smtp_port', before: '587', after: '25' },
      ])
    })

    it('tells warnings on stderr', async () => {
      const { stderr } = await cli.done(['settings', 'set', 'smtp_port', '25'])
      expect(stderr).to.match(/^Warning: SMTP is not configured/)
    })

    it('--dry-run checks, shows, and changes nothing', async () => {
      const run = await cli.done(['settings', 'set', 'smtp_port=25', '--dry-run'])
      expect(run.stdout).to.include('smtp_port: 587 -> 25')
      const refused = await set('smtp_port=x', '--dry-run')
      expect(refused.exitCode).to.equal(1)
      expect(await inForce('smtp_port')).to.equal('587')
    })

    it('reads values from stdin, files and the environment, without their last line break', async () => {
      await writeFile(file('port'), '26\n')
      const byFile = ['--from-file', `smtp_port=${file('port')}`]
      const others = ['--from-stdin', 'smtp_host', '--from-env', 'smtp_from_name=NAME']
      const given = { stdin: 'mail.example\r\n', env: { NAME: 'Support' } }
      await cli.done(['settings', 'set', ...others, ...byFile, 'resend_cooldown=1m'], given)
      expect(await cli.settings()).to.include({
        smtp_host: 'mail.example',
        smtp_port: '26',
        smtp_from_name: 'Support',
        resend_cooldown: '1m',
      })
    })

    it('takes back what get --json has written, and keeps the secret', async () => {
      await cli.h.put({ smtp_password: 'kept', smtp_username: 'mailer', smtp_from_name: 'Before' })
      const path = file('settings.json')
      await writeFile(path, (await cli.run(['settings', 'get', '--json'])).stdout)
      await cli.h.put({ smtp_from_name: 'After' })
      const run = await set('--file', path)
      expect(run).to.include({ exitCode: 0, stdout: 'smtp_from_name: After -> Before\n' })
      expect(await cli.settings()).to.include({ smtp_from_name: 'Before', smtp_password: '***' })
    })

    for (const [what, stdin] of [
      ['no JSON', '{'],
      ['no object', '["smtp_port"]'],
      ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
      ['no settings', '{}'],
    ] as const) {
      it(`refuses a file with ${what} with exit 2`, async () => {
        const before = await cli.settings()
        const run = await cli.run(['settings', 'set', '--file', '-'], { stdin })
        expect(run).to.include({ exitCode: 2, stdout: '' })
        expect(await cli.settings()).to.deep.equal(before)
      })
    }

    it('refuses with exit 1 what somebody else has changed since the ETag that was given', async () => {
      const args = ['settings', 'set', 'smtp_port=25', '--if-match', '"another"']
      const refused = await cli.run(args)
      expect(refused).to.include({ exitCode: 1, stdout: '' })
      const asJson = await cli.run([...args, '--json'])
      expect(JSON.parse(asJson.stderr).error).to.include({ code: 'stale_settings', status: 412 })
      expect(await inForce('smtp_port')).to.equal('587')

      const etag = await settingsOf(cli.h).etag()
      await cli.done(['settings', 'set', 'smtp_port=25', '--if-match', etag])
      expect(await inForce('smtp_port')).to.equal('25')
    })

    it('of several at once makes each change, and loses none', async () => {
      const changes = ['smtp_port=26', 'resend_cooldown=2m', 'mails_per_minute=5']
      await Promise.all(changes.map((change) => cli.done(['settings', 'set', change])))
      expect(await cli.settings()).to.include({
        smtp_port: '26',
        resend_cooldown: '2m',
        mails_per_minute: '5',
      })
    })

    it('says so where nothing changed', async () => {
      const run = await set('smtp_port=587')
      expect(run).to.include({ exitCode: 0, stdout: 'Nothing changed.\n' })
    })
  })

  describe('unset', () => {
    it('gives the default back, or no value', async () => {
      await cli.h.put({ password_reset_expiration: '2h' })
      const run = await cli.done(['settings', 'unset', 'password_reset_expiration', 'smtp_port'])
      expect(run.stdout).to.equal('password_reset_expiration: 2h -> 1h\nsmtp_port: 587 -> none\n')
      expect(await inForce('smtp_port')).to.equal(undefined)
    })

    it('--dry-run changes nothing; a name that is none is refused, and nothing changes', async () => {
      const dry = await cli.run(['settings', 'unset', 'smtp_port', '--dry-run'])
      expect(dry.stdout).to.include('smtp_port: 587 -> none')
      const refused = await cli.run(['settings', 'unset', 'smtp_port', 'nonsense'])
      expect(refused.exitCode).to.equal(1)
      expect(refused.stderr).to.include('name of a setting').and.not.include('nonsense')
      expect(await inForce('smtp_port')).to.equal('587')
    })
  })

  describe('a secret', () => {
    const forms = [
      ['settings', 'set', 'smtp_password', 'canary'],
      ['settings', 'set', 'smtp_password=canary'],
      ['settings', 'set', 'smtp_port=25', 'smtp_password=canary'],
      ['settings', 'set', 'smtp_username=me', 'smtp_password', 'canary'],
      ['settings', 'set', '--smtp_password=canary'],
      ['settings', 'set', 'SMTP_PASSWORD=canary'],
      ['settings', 'set', 'smtp-password=canary'],
      ['settings', 'set', 'smtp_pasword', 'canary'],
      ['settings', 'set', 'smtppasswrod=canary'],
      ['settings', 'set', 'smtp_host', 'smtp_password=canary'],
      ['settings', 'set', '--from-stdin', 'smtp_password=canary'],
      ['settings', 'set', '--from-stdin=smtp-password=canary'],
      ['settings', 'unset', 'smtp_password=canary'],
      ['settings', 'unset', 'smtp_port', 'SMTP_PASSWORD=canary'],
      ['settings', 'set', '--from-env', 'smtp_password=canary'],
      ['settings', 'set', '--from-file', 'smtp_password=canary'],
      ['settings', 'set', '--from-file', 'canary'],
      ['settings', 'set', '--file', 'canary'],
    ]
    /** Nothing of it is sent or changes anything, and an honest call is done. */
    async function sendsNothing(work: (env: Record<string, string>) => Promise<void>) {
      const before = await cli.settings()
      const door = await openFrontDoor(cli.h.baseUrl, () => false)
      const env = { ACCOUNT_FLOWS_URL: door.url }
      await work(env)
      expect(door.requests).to.deep.equal([])
      expect(await cli.settings()).to.deep.equal(before)
      await cli.done(['settings', 'set', 'smtp_port=26'], { env })
      await door.close()
    }

    for (const form of forms) {
      it(`as an argument is refused with exit 2, not repeated, and nothing is sent: ${form.join(' ')} (CLI-01)`, () =>
        sendsNothing(async (env) => {
          for (const args of [form, [...form, '--json']]) {
            const { exitCode, stdout, stderr } = await cli.run(args, { env, stdin: 'x' })
            expect({ exitCode, stdout }, stderr).to.deep.equal({ exitCode: 2, stdout: '' })
            expect(stderr).not.to.equal('').and.not.to.include('canary')
          }
        }))
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
      it(`may be behind a name that is none; it is not repeated, and nothing is sent: ${args.join(' ')}`, () =>
        sendsNothing(async (env) => {
          const run = await cli.run(['settings', ...args, '--json'], { env, stdin: 'canary' })
          expect(run).to.include({ exitCode: 1, stdout: '' })
          expect(JSON.parse(run.stderr).error).to.include({ code: 'unknown_setting' })
          expect(run.stderr).not.to.include('canary')
        }))
    }

    it('that is mistyped gets the ways that are right', async () => {
      for (const name of ['smtp_pasword', 'smtp-password', 'SMTP_Password', 'smtp_passwords']) {
        for (const args of [[name], [name, 'x'], [`${name}=x`]]) {
          const { exitCode, stderr } = await set(...args)
          expect(exitCode, name).to.equal(2)
          expect(stderr).to.include('--from-stdin smtp_password')
        }
      }
    })

    it('the refusal tells the ways that are right, and they are', async () => {
      const refused = await set('smtp_password=canary')
      expect(refused.stderr).to.include('--from-stdin smtp_password').and.include('--from-file')
      const path = file('secret')
      await writeFile(path, 'canary\n')
      for (const [args, options] of [
        [['--from-stdin', 'smtp_password'], { stdin: 'canary\n' }],
        [['--from-file', `smtp_password=${path}`], {}],
        [['--from-env', 'smtp_password=SECRET'], { env: { SECRET: 'canary' } }],
      ] as const) {
        const run = await cli.run(['settings', 'set', ...args], options)
        expect(run, run.stderr).to.include({ exitCode: 0, stdout: 'smtp_password: set\n' })
        expect(await inForce('smtp_password')).to.equal('***')
        const forgotten = await set('smtp_password=')
        expect(forgotten).to.include({ exitCode: 0, stdout: 'smtp_password: forgotten\n' })
        expect((await inForce('smtp_password')) ?? '').to.equal('')
      }
    })

    it('*** keeps it, and unset forgets it', async () => {
      await cli.h.put({ smtp_password: 'canary' })
      const kept = await set('smtp_password=***')
      expect(kept).to.include({ exitCode: 0, stdout: 'Nothing changed.\n' })
      expect(await inForce('smtp_password')).to.equal('***')
      const forgotten = await cli.run(['settings', 'unset', 'smtp_password'])
      expect(forgotten).to.include({ exitCode: 0, stdout: 'smtp_password: forgotten\n' })
    })

    it('is not forgotten because stdin is empty, or a variable', async () => {
      await cli.h.put({ smtp_password: 'canary' })
      const byStdin = await set('--from-stdin', 'smtp_password')
      expect(byStdin.exitCode).to.equal(2)
      const args = ['settings', 'set', '--from-env', 'smtp_password=SECRET']
      expect((await cli.run(args, { env: { SECRET: '' } })).exitCode).to.equal(2)
      expect(await inForce('smtp_password')).to.equal('***')
    })

    it('without a terminal cannot be asked for: exit 2, with the ways that are right', async () => {
      const { exitCode, stderr } = await set('smtp_password')
      expect(exitCode).to.equal(2)
      expect(stderr).to.include('no terminal').and.include('--from-stdin')
    })
  })
})
