import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { allSettings } from '../../src/settings/table.ts'
import { suiteCli } from '../support/cli-server.ts'
import { serve, type Served } from '../support/serve.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { runCli } from '../support/cli-in-process.ts'
import { freePort } from '../support/free-port.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'

const GET = ['settings', 'get', 'password_reset_expiration']
const READER = 'x'.repeat(32)

describe('account-flows: which server, which token, and how it ends', () => {
  const reader = { token: READER, scopes: ['account-flows:read' as const] }
  const cli = suiteCli({ flows: { adminToken: [ADMIN_TOKEN, reader] } })
  const file = suiteFolder()
  before(() => writeFile(file('token'), `${ADMIN_TOKEN}\n`))

  const works = (run: { exitCode: number | null; stdout: string; stderr: string }) =>
    expect(run, run.stderr).to.include({ exitCode: 0, stdout: '1h\n' })

  describe('the URL', () => {
    it('is --url, or else ACCOUNT_FLOWS_URL; /admin/api at its end is taken off', async () => {
      const token = { ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN }
      for (const path of ['', '/', '/admin/api', '/admin/api/']) {
        const url = cli.h.baseUrl + path
        works(await runCli([...GET, '--url', url], { env: token }))
        works(await runCli(GET, { env: { ...token, ACCOUNT_FLOWS_URL: url } }))
      }
      works(await runCli(['--url', cli.h.baseUrl, ...GET], { env: token }))
    })

    it('is asked for with exit 2 where there is none', async () => {
      const { exitCode, stderr } = await runCli(GET)
      expect(exitCode).to.equal(2)
      expect(stderr).to.include('--url').and.include('ACCOUNT_FLOWS_URL')
    })

    it('that is none, or has a secret in it, is refused with exit 2, and not repeated', async () => {
      const secret = ['http://me:canary@localhost', 'http://localhost/?canary']
      for (const url of ['nonsense', 'ftp://localhost', ...secret]) {
        const run = await cli.run([...GET, '--url', url])
        expect(run, url).to.include({ exitCode: 2, stdout: '' })
        expect(run.stderr).not.to.equal('').and.not.to.include('canary')
      }
    })

    it('of another machine must be https, unless --insecure-http', async () => {
      for (const host of ['idp.invalid', '10.0.0.1', '127.0.0.1.idp.invalid', '[2001:db8::1]']) {
        const run = await cli.run([...GET, '--url', `http://${host}`])
        expect(run.exitCode, host).to.equal(2)
        expect(run.stderr).to.include('--insecure-http')
      }
      const run = await cli.run([...GET, '--url', 'http://idp.invalid', '--insecure-http'])
      expect(run.exitCode).to.equal(3)
    })

    it('of this machine may be http, however it is written', async () => {
      const port = await freePort()
      for (const host of ['LOCALHOST', '127.9.8.7', '127.1', '[0:0::1]', 'App.LocalHost']) {
        const run = await cli.run([...GET, '--url', `http://${host}:${port}`])
        expect(run.exitCode, host).to.equal(3)
      }
      const others = ['notlocalhost', '..localhost', 'localhost.idp.invalid', '[::2]', '128.0.0.1']
      for (const host of others) {
        const run = await cli.run([...GET, '--url', `http://${host}:${port}`])
        expect(run.exitCode, host).to.equal(2)
      }
    })
  })

  describe('the token', () => {
    const urlOnly = () => ({ ACCOUNT_FLOWS_URL: cli.h.baseUrl })

    it('is in a file, on stdin or in the environment', async () => {
      const env = urlOnly()
      const stdin = `${ADMIN_TOKEN}\n`
      works(await runCli([...GET, '--token-file', file('token')], { env }))
      works(await runCli([...GET, '--token-file', '-'], { env, stdin }))
      works(await runCli(GET, { env: { ...env, ACCOUNT_FLOWS_TOKEN_FILE: file('token') } }))
      works(await runCli(GET, { env: { ...env, ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN } }))
    })

    it('is asked for with exit 2 where there is none, and no terminal', async () => {
      const { exitCode, stderr } = await runCli(GET, { env: urlOnly() })
      expect(exitCode).to.equal(2)
      expect(stderr).to.include('ACCOUNT_FLOWS_TOKEN').and.include('--token-file')
    })

    it('as an argument is refused with exit 2, and not repeated', async () => {
      for (const args of [
        ['--token', 'canary', ...GET],
        [...GET, '--token', 'canary'],
        [...GET, '--token=canary'],
        ['--token=canary', '--json', ...GET],
        ['--tokencanary', ...GET],
      ]) {
        const { exitCode, stdout, stderr } = await cli.run(args)
        expect({ exitCode, stdout }, args.join(' ')).to.deep.equal({ exitCode: 2, stdout: '' })
        expect(stderr).to.include('--token-file').and.not.include('canary')
      }
    })

    it('that is wrong: exit 4, in words and as JSON', async () => {
      const env = { ACCOUNT_FLOWS_TOKEN: 'wrong-canary' }
      const { exitCode, stdout, stderr } = await cli.run(GET, { env })
      expect({ exitCode, stdout }).to.deep.equal({ exitCode: 4, stdout: '' })
      expect(stderr).not.to.equal('').and.not.to.include('canary')
      const asJson = await cli.run([...GET, '--json'], { env })
      expect(JSON.parse(asJson.stderr).error).to.include({ status: 401 })
    })

    it('that lacks a scope: exit 4, and one sentence that names the scope (ADM-15)', async () => {
      const env = { ACCOUNT_FLOWS_TOKEN: READER }
      const before = await cli.settings()
      const args = ['settings', 'unset', 'smtp_host']
      const { exitCode, stdout, stderr } = await cli.run(args, { env })
      expect({ exitCode, stdout }).to.deep.equal({ exitCode: 4, stdout: '' })
      expect(stderr).to.equal('This token lacks the scope account-flows:settings.\n')
      const asJson = await cli.run([...args, '--json'], { env })
      expect(JSON.parse(asJson.stderr).error).to.include({ status: 403, code: 'forbidden' })
      expect(await cli.settings()).to.deep.equal(before)
      works(await cli.run(GET, { env }))
    })

    it('that no header can carry is refused with exit 2, and not repeated', async () => {
      for (const token of ['canary canary', 'cänary']) {
        const run = await cli.run(GET, { env: { ACCOUNT_FLOWS_TOKEN: token } })
        expect(run.exitCode).to.equal(2)
        expect(run.stderr).not.to.include('nary')
      }
    })
  })

  describe('a server that is not there, or is none: exit 3', () => {
    let other: Served
    let status = 200

    before(async () => {
      other = await serve((_, response) => {
        response.writeHead(status, { 'content-type': 'text/html', location: '/elsewhere' })
        response.end('<title>Something else</title>')
      })
    })
    after(() => other.close())

    it('where nothing listens (CLI-04)', async () => {
      const args = [...GET, '--url', `http://127.0.0.1:${await freePort()}`]
      const { exitCode, stdout, stderr } = await cli.run(args)
      expect({ exitCode, stdout }).to.deep.equal({ exitCode: 3, stdout: '' })
      expect(stderr).to.include('ECONNREFUSED').and.not.include('    at ')
      const asJson = await cli.run([...args, '--json'])
      expect(JSON.parse(asJson.stderr).error).to.include({ code: 'unreachable' })
    })

    for (const answer of [200, 302, 401, 404, 500, 503]) {
      it(`where a web page is answered with ${answer}`, async () => {
        status = answer
        const run = await cli.run([...GET, '--url', other.url])
        expect(run).to.include({ exitCode: 3, stdout: '' })
        expect(run.stderr).to.include('but it is not an admin API')
      })
    }

    it('where TLS is not spoken', async () => {
      const url = other.url.replace('http:', 'https:')
      expect((await cli.run([...GET, '--url', url])).exitCode).to.equal(3)
    })
  })

  describe('a call that is none: exit 2', () => {
    for (const [args, said] of [
      [['settings', 'gte'], 'get'],
      [['setting', 'get'], 'settings'],
      [['settings', 'get', '--jsn'], '--json'],
      [['settings', 'get', 'a', 'b'], 'too many arguments'],
      [['settings', 'unset'], 'missing required argument'],
      [['mail', 'test'], '--to'],
      [['mail', 'preview', '--template', 'none'], 'password-reset'],
      [['user', 'status'], '--id'],
      [['user', 'status', 'alice', '--id', '1'], '--id'],
      [['user', 'send-reset', 'alice', '--wait', 'x'], 'whole number'],
      [['outbox', 'retry'], '--all-dead'],
      [['outbox', 'purge', '1', '--all-dead'], '--all-dead'],
      [['outbox', 'purge', '--all-dead'], '--yes'],
      [['outbox', 'retry', '--all-dead'], '--yes'],
      [['user', 'end-sessions', 'alice'], '--yes'],
      [['user', 'forget', '1'], '--yes'],
      [['user', 'forget', '--yes'], 'missing required argument'],
      [['link', 'explain'], 'stdin'],
      [['audit', 'tail', '-n', '-1'], 'whole number'],
      [['audit', 'tail', '--type', 'password_reset_complete'], 'password_reset_completed'],
      [['settings', 'set', '--from-stdin', 'smtp_host', '--token-file', '-'], 'stdin'],
    ] as const) {
      it(args.join(' '), async () => {
        const { exitCode, stdout, stderr } = await cli.run([...args], { stdin: 'x' })
        expect({ exitCode, stdout }).to.deep.equal({ exitCode: 2, stdout: '' })
        expect(stderr).to.include(said)
        const asJson = await cli.run([...args, '--json'], { stdin: 'x' })
        expect(asJson).to.include({ exitCode: 2, stdout: '' })
        expect(JSON.parse(asJson.stderr).error).to.include({ code: 'usage' })
      })
    }

    for (const args of [
      ['-tcanary', ...GET],
      [...GET, '-tcanary'],
      [...GET, '--tokne-canary'],
      [...GET, '--tokne=canary'],
      ['canary'],
      ['settings', 'canary'],
      ['user', 'send-reset', 'alice', '--wait', 'canary'],
      ['audit', 'tail', '-ncanary'],
      ['mail', 'preview', '--template', "canary' is invalid"],
    ]) {
      it(`${args.join(' ')}: what may be a secret is not repeated`, async () => {
        for (const call of [args, [...args, '--json']]) {
          const { exitCode, stdout, stderr } = await cli.run(call)
          expect({ exitCode, stdout }).to.deep.equal({ exitCode: 2, stdout: '' })
          expect(stderr).not.to.equal('').and.not.to.include('canary')
        }
      })
    }

    it('with what is not UTF-8, as a file is refused and stdin', async () => {
      const before = await cli.settings()
      const call = ['settings', 'set', '--from-env', 'smtp_password=PW']
      for (const [args, env] of [
        [['user', 'status', 'al\uFFFD'], {}],
        [call, { PW: 'canary\uFFFD' }],
        [GET, { ACCOUNT_FLOWS_TOKEN: 'canary\uFFFD' }],
        [GET, { ACCOUNT_FLOWS_URL: `${cli.h.baseUrl}/\uFFFD` }],
      ] as const) {
        const { exitCode, stderr } = await cli.run([...args], { env })
        expect(exitCode, stderr).to.equal(2)
        expect(stderr).to.include('UTF-8').and.not.include('canary')
      }
      expect(await cli.settings()).to.deep.equal(before)
      works(await cli.run(GET))
    })

    it('nothing at all, or a group without a command, shows the help on stderr', async () => {
      for (const args of [[], ['settings'], ['user']]) {
        const { exitCode, stdout, stderr } = await cli.run(args)
        expect({ exitCode, stdout }).to.deep.equal({ exitCode: 2, stdout: '' })
        expect(stderr).to.include('Usage: account-flows')
      }
    })
  })

  describe('help', () => {
    const commands = {
      settings: ['get', 'list', 'set', 'unset', 'history', 'rollback'],
      mail: ['test', 'preview'],
      user: ['status', 'send-reset', 'send-verification', 'end-sessions', 'forget'],
      link: ['explain'],
      audit: ['tail'],
      outbox: ['list', 'show', 'retry', 'purge'],
      keys: ['rotate'],
      completion: [],
    }
    it('of the program and of each command has an example, and needs no server', async () => {
      const inGroups = Object.entries(commands).flatMap(([group, names]) =>
        names.map((name) => [group, name]),
      )
      for (const command of [[], ['doctor'], ...inGroups]) {
        const { exitCode, stdout, stderr } = await runCli([...command, '--help'])
        const what = ['account-flows', ...command].join(' ')
        expect({ exitCode, stderr }, what).to.deep.equal({ exitCode: 0, stderr: '' })
        expect(stdout).to.include(`Usage: ${what}`)
        expect(stdout, what).to.match(/^Example:\n {2}\$ account-flows /m)
      }
    })

    it('of settings set tells every setting', async () => {
      const { stdout } = await runCli(['settings', 'set', '--help'])
      const rows = await cli.json(['settings', 'list'])
      for (const { name, meaning, expected } of rows) {
        expect(stdout).to.include(name).and.include(meaning).and.include(expected)
      }
    })

    it('has one spelling, and any other way says so: exit 2', async () => {
      for (const args of [
        ['help'],
        ['settings', 'help'],
        ['help', 'settings'],
        ['settings', 'apply', 'help'],
      ]) {
        expect(await runCli(args)).to.deep.equal({
          exitCode: 2,
          stdout: '',
          stderr: 'There is no such command: see --help.\n',
        })
      }
    })

    for (const shell of ['bash', 'zsh', 'fish']) {
      it(`of ${shell} is a script with every command, option and setting, which needs no server`, async () => {
        const { exitCode, stdout, stderr } = await runCli(['completion', shell])
        expect({ exitCode, stderr }).to.deep.equal({ exitCode: 0, stderr: '' })
        const paths = Object.entries(commands).flatMap(([group, names]) => [
          group,
          ...names.map((name) => `${group} ${name}`),
        ])
        const settings = allSettings.map(({ name }) => name)
        const words = ['doctor', '--all-dead', '--json', 'other_browser', 'smtp_tls=starttls']
        for (const each of [...paths, ...settings, ...words]) expect(stdout).to.include(each)
      })
    }

    it('tells the exit codes', async () => {
      const { stdout } = await runCli(['--help'])
      expect(stdout).to.match(/Exit codes:\n( {2}[0-4] {2}.*\n){5}/)
    })

    it('--version is that of the package', async () => {
      const { stdout } = await runCli(['--version'])
      const { default: manifest } = await import('../../package.json', { with: { type: 'json' } })
      expect(stdout).to.equal(`${manifest.version}\n`)
    })
  })

  it('colours nothing where no terminal is', async () => {
    const { stdout } = await cli.run(['doctor'])
    expect(stdout).to.match(/^ok /).and.not.include('\u001B')
  })
})
