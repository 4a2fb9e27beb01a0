import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { startCliServer, type CliServer } from '../support/cli-server.ts'
import { hasTerminals, startCliAtTerminal } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'

const INTERRUPT = '\u0003'

/** Sends a signal to the command line that `script` runs in a shell. */
function signalChild(script: number, signal: string): void {
  const childOf = (pid: string) =>
    spawnSync('ps', ['-o', 'pid=', '--ppid', pid], { encoding: 'utf8' }).stdout.trim()
  process.kill(Number(childOf(childOf(String(script)))), `SIG${signal}`)
}

describe('account-flows at a terminal', function () {
  this.timeout(60_000)
  let cli: CliServer

  before(async function () {
    if (!hasTerminals()) {
      console.log('      no `script` here that makes a terminal')
      this.skip()
    }
    cli = await startCliServer()
  })
  after(() => cli?.close())

  beforeEach(() => cli.put({ smtp_password: '' }))

  /** Types each answer once its question is shown. */
  async function talk(
    args: string[],
    answers: [question: string, answer: string][],
    env: Record<string, string> = {},
  ) {
    const terminal = startCliAtTerminal(args, { ...cli.env, ...env })
    for (const [question, answer] of answers) {
      await eventually(question, () => terminal.stdout().includes(question))
      terminal.type(answer)
    }
    const exitCode = await terminal.exited
    const shown = terminal.stdout()
    expect(shown, 'the terminal shows what is typed again').to.match(/ icanon .* echo /s)
    return { exitCode, shown }
  }

  const password = async () => (await cli.settings())['smtp_password'] ?? ''

  it('asks for a secret, and does not show it', async () => {
    const { exitCode, shown } = await talk(
      ['settings', 'set', 'smtp_password'],
      [['smtp_password: ', 'canary\r']],
    )
    expect(shown).to.include('smtp_password: set').and.not.include('canary')
    expect(exitCode).to.equal(0)
    expect(await password()).to.equal('***')
  })

  it('takes corrections while a secret is typed', async () => {
    const { exitCode, shown } = await talk(
      ['settings', 'set', '--from-stdin', 'smtp_password', '--dry-run'],
      [['smtp_password: ', `wrong\u0015canarx\u007Fy\r`]],
    )
    expect(shown).to.include('smtp_password: set').and.not.include('canar')
    expect(exitCode).to.equal(0)
  })

  it('an interrupted question changes nothing: exit 1', async () => {
    const { exitCode, shown } = await talk(
      ['settings', 'set', 'smtp_password'],
      [['smtp_password: ', `canary${INTERRUPT}`]],
    )
    expect(exitCode).to.equal(1)
    expect(shown).to.include('Interrupted; nothing was changed.').and.not.include('canary')
    expect(await password()).to.equal('')
    const again = await talk(
      ['settings', 'set', 'smtp_password'],
      [['smtp_password: ', 'canary\r']],
    )
    expect(again.exitCode).to.equal(0)
  })

  it('does not take arrow keys and other control sequences into a secret', async () => {
    const keys = ['\u001B[A', '\u001BOB', '\u001B[1;5C', '\u001B[[A', '\t', '\u001B', '\u0001']
    const [first = '', ...rest] = cli.server.adminToken
    const { exitCode, shown } = await talk(
      ['settings', 'get', 'password_reset_expiration'],
      [['Admin token: ', `${first}${keys.join('')}${rest.join('')}\r`]],
      { ACCOUNT_FLOWS_TOKEN: '' },
    )
    expect(shown).to.match(/^1h\r?$/m)
    expect(exitCode).to.equal(0)
  })

  for (const signal of ['TERM', 'HUP']) {
    it(`is left as it was by SIG${signal} at a question, and nothing is changed`, async () => {
      const terminal = startCliAtTerminal(['settings', 'set', 'smtp_password'], cli.env)
      await eventually('the question', () => terminal.stdout().includes('smtp_password: '))
      terminal.type('canary')
      signalChild(terminal.process.pid ?? NaN, signal)
      expect(await terminal.exited).to.equal(1)
      expect(terminal.stdout())
        .to.include('Interrupted; nothing was changed.')
        .and.match(/ icanon .* echo /s)
        .and.not.include('canary')
      expect(await password()).to.equal('')
      const again = await talk(
        ['settings', 'set', 'smtp_password'],
        [['smtp_password: ', 'canary\r']],
      )
      expect(again.exitCode).to.equal(0)
    })
  }

  it('nothing typed is no secret: exit 2, and nothing is forgotten', async () => {
    await cli.put({ smtp_password: 'kept' })
    const { exitCode, shown } = await talk(
      ['settings', 'set', 'smtp_password'],
      [['smtp_password: ', '\r']],
    )
    expect(exitCode).to.equal(2)
    expect(shown).to.include('settings unset smtp_password')
    expect(await password()).to.equal('***')
  })

  it('asks for the token, and does not show it', async () => {
    const { exitCode, shown } = await talk(
      ['settings', 'get', 'password_reset_expiration'],
      [['Admin token: ', `${cli.server.adminToken}\r`]],
      { ACCOUNT_FLOWS_TOKEN: '' },
    )
    expect(exitCode).to.equal(0)
    expect(shown)
      .to.match(/^1h\r?$/m)
      .and.not.include(cli.server.adminToken)
  })

  for (const [args, question] of [
    [['user', 'end-sessions', 'alice'], 'alice'],
    [['outbox', 'purge', '--all-dead'], 'all dead letters (0)'],
    [['outbox', 'retry', '--all-dead'], 'all dead letters (0)'],
  ] as const) {
    it(`${args.join(' ')} asks first, and names the server; anything but yes is no (CLI-08)`, async () => {
      for (const answer of ['\r', 'n\r', 'maybe\r', INTERRUPT]) {
        const { exitCode, shown } = await talk([...args], [['[y/N]', answer]])
        expect(shown).to.include(question).and.include(cli.server.baseUrl)
        expect(shown).to.match(/nothing was changed\./i)
        expect(exitCode).to.equal(1)
      }
    })
  }

  it('colours what is wrong, unless told not to', async () => {
    const coloured = await talk(['doctor'], [], { ACCOUNT_FLOWS_TOKEN: 'wrong' })
    expect(coloured.shown).to.include('\u001B[31mFAILED')
    for (const [args, env] of [
      [['doctor', '--no-color'], {}],
      [['doctor'], { NO_COLOR: '1' }],
    ] as const) {
      const { shown } = await talk([...args], [], { ACCOUNT_FLOWS_TOKEN: 'wrong', ...env })
      expect(shown).to.include('FAILED').and.not.include('\u001B')
    }
  })
})
