import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect, type AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:tls'
import { expect } from 'chai'
import { linkKinds, MAIL_KINDS } from '../../src/contract/mail-kinds.ts'
import { allSettings } from '../../src/settings/table.ts'
import { newCertificate } from '../support/certificates.ts'
import {
  expectSaid,
  runCli,
  runInShell,
  startCliProcess,
  suiteCli,
  type CliRun,
} from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { suiteServed } from '../support/serve.ts'
import { suiteFolder } from '../support/folders.ts'

const GET = ['settings', 'get', 'password_reset_expiration']
const DAY_MS = 86_400_000
/** Of this machine, where nothing listens. */
const DEAF_PORT = 1

describe('account-flows: which server, which token, and how it ends', () => {
  const READER = 'x'.repeat(32)
  const reader = { token: READER, scopes: ['account-flows:read' as const] }
  const cli = suiteCli({ flows: { adminToken: [ADMIN_TOKEN, reader] } })
  const file = suiteFolder()
  before(() => writeFile(file('token'), `${ADMIN_TOKEN}\n`))

  const works = (run: CliRun) => expect(run, run.stderr).to.include({ exitCode: 0, stdout: '1h\n' })

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
  })

  describe('the path', () => {
    it('is --admin-path, or else ACCOUNT_FLOWS_ADMIN_PATH; one that leads to another host is refused with exit 2, and nothing is sent', async () => {
      const { env, requests } = await cli.door()
      const { host } = new URL(env.ACCOUNT_FLOWS_URL)
      for (const path of [`@${host}/canary`, 'canary', '/canary/']) {
        const said = await cli.refused([...GET, '--admin-path', path], 2)
        expect(said).to.include('must start with /')
        await cli.refused(GET, 2, { env: { ACCOUNT_FLOWS_ADMIN_PATH: path } })
      }
      expect(requests).to.deep.equal([])
      works(await cli.run([...GET, '--admin-path', '/admin/api'], { env }))
      works(await cli.run(GET, { env: { ...env, ACCOUNT_FLOWS_ADMIN_PATH: '/admin/api' } }))
      expect(requests).to.have.length(2)
    })
  })

  describe('the token', () => {
    const withToken = (token: string) => ({ env: { ACCOUNT_FLOWS_TOKEN: token } })

    it('is in a file, on stdin or in the environment', async () => {
      const env = { ACCOUNT_FLOWS_URL: cli.h.baseUrl }
      const stdin = `${ADMIN_TOKEN}\n`
      works(await runCli([...GET, '--token-file', file('token')], { env }))
      works(await runCli([...GET, '--token-file', '-'], { env, stdin }))
      works(await runCli(GET, { env: { ...env, ACCOUNT_FLOWS_TOKEN_FILE: file('token') } }))
      works(await runCli(GET, { env: { ...env, ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN } }))
    })

    it('and the URL are asked for with exit 2 where there is none, and no terminal', async () => {
      const url = { ACCOUNT_FLOWS_URL: cli.h.baseUrl }
      for (const [env, ...ways] of [
        [{}, '--url', 'ACCOUNT_FLOWS_URL'],
        [url, '--token-file', 'ACCOUNT_FLOWS_TOKEN'],
      ] as const) {
        const { exitCode, stderr } = await runCli(GET, { env })
        expect(exitCode).to.equal(2)
        expectSaid(stderr, ...ways)
      }
    })

    it('that is wrong, or lacks a scope, which one sentence names: exit 4, in words and as JSON (ADM-15)', async () => {
      const wrong = withToken('wrong-canary')
      const question =
        'The server does not accept this token. Is it the admin token of this server, and has it not expired?'
      expect(await cli.refused(GET, 4, wrong)).to.equal(`${question}\n`)
      const asJson = JSON.parse(await cli.refused([...GET, '--json'], 4, wrong))
      expect(asJson.error).to.include({ status: 401 })
      const { stdout } = await cli.ended(['doctor'], 4, wrong)
      expectSaid(stdout, /^FAILED +token: /m, question, /^Not ready: the server does not accept/m)

      const before = await cli.settings()
      const args = ['settings', 'unset', 'smtp_host']
      const title = 'This token lacks the scope account-flows:settings.'
      expect(await cli.refused(args, 4, withToken(READER))).to.equal(`${title}\n`)
      const { error } = JSON.parse(await cli.refused([...args, '--json'], 4, withToken(READER)))
      expect(error).to.include({ status: 403, code: 'forbidden' })
      expect(await cli.settings()).to.deep.equal(before)
      works(await cli.run(GET, withToken(READER)))
    })
  })

  describe('a server that is not there, or is none: exit 3', () => {
    let answer: [status: number, headers: Record<string, string>] | undefined
    const other = suiteServed((_, response) => {
      if (answer) response.writeHead(...answer).end('<title>Something else</title>')
    })

    it('where nothing listens (CLI-04)', async () => {
      const args = [...GET, '--url', `http://127.0.0.1:${DEAF_PORT}`]
      expect(await cli.refused(args, 3))
        .to.include('ECONNREFUSED')
        .and.not.include('    at ')
      const { error } = JSON.parse(await cli.refused([...args, '--json'], 3))
      expect(error).to.include({ code: 'unreachable' })
    })

    for (const status of [200, 302, 401, 404, 500, 503]) {
      it(`where a web page is answered with ${status}`, async () => {
        answer = [status, { 'content-type': 'text/html', location: '/elsewhere' }]
        const said = await cli.refused([...GET, '--url', other.url], 3)
        expect(said).to.include('but it is not an admin API')
      })
    }

    it('where TLS is not spoken', () =>
      cli.refused([...GET, '--url', other.url.replace('http:', 'https:')], 3))

    it('where nothing is answered by the end of --timeout', async () => {
      answer = undefined
      const said = await cli.refused([...GET, '--url', other.url, '--timeout', '1'], 3)
      expect(said).to.include('it did not answer in time')
      await cli.refused([...GET, '--timeout', '0'], 2)
      works(await cli.run([...GET, '--timeout', '60']))
    })
  })

  describe('a call that is none: exit 2, and what may be a secret is not repeated:', () => {
    const get = GET.join(' ')
    const calls: [call: string, said?: string, token?: string][] = [
      [`${get} --url nonsense`],
      [`${get} --url ftp://localhost`],
      [`${get} --url http://me:canary@localhost`],
      [`${get} --url http://localhost/?canary`],
      [`${get} --url http://idp.invalid`, '--insecure-http'],
      [`${get} --url http://10.0.0.1`, '--insecure-http'],
      [`${get} --url http://127.0.0.1.idp.invalid`, '--insecure-http'],
      [`${get} --url http://[2001:db8::1]`, '--insecure-http'],
      [`${get} --url http://notlocalhost`, '--insecure-http'],
      [`${get} --url http://..localhost`, '--insecure-http'],
      [`${get} --url http://localhost.idp.invalid`, '--insecure-http'],
      [`${get} --url http://[::2]`, '--insecure-http'],
      [`${get} --url http://128.0.0.1`, '--insecure-http'],
      [`--token canary ${get}`, '--token-file'],
      [`${get} --token canary`, '--token-file'],
      [`${get} --token=canary`, '--token-file'],
      [`--token=canary --json ${get}`, '--token-file'],
      [`--tokencanary ${get}`, '--token-file'],
      // No header can carry it.
      [get, 'ASCII', 'canary canary'],
      [get, 'ASCII', 'cänary'],
      [`-tcanary ${get}`],
      [`${get} -tcanary`],
      [`${get} --tokne-canary`],
      [`${get} --tokne=canary`],
      ['canary'],
      ['settings canary'],
      ['settings apply canary'],
      ['user send-reset alice --wait canary'],
      ['audit tail -ncanary'],
      ["mail preview --template canary' is invalid"],
      ['settings gte', 'get'],
      ['setting get', 'settings'],
      ['settings get --jsn', '--json'],
      ['settings get a b', 'too many arguments'],
      ['settings unset', 'missing required argument'],
      ['mail test', '--to'],
      ['mail preview --template none', 'password-reset'],
      ['usr status ann', 'Did you mean user?'],
      ['user statsu ann', 'Did you mean status?'],
      ['user status', '--id'],
      ['user status alice --id 1', '--id'],
      ['user send-reset alice --wait x', 'whole number'],
      ['outbox list --stat dead', 'Did you mean --state?'],
      ['user unverify bob --yess', 'Did you mean --yes?'],
      ['user unverify bob --canary', 'There is no such option: see --help.'],
      ['outbox retry', '--all-dead'],
      ['outbox purge 1 --all-dead', '--all-dead'],
      ['outbox purge --all-dead', '--yes'],
      ['outbox retry --all-dead', '--yes'],
      ['user end-sessions alice', '--yes'],
      ['user forget 1', '--yes'],
      ['user forget --yes', 'missing required argument'],
      ['link explain', 'stdin'],
      ['audit tail -n -1', 'whole number'],
      ['audit tail --type password_reset_complete', 'password_reset_completed'],
      ['settings set --from-stdin smtp_host --token-file -', 'stdin'],
    ]
    for (const [call, said = '', token = ADMIN_TOKEN] of calls) {
      it(token === ADMIN_TOKEN ? call : `${call}, with the token ${token}`, async () => {
        const more = { stdin: 'x', env: { ACCOUNT_FLOWS_TOKEN: token } }
        const words = await cli.refused(call.split(' '), 2, more)
        const asJson = await cli.refused([...call.split(' '), '--json'], 2, more)
        if (!call.includes('--json')) expect(JSON.parse(asJson).error).to.include({ code: 'usage' })
        for (const text of [words, asJson]) expect(text).to.include(said).and.not.include('nary')
      })
    }

    it('but http is taken to this machine, however it is written, and to another with --insecure-http', async () => {
      const own = ['LOCALHOST', '127.9.8.7', '127.1', '[0:0::1]', 'App.LocalHost']
      for (const host of own) await cli.refused([...GET, '--url', `http://${host}:${DEAF_PORT}`], 3)
      await cli.refused([...GET, '--url', 'http://idp.invalid', '--insecure-http'], 3)
    })

    it('the name of a setting that is none is guessed, with exit 1, and not what was typed for it', async () => {
      const before = await cli.settings()
      for (const [args, meant] of [
        [['set', 'smtp_hst=canary'], 'smtp_host'],
        [['unset', 'resendcooldwn'], 'resend_cooldown'],
        [['get', 'smtp_prt'], 'smtp_port'],
      ] as const) {
        const said = await cli.refused(['settings', ...args], 1)
        expect(said).to.include(`Did you mean ${meant}?`)
      }
      expect(await cli.refused(['settings', 'get', 'nothing_like_it'], 1)).to.not.include('mean')
      expect(await cli.settings()).to.deep.equal(before)
    })

    it('with what is not UTF-8, as a file is refused and stdin', async () => {
      const before = await cli.settings()
      const call = ['settings', 'set', '--from-env', 'smtp_password=PW']
      for (const [args, env] of [
        [['user', 'status', 'al\uFFFD'], {}],
        [call, { PW: 'canary\uFFFD' }],
        [GET, { ACCOUNT_FLOWS_TOKEN: 'canary\uFFFD' }],
        [GET, { ACCOUNT_FLOWS_URL: `${cli.h.baseUrl}/\uFFFD` }],
      ] as const) {
        expect(await cli.refused(args, 2, { env })).to.include('UTF-8')
      }
      expect(await cli.settings()).to.deep.equal(before)
      works(await cli.run(GET))
    })

    it('nothing at all, or a group without a command, shows the help on stderr', async () => {
      for (const args of [[], ['settings'], ['settings', 'apply'], ['user']])
        expect(await cli.refused(args, 2)).to.include('Usage: account-flows')
    })
  })

  describe('help', () => {
    const commands = {
      settings: ['get', 'list', 'set', 'unset', 'history', 'rollback'],
      mail: ['test', 'preview'],
      user: [
        'status',
        'send-reset',
        'invite',
        'send-verification',
        'verify',
        'unverify',
        'email-changed',
        'end-sessions',
        'forget',
      ],
      link: ['explain'],
      audit: ['tail'],
      outbox: ['list', 'show', 'retry', 'purge'],
      keys: ['rotate'],
    }
    const paths = Object.entries(commands).flatMap(([group, names]) =>
      names.map((name) => `${group} ${name}`),
    )

    /** Without any server. */
    async function shown(line: string) {
      const { exitCode, stdout, stderr } = await runCli(line.split(' '))
      expect({ exitCode, stderr }, line).to.deep.equal({ exitCode: 0, stderr: '' })
      return stdout
    }

    it('of the program and of each command has an example, and needs no server', async () => {
      for (const command of ['', 'doctor ', ...paths.map((path) => `${path} `)]) {
        const help = await shown(`${command}--help`)
        expect(help).to.include(`Usage: account-flows ${command}`)
        expect(help).to.match(/^Example:\n {2}\$ account-flows /m)
      }
      const ofLinks = linkKinds.map((kind) => MAIL_KINDS[kind].link.command)
      expect(paths).to.include.members(ofLinks)
      const help = await shown('--help')
      expect(help).to.match(/Exit codes:\n( {2}[0-4] {2}.*\n){5}/)
      expectSaid(help, /^ {2}3 {2}.*\(503\)$/m, /^ {2}4 {2}.*missing scope/m)
    })

    it('of a command has its own options and examples, and one line leads to all the rest', async () => {
      const lines = (await shown('user send-reset --help')).split('\n')
      const options = lines
        .filter((line) => /^ +-/.test(line))
        .map((line) => line.trim().split(' ')[0])
      expect(options).to.deep.equal(['--id', '--wait', '--yes', '-h,'])
      const [last] = lines.filter(Boolean).slice(-1)
      expect(last).to.equal('General options, and all commands: account-flows --help')
      expectSaid(await shown('--help'), '--token-file', '--json', '--timeout')
    })

    it('of each command that changes something has --yes, and of no other', async () => {
      const changing = {
        settings: ['set', 'unset', 'apply recommended', 'rollback'],
        user: [
          'send-reset',
          'invite',
          'send-verification',
          'verify',
          'email-changed',
          'end-sessions',
          'forget',
        ],
        outbox: ['retry', 'purge'],
        keys: ['rotate'],
      }
      for (const [group, names] of Object.entries(changing))
        for (const name of names) expect(await shown(`${group} ${name} --help`)).to.include('--yes')
      for (const line of ['settings list', 'user status', 'outbox list', 'mail test', 'doctor'])
        expect(await shown(`${line} --help`)).to.not.include('--yes')
    })

    it('of settings set tells every setting', async () => {
      const text = await shown('settings set --help')
      for (const { name, meaning, expected } of await cli.json(['settings', 'list']))
        expect(text).to.include(name).and.include(meaning).and.include(expected)
    })

    it('has one spelling, and any other way says so: exit 2', async () => {
      for (const line of ['help', 'settings help', 'help settings', 'settings apply help']) {
        const stderr = 'There is no such command: see --help.\n'
        expect(await runCli(line.split(' '))).to.deep.equal({ exitCode: 2, stdout: '', stderr })
      }
    })

    for (const shell of ['bash', 'zsh', 'fish']) {
      it(`of ${shell} is a script with every command, option and setting, which needs no server`, async () => {
        const script = await shown(`completion ${shell}`)
        const settings = allSettings.map(({ name }) => name)
        const words = ['doctor', 'completion', '--all-dead', '--json', 'smtp_tls=starttls']
        for (const each of [...paths, ...settings, ...words, 'other_browser'])
          expect(script).to.include(each)
      })
    }

    it('--version is that of the package', async () => {
      const { default: manifest } = await import('../../package.json', { with: { type: 'json' } })
      for (const line of ['--version', 'settings get --version'])
        expect(await shown(line)).to.equal(`${manifest.version}\n`)
    })
  })
})

