import { expect } from 'chai'
import { settingNamed } from '../../src/settings/table.ts'
import { suiteCli } from '../support/cli-server.ts'
import { badNames, badValues, goodValues } from '../support/settings-values.ts'

const SET = ['settings', 'set']
const FILE = [...SET, '--file', '-']

/** Which values are acceptable, the suite of the admin API shows. */
describe('account-flows settings set: the verdicts are those of the admin API (2.5, 4.5)', () => {
  const cli = suiteCli()
  let inForce: Record<string, string>

  before(async () => {
    await cli.h.put({ smtp_username: 'mailer', smtp_password: 'kept' })
  })

  beforeEach(async () => {
    inForce = await cli.settings()
  })

  async function isRefused(args: string[], words: string[], stdin = '') {
    const run = await cli.run(args, { stdin })
    expect(run).to.include({ exitCode: 1, stdout: '' })
    for (const word of words) expect(run.stderr).to.include(word)
    expect(await cli.settings()).to.deep.equal(inForce)
  }

  it('what is not acceptable: exit 1, and the words of the server, key by key; then nothing has changed after all of them, and an honest change is made (CLI-02)', async () => {
    const first = Object.entries(badValues).map(([key, values]) => [key, values[0] ?? ''])
    const words = first.map(([key]) => `${key}: expected `)
    await isRefused(FILE, words, JSON.stringify(Object.fromEntries(first)))
    const typed = first.filter(([key = '']) => !settingNamed(key)?.secret)
    for (const [key, value] of typed) {
      await isRefused([...SET, `${key}=${value}`], [`${key}: expected `])
    }
    const { exitCode } = await cli.run([...SET, 'password_reset_expiration=3h'])
    expect(exitCode).to.equal(0)
    expect(await cli.settings()).to.include({ password_reset_expiration: '3h' })
  })

  it('a name that is none, typed or in a file: exit 1, and nothing changes', async () => {
    for (const name of badNames) {
      await isRefused([...SET, name, '26'], ['name of a setting'])
      const stdin = JSON.stringify({ [name]: '26', smtp_port: '26' })
      await isRefused(FILE, ['name of a setting'], stdin)
    }
  })

  it('values of a file that are no strings: exit 1, and nothing changes', async () => {
    for (const value of [26, 0, null, true, [], ['26'], { $gt: '' }]) {
      const stdin = JSON.stringify({ smtp_port: value, password_reset_expiration: '5h' })
      await isRefused(FILE, ['smtp_port: expected '], stdin)
    }
  })

  it('what is acceptable: exit 0, it is in force, and a secret is not shown', async () => {
    const good = Object.entries(goodValues).map(([key, values]) => [key, values.at(-1) ?? ''])
    const typed = good.filter(([key = '']) => !settingNamed(key)?.secret)
    const secret = 'a "secret" = 密码 '
    const run = await cli.run(
      [
        ...SET,
        ...typed.map(([key, value]) => `${key}=${value}`),
        '--from-env',
        'smtp_password=NEW',
      ],
      { env: { NEW: secret } },
    )
    expect(run.exitCode, run.stderr).to.equal(0)
    expect(run.stdout + run.stderr).not.to.include('密码')
    const shown = await cli.settings()
    for (const [key = '', value] of typed) expect(shown[key] ?? '', key).to.equal(value)
    expect(shown).to.include({ smtp_password: '***' })
  })
})
