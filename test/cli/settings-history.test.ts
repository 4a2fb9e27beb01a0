import { expect } from 'chai'
import { startCli } from '../support/cli-in-process.ts'
import { cliOf } from '../support/cli-server.ts'
import { eventually } from '../support/eventually.ts'
import { eventsOf } from '../support/observe.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { settingsOf } from '../support/admin.ts'

const ACTOR = 'admin_token'
const HISTORY = ['settings', 'history']
const rollback = (version: number | string, ...more: string[]) => [
  'settings',
  'rollback',
  String(version),
  ...more,
]

describe('account-flows settings history and rollback', () => {
  let h: Harness
  let cli: ReturnType<typeof cliOf>

  beforeEach(async () => {
    h = await startHarness()
    cli = cliOf(h)
  })
  afterEach(() => h.close())

  const stored = () => h.store.settings.read()
  const version = async () => (await stored()).version
  const put = async (body: object) => {
    expect((await settingsOf(h).put({ body })).status).to.equal(200)
    return version()
  }
  const versions = async () => (await cli.json(HISTORY)).versions
  const changesSeen = () => eventsOf(h, 'settings_changed')

  /** Ends like this, and nothing is changed; going back in earnest still works. */
  async function refused(args: string[], exitCode: number, ...words: string[]) {
    const before = await stored()
    const ran = await cli.run(args)
    expect(ran, ran.stderr).to.include({ exitCode, stdout: '' })
    for (const each of words) expect(ran.stderr).to.include(each)
    expect(await stored()).to.deep.equal(before)
    return ran
  }

  it('tells newest first when, who, and what was changed; of a secret only that it was', async () => {
    const from = await put({ resend_cooldown: '10s', smtp_from_name: 'One' })
    await put({ resend_cooldown: '30s', smtp_password: 'canary' })
    await cli.done(['settings', 'unset', 'resend_cooldown', 'smtp_from_name'])
    const { stdout } = await cli.done(HISTORY)
    expect(stdout.split('\n').slice(0, 9).join('\n')).to.match(
      new RegExp(
        [
          `version ${from + 2}: \\S+Z, ${ACTOR} \\(in force\\)`,
          '  resend_cooldown: 30s -> 0s \\(default\\)',
          '  smtp_from_name: One -> none',
          `version ${from + 1}: \\S+Z, ${ACTOR}`,
          '  resend_cooldown: 10s -> 30s',
          '  smtp_password: changed',
          `version ${from}: \\S+Z, ${ACTOR}`,
          '  resend_cooldown: 0s \\(default\\) -> 10s',
          '  smtp_from_name: none -> One',
        ]
          .map((line) => `${line}\n?`)
          .join(''),
      ),
    )
    const sealed = (await stored()).values['smtp_password'] ?? ''
    expect(sealed).not.to.equal('')
    for (const text of [JSON.stringify((await stored()).history), JSON.stringify(await versions())])
      expect(text).not.to.include('canary').and.not.include(sealed)
  })

  it('names the host for what it began with, and nobody for what was written by hand', async () => {
    const all = await versions()
    expect(all.at(-1)).to.deep.equal({ version: 0, settings: {} })
    expect(all.at(-2)).to.include({ version: 1, actor: 'initialSettings' })
    const before = await stored()
    await h.store.settings.write({ ...before.values, smtp_username: 'by hand' }, before.version)
    await put({ smtp_username: 'ann' })
    const [now, byHand] = await versions()
    expect(now).to.deep.include({ actor: ACTOR })
    expect(byHand).not.to.have.any.keys('at', 'actor')
    expect(byHand.changes).to.deep.include({ key: 'smtp_username', after: 'by hand' })
    expect((await cli.done(HISTORY)).stdout).to.include(
      `version ${byHand.version}: time unknown, person unknown`,
    )
  })

  it('keeps 20 versions, whatever comes', async () => {
    for (let count = 0; count < 25; count++) await put({ resend_cooldown: `${10 + count}s` })
    const all = await versions()
    expect(all).to.have.length(20)
    expect(all[0].version - all[19].version).to.equal(19)
    expect(all[19]).not.to.have.property('changes')
    expect((await stored()).history).to.have.length(20)
    await refused(rollback(1, '--yes'), 1, 'version 1 is not kept any more', 'settings history')
    const { exitCode } = await cli.run(rollback(all[19].version, '--yes'))
    expect(exitCode).to.equal(0)
    expect((await cli.settings())['resend_cooldown']).to.equal('15s')
  })

  it('goes back: values return, what had none loses its own, secrets stay; it is said, and recorded', async () => {
    const good = await put({ resend_cooldown: '10s', smtp_password: 'canary' })
    const bad = await put({ resend_cooldown: '20s', smtp_from_name: 'Oops' })
    const newest = await put({ smtp_username: 'ann' })
    const { values } = await stored()
    const seen = changesSeen().length
    const { stdout, stderr } = await cli.done(rollback(good, '--yes'))
    expect(stdout)
      .to.include('resend_cooldown: 20s -> 10s')
      .and.include('smtp_from_name: Oops -> none')
    expect(stderr)
      .to.match(new RegExp(`takes back:\\n  version ${newest}: .*\\n  version ${bad}: `))
      .and.include('smtp_password stays as it is')
    const after = await stored()
    expect(after.version).to.equal(newest + 1)
    expect(after.values['smtp_password']).to.equal(values['smtp_password'])
    expect(after.values).not.to.have.any.keys('smtp_from_name', 'smtp_username')
    expect(after.values).to.include({ resend_cooldown: '10s' })
    const events = changesSeen().slice(seen)
    expect(events).to.have.length(1)
    expect(events[0]?.details?.['keys']).to.have.members([
      'resend_cooldown',
      'smtp_from_name',
      'smtp_username',
    ])
    // And forth again.
    await cli.done(rollback(newest, '--yes'))
    expect(await cli.settings()).to.include({ resend_cooldown: '20s', smtp_username: 'ann' })
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
    expect(stdout)
      .to.include('Nothing was changed. These are the changes')
      .and.include('resend_cooldown: 20s -> ')
    expect(await cli.json(rollback(good, '--dry-run'))).to.deep.include({
      dry_run: true,
      takes_back: [bad],
    })
    expect(await stored()).to.deep.equal(before)
    expect(await cli.json(rollback(good, '--yes'))).to.deep.include({ dry_run: false })
    expect(await version()).to.equal(bad + 1)
  })

  it('asks first, and says what it takes back; without a terminal it needs --yes', async () => {
    const good = await version()
    await put({ resend_cooldown: '20s' })
    await refused(rollback(good), 2, '--yes')
    for (const [answer, exitCode] of [
      ['n\r', 1],
      ['y\r', 0],
    ] as const) {
      const before = await version()
      const terminal = startCli(rollback(good), cli.env, true)
      terminal.stdin.write(answer)
      expect(await terminal.exited).to.equal(exitCode)
      expect(terminal.stderr())
        .to.include('This takes back:')
        .and.include('resend_cooldown: 20s -> ')
        .and.include(`Go back to version ${good} on ${h.baseUrl}?`)
      expect(await version()).to.equal(before + (exitCode === 0 ? 1 : 0))
    }
  })

  it('tells before it asks what going back weakens', async () => {
    await put({ smtp_tls: 'none' })
    const weak = await version()
    await put({ smtp_tls: 'starttls' })
    const terminal = startCli(rollback(weak), cli.env, true)
    terminal.stdin.write('n\r')
    expect(await terminal.exited).to.equal(1)
    expect(terminal.stderr()).to.match(/smtp_tls is none.*Go back to version/s)
    expect(await cli.settings()).to.include({ smtp_tls: 'starttls' })
  })

  it('shows no secret that somebody wrote into the history by hand', async () => {
    const { values, version, history = [] } = await stored()
    const [first, ...rest] = history
    if (!first) throw new Error('there is no history')
    const damaged = { ...first, values: { ...first.values, smtp_password: 'canary' } }
    await h.store.settings.write(values, version, [damaged, ...rest])
    expect(JSON.stringify(await versions())).not.to.include('canary')
    expect((await cli.done(HISTORY)).stdout).not.to.include('canary')
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
    expect(terminal.stderr().replace(/\s+/g, ' '))
      .to.include('somebody else just changed the settings')
      .and.include('account-flows settings history')
    expect(await stored()).to.deep.equal(before)
    await cli.done(rollback(good, '--yes'))
  })

  it('refuses the version in force, one that is yet to come, and what is no number', async () => {
    const now = await put({ resend_cooldown: '20s' })
    await refused(rollback(now, '--yes'), 1, 'in force already', `go back to version ${now - 1}`)
    await refused(rollback(now + 1, '--yes'), 1, `no version ${now + 1} yet`, `0 to ${now}`)
    const { stderr } = await refused(rollback('canary', '--yes'), 2, 'whole number')
    expect(stderr).not.to.include('canary')
    const { error } = JSON.parse((await cli.run(rollback(now + 1, '--yes', '--json'))).stderr)
    expect(error.code).to.equal('unknown_version')
    await cli.done(rollback(now - 1, '--yes'))
  })

  it('goes back to before the first change', async () => {
    await cli.done(rollback(0, '--yes'))
    expect((await stored()).values).to.deep.equal({})
  })

  it('refuses a version whose values are not acceptable any more', async () => {
    const { version: held, values } = await stored()
    const wrong = { version: held, secrets: [], values: { ...values, resend_cooldown: 'never' } }
    await h.store.settings.write({ ...values, smtp_from_name: 'New' }, held, [wrong])
    await refused(rollback(held, '--yes'), 1, 'resend_cooldown: expected')
    await put({ smtp_from_name: 'Newer' })
    await cli.done(rollback(held + 1, '--yes'))
  })

  it('knows the version in force of a store that an older release wrote, and keeps it from then on', async () => {
    const { values } = await stored()
    const { version: held } = await stored()
    await h.store.settings.write({ ...values, smtp_from_name: 'Old' }, held, [])
    const { stdout, stderr } = await cli.done(HISTORY)
    expect(stdout).to.match(/^version \d+: time unknown, person unknown \(in force\)\n/)
    expect(stderr).to.include('There is no earlier version')
    await refused(rollback(held, '--yes'), 1, 'not kept any more')
    await put({ smtp_from_name: 'New' })
    await cli.done(rollback(held + 1, '--yes'))
    expect((await cli.settings())['smtp_from_name']).to.equal('Old')
  })
})
