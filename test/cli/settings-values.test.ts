import { expect } from 'chai'
import { startCliServer, type CliServer } from '../support/cli-server.ts'
import type { CliRun } from '../support/cli.ts'
import { badNames, badValues, goodValues } from '../support/settings-values.ts'

const AT_ONCE = 4

const ignore = () => undefined

describe('account-flows settings set: the verdicts are those of the admin API (2.5, 4.5)', function () {
  this.timeout(120_000)
  let cli: CliServer

  before(async () => {
    cli = await startCliServer()
    await cli.put({ smtp_username: 'mailer', smtp_password: 'kept' })
  })
  after(() => cli.close())

  /** As it is typed, where an argument can carry it; a secret is in the environment. */
  function set(key: string, value: string): Promise<CliRun> {
    const isArgument = value.isWellFormed() && !value.includes('\0')
    if (!isArgument) {
      const stdin = JSON.stringify({ [key]: value })
      return cli.run(['settings', 'set', '--file', '-'], { stdin })
    }
    if (key === 'smtp_password' && value !== '') {
      return cli.run(['settings', 'set', '--from-env', `${key}=NEW`], { env: { NEW: value } })
    }
    return cli.run(['settings', 'set', `${key}=${value}`])
  }

  /** Starts a few runs at a time, in the order given; each is awaited by the test of its own. */
  function inPool<T>(starts: (() => Promise<T>)[]): Promise<T>[] {
    const free = Array.from({ length: AT_ONCE }, () => Promise.resolve())
    return starts.map((start, at) => {
      const run = (free[at % AT_ONCE] ?? Promise.resolve()).then(start)
      // One that fails does so in its own test.
      free[at % AT_ONCE] = run.then(ignore, ignore)
      return run
    })
  }

  describe('what is not acceptable: exit 1, a sentence on stderr, and nothing changes', () => {
    const pairs = Object.entries(badValues).flatMap(([key, values]) =>
      values.map((value) => ({ key, value })),
    )
    let verdicts: Promise<CliRun>[]
    let inForce: Record<string, string>

    before('all are under way', async () => {
      inForce = await cli.settings()
      verdicts = inPool(
        pairs.map(
          ({ key, value }) =>
            () =>
              set(key, value),
        ),
      )
    })

    for (const [at, { key, value }] of pairs.entries()) {
      it(`${key}: ${JSON.stringify(value).slice(0, 60)}`, async () => {
        const run = await verdicts[at]
        expect(run?.exitCode, run?.stderr).to.equal(1)
        expect(run?.stderr).to.include(`${key}: expected `)
        expect(run?.stdout).to.equal('')
      })
    }

    it('nothing has changed after all of them, and an honest change is made (CLI-02)', async () => {
      await Promise.all(verdicts)
      expect(await cli.settings()).to.deep.equal(inForce)
      const { exitCode } = await set('password_reset_expiration', '3h')
      expect(exitCode).to.equal(0)
      expect(await cli.settings()).to.include({ password_reset_expiration: '3h' })
    })
  })

  describe('a name that is none: exit 1, and nothing changes', () => {
    let verdicts: Promise<CliRun>[]
    let inForce: Record<string, string>

    before('all are under way', async () => {
      inForce = await cli.settings()
      verdicts = inPool(badNames.map((name) => () => cli.run(['settings', 'set', name, '26'])))
    })

    for (const [at, name] of badNames.entries()) {
      it(JSON.stringify(name), async () => {
        const run = await verdicts[at]
        expect(run?.exitCode, run?.stderr).to.equal(1)
        expect(run?.stderr).to.include('name of a setting')
        expect(await cli.settings()).to.deep.equal(inForce)
      })
    }

    it('in a file, which the server judges', async () => {
      const byFile = badNames.map((name) => () => {
        const stdin = JSON.stringify({ [name]: '26', smtp_port: '26' })
        return cli.run(['settings', 'set', '--file', '-'], { stdin })
      })
      for (const { exitCode, stderr } of await Promise.all(inPool(byFile))) {
        expect(exitCode, stderr).to.equal(1)
        expect(stderr).to.include('name of a setting')
      }
      expect(await cli.settings()).to.deep.equal(inForce)
    })
  })

  describe('values of a file that are no strings: exit 1, and nothing changes', () => {
    for (const value of [26, 0, null, true, [], ['26'], { $gt: '' }]) {
      it(JSON.stringify(value), async () => {
        const before = await cli.settings()
        const stdin = JSON.stringify({ smtp_port: value, password_reset_expiration: '5h' })
        const { exitCode, stderr } = await cli.run(['settings', 'set', '--file', '-'], { stdin })
        expect(exitCode, stderr).to.equal(1)
        expect(stderr).to.include('smtp_port: expected ')
        expect(await cli.settings()).to.deep.equal(before)
      })
    }
  })

  describe('what is acceptable: exit 0, and it is in force', () => {
    for (const [key, values] of Object.entries(goodValues)) {
      for (const value of values) {
        it(`${key}: ${JSON.stringify(value).slice(0, 60)}`, async () => {
          const { exitCode, stderr, stdout } = await set(key, value)
          expect(exitCode, stderr).to.equal(0)
          const inForce = (await cli.settings())[key] ?? ''
          expect(inForce).to.equal(key === 'smtp_password' && value !== '' ? '***' : value)
          if (key === 'smtp_password' && value !== '') expect(stdout + stderr).not.to.include(value)
        })
      }
    }
  })
})