describe('account-flows as a process of its own, compiled', () => {
  const cli = suiteCli()

  it('takes the token on stdin, and what it answers is on stdout', async () => {
    const { ACCOUNT_FLOWS_TOKEN: token = '', ...env } = cli.env
    const started = startCliProcess([...GET, '--token-file', '-'], env)
    started.process.stdin.end(`${token}\n`)
    expect(await started.exited, started.stderr()).to.equal(0)
    expect([started.stdout(), started.stderr()]).to.deep.equal(['1h\n', ''])
  })

  it('refuses an argument that is not UTF-8: exit 2', async () => {
    const line = '"$@" user status "$(printf \'al\\351\')"'
    const { exitCode, stderr } = await runInShell(line, cli.env)
    expect(exitCode, stderr).to.equal(2)
    expect(stderr).to.include('UTF-8')
  })

  for (const [call, code, end] of [
    ['settings list', 0, 'stdout'],
    ['settings set smtp_port=0', 1, 'stdout'],
    ['settings get --url http://127.0.0.1:1', 3, 'stderr'],
    ['doctor --url http://127.0.0.1:1', 3, 'stdout'],
  ] as const) {
    it(`exits with ${code} where nobody reads ${end}: ${call}`, async () => {
      const { process, exited, stderr } = startCliProcess(call.split(' '), cli.env)
      process[end].destroy()
      expect(await exited).to.equal(code)
      if (code === 0) expect(stderr()).to.equal('')
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

describe('account-flows and the certificate of the server [full]', () => {
  const authority = newCertificate({})
  const cli = suiteCli()
  const file = suiteFolder()
  const servers: Server[] = []

  before(() => writeFile(file('authority.pem'), authority.cert))
  after(() => servers.forEach((server) => server.close()))

  /** The same service, behind TLS with such a certificate. */
  async function behind(wish: Parameters<typeof newCertificate>[0]): Promise<string> {
    const server = createServer(newCertificate(wish), (socket) => {
      const onward = connect(Number(new URL(cli.h.baseUrl).port), '127.0.0.1')
      for (const [from, to] of [
        [socket, onward],
        [onward, socket],
      ] as const)
        from.on('error', () => to.destroy()).pipe(to)
    })
    servers.push(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** `NODE_EXTRA_CA_CERTS` is read as a process starts. */
  async function doctorWithAuthority(url: string) {
    const env = { ...cli.env, NODE_EXTRA_CA_CERTS: file('authority.pem') }
    const { exited, stdout } = startCliProcess(['doctor', '--url', url], env)
    return { exitCode: await exited, stdout: stdout() }
  }

  const names = ['127.0.0.1']
  const past = {
    validFrom: new Date(Date.now() - 2 * DAY_MS),
    validUntil: new Date(Date.now() - DAY_MS),
  }

  it('of an authority that NODE_EXTRA_CA_CERTS names is trusted', async () => {
    const url = await behind({ names, signer: authority })
    const { exitCode, stdout } = await doctorWithAuthority(url)
    expect(exitCode, stdout).to.equal(0)
    expectSaid(stdout, /^ok +server_tls: /m, /^ok +token: /m)
  })

  for (const [what, isOfAuthority, wish, reason] of [
    ['for another host name', true, { names: ['idp.example'] }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['that has expired', true, { names, ...past }, 'CERT_HAS_EXPIRED'],
    ['of an unknown authority', false, { names }, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['that signed itself', undefined, { names }, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ] as const) {
    it(`${what} is refused with exit 3, and doctor tells what to do`, async () => {
      const signer = isOfAuthority === undefined ? {} : { signer: authority }
      const url = await behind({ ...wish, names: [...wish.names], ...signer })
      const { exitCode, stdout } = isOfAuthority
        ? await doctorWithAuthority(url)
        : await cli.run(['doctor', '--url', url])
      expect(exitCode).to.equal(3)
      const [, message = '', advice = ''] = /^FAILED +server_tls: (.*)\n +(.*)$/m.exec(stdout) ?? []
      expect(message).to.include(reason)
      expect(advice).to.match(/\w/).and.not.equal('Check that this is an https port.')
      if (!isOfAuthority) expect(await cli.refused([...GET, '--url', url], 3)).to.include(reason)
    })
  }
})
