import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { runInShell, startCliProcess } from '../support/cli.ts'
import { suiteCli } from '../support/cli-server.ts'
import { eventually } from '../support/eventually.ts'

describe('account-flows as a process of its own, compiled', () => {
  const cli = suiteCli()

  it('takes the token on stdin, and what it answers is on stdout', async () => {
    const { ACCOUNT_FLOWS_TOKEN: token = '', ...env } = cli.env
    const { process, exited, stdout, stderr } = startCliProcess(
      ['settings', 'get', 'password_reset_expiration', '--token-file', '-'],
      env,
    )
    process.stdin?.end(`${token}\n`)
    expect(await exited, stderr()).to.equal(0)
    expect([stdout(), stderr()]).to.deep.equal(['1h\n', ''])
  })

  it('refuses an argument that is not UTF-8: exit 2', async () => {
    const { exitCode, stderr } = await runInShell(
      '"$@" user status "$(printf \'al\\351\')"',
      cli.env,
    )
    expect(exitCode, stderr).to.equal(2)
    expect(stderr).to.include('UTF-8')
  })

  it('ends quietly where nobody reads on', async () => {
    const { process, exited, stderr } = startCliProcess(['settings', 'list'], cli.env)
    process.stdout?.destroy()
    expect(await exited).to.equal(0)
    expect(stderr()).to.equal('')
  })

  for (const [call, code, end] of [
    ['settings set smtp_port=0', 1, 'stdout'],
    ['settings get --url http://127.0.0.1:1', 3, 'stderr'],
    ['doctor --url http://127.0.0.1:1', 3, 'stdout'],
  ] as const) {
    it(`exits with ${code} where nobody reads ${end}: ${call}`, async () => {
      const { process, exited } = startCliProcess(call.split(' '), cli.env)
      process[end]?.destroy()
      expect(await exited).to.equal(code)
    })
  }

  it('says so where the answer cannot be written: exit 1', async function () {
    if (!existsSync('/dev/full')) this.skip()
    for (const call of ['settings list', '--help']) {
      const { exitCode, stderr } = await runInShell(`"$@" ${call} >/dev/full`, cli.env)
      expect(exitCode, call).to.equal(1)
      expect(stderr).to.match(/^[^\n]+ENOSPC[^\n]+\n$/)
    }
  })

  it('audit tail --follow ends with Ctrl-C: exit 0', async () => {
    await cli.h.put({ mails_per_minute: '601' })
    const { process, exited, stdout } = startCliProcess(['audit', 'tail', '-f'], cli.env)
    await eventually('an event', () => stdout().includes('settings_changed'))
    process.kill('SIGINT')
    expect(await exited).to.equal(0)
  })
})
