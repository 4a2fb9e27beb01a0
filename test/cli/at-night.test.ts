import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net'
import { expect } from 'chai'
import { outcomeOf } from '../support/admin.ts'
import { startCli } from '../support/cli-in-process.ts'
import { suiteCli } from '../support/cli-server.ts'
import { freePort } from '../support/free-port.ts'
import { tokenOf } from '../support/observe.ts'

describe('account-flows at three in the morning', () => {
  const cli = suiteCli()

  async function sentMail(username: string) {
    const { id, email = '' } = await cli.h.addUser({ username })
    const { mail_id: mailId } = await cli.json(['user', 'send-reset', username, '--wait', '0'])
    await outcomeOf(cli.h, mailId, 'sent')
    return { id, mailId, received: await cli.h.mail.mailTo(email) }
  }

  it('outbox show tells what a mail that left is known by, and never its token', async () => {
    const { id, mailId, received } = await sentMail('ann')
    const { stdout } = await cli.done(['outbox', 'show', mailId])
    expect(stdout)
      .to.match(/^Sent at /)
      .and.include(received.mail.messageId ?? 'none')
      .and.match(/^queue id +4F\d+Qx$/m)
      .and.match(/^History\n.* password_reset_requested [^]* password_reset_mail_sent /m)
      .and.not.include(tokenOf(received.link))
    const json = await cli.json(['outbox', 'show', mailId])
    expect(json).to.include({ state: 'sent', message_id: received.mail.messageId })
    expect(json.history).to.have.length(2)
    expect(json.history[0]).to.include({ account_id: id, username: 'ann' })
  })

  it('outbox show tells of a dead letter why, whose it is and what was tried', async () => {
    const { id } = await cli.h.addUser({ username: 'off', disabled: true })
    const { mail_id: mailId } = await cli.json(['user', 'send-reset', 'off', '--wait', '0'])
    await outcomeOf(cli.h, mailId, 'dead')
    const { stdout } = await cli.done(['outbox', 'show', mailId])
    expect(stdout)
      .to.match(/^Not sent, and there will be no other attempt/)
      .and.match(/^Reason: disabled: /m)
      .and.include(`off (${id})`)
    const unknown = await cli.run(['outbox', 'show', 'no-such-mail'])
    expect(unknown).to.include({ exitCode: 1 })
    expect(unknown.stdout).to.match(/^There is no record of the mail/)
  })

  it('--since takes how long ago, or a time, and refuses what is neither: exit 2', async () => {
    const { id } = await sentMail('eve')
    const audit = async (since: string) =>
      (await cli.json(['audit', 'tail', '--account', id, '--since', since])).events.length
    const all = (await cli.json(['audit', 'tail', '--account', id])).events
    expect(all.length).to.be.greaterThan(1)
    expect(await audit('1h')).to.equal(all.length)
    expect(await audit(all.at(-1).recorded_at)).to.be.within(1, all.length)
    expect(await audit('2099-01-01')).to.equal(0)
    expect(await audit('2099-01-01 08:12:04 UTC')).to.equal(0)
    const mails = async (since: string) =>
      (await cli.json(['outbox', 'list', '--since', since])).mails.length
    expect(await mails('1h')).to.equal((await cli.json(['outbox', 'list'])).mails.length)
    expect(await mails('2099-01-01T00:00:00Z')).to.equal(0)
    for (const wrong of [
      'yesterday',
      '2',
      '-2h',
      '2026-02-31T',
      '2026-02-31',
      '2025-02-29T08:00:00Z',
      '',
    ])
      for (const list of [
        ['audit', 'tail'],
        ['outbox', 'list'],
      ])
        expect((await cli.run([...list, `--since=${wrong}`])).exitCode, wrong).to.equal(2)
  })

  it('"did you mean": commands, options and settings, and nothing that was typed is repeated', async () => {
    const mistyped: [args: string[], exitCode: number, meant: RegExp][] = [
      [['usr', 'status', 'ann'], 2, /Did you mean user\?/],
      [['user', 'statsu', 'ann'], 2, /Did you mean status\?/],
      [['outbox', 'list', '--stat', 'dead'], 2, /Did you mean --state\?/],
      [['settings', 'set', 'smtp_hst=canary'], 1, /Did you mean smtp_host\?/],
      [['settings', 'unset', 'resendcooldwn'], 1, /Did you mean resend_cooldown\?/],
      [['settings', 'get', 'smtp_prt'], 1, /Did you mean smtp_port\?/],
    ]
    const before = await cli.settings()
    for (const [args, exitCode, meant] of mistyped) {
      const ran = await cli.run(args)
      expect(ran.exitCode, args.join(' ')).to.equal(exitCode)
      expect(ran.stderr).to.match(meant).and.not.include('canary')
    }
    expect((await cli.run(['settings', 'get', 'nothing_like_it'])).stderr).to.not.include('mean')
    expect(await cli.settings()).to.deep.equal(before)
  })

  it('--timeout ends the wait for a server that never answers: exit 3', async () => {
    const port = await freePort()
    const silent = createServer(() => {}).listen(port, '127.0.0.1')
    const url = `http://127.0.0.1:${port}`
    const ran = await cli.run(['--url', url, '--timeout', '1', 'settings', 'list'])
    expect(ran.exitCode).to.equal(3)
    expect(ran.stderr).to.include('it did not answer in time')
    silent.closeAllConnections()
    silent.close()
    expect((await cli.run(['--timeout', '0', 'settings', 'list'])).exitCode).to.equal(2)
    await cli.done(['--timeout', '60', 'settings', 'list'])
  })

  it('user status fits a terminal of 80 columns, but for words that are longer', async () => {
    await sentMail('wide')
    const terminal = startCli(['user', 'status', 'wide', '--no-color'], cli.env, true)
    expect(await terminal.exited).to.equal(0)
    const lines = terminal.stdout().split('\n')
    expect(lines[0]).to.match(/^The last reset link was sent at /)
    const long = lines.filter((line) => line.length > 80 && /\S\s+\S/.test(line))
    expect(long).to.deep.equal([])
    expect(terminal.stdout().replaceAll(/\s+/g, ' ')).to.include(
      'The operator of the mail server finds it by',
    )
  })

  it('mail test --set tries what is not stored, and stores nothing', async () => {
    const { settings, h } = cli
    const before = await settings()
    const test = ['mail', 'test', '--to', 'me@example.com']
    const port = String(await freePort())
    const down = await cli.run([...test, '--set', `smtp_port=${port}`])
    expect(down.exitCode).to.equal(1)
    expect(down.stdout).to.match(/^FAILED +connect: /m)
    const from = 'other@example.com'
    await cli.done([...test, '--set', `smtp_from=${from}`, '--set', 'smtp_from_name=Other'])
    expect((await h.mail.mailTo('me@example.com')).mail.from?.text).to.equal(`"Other" <${from}>`)
    const wrong = await cli.run([...test, '--set', 'smtp_port=many'])
    expect(wrong.exitCode).to.equal(1)
    expect(wrong.stderr).to.match(/^Nothing was sent: .*\nsmtp_port: expected /)
    const secret = await cli.run([...test, '--set', 'smtp_password=canary'])
    expect(secret.exitCode).to.equal(2)
    expect(secret.stderr).to.not.include('canary')
    const odd = await cli.run([...test, '--set', 'smtp_hst=x'])
    expect(odd).to.include({ exitCode: 1 })
    expect(odd.stderr).to.include('Did you mean smtp_host?')
    expect(await settings()).to.deep.equal(before)
    await cli.done(test)
    expect(h.mail.mails.filter(({ to }) => to.includes('me@example.com'))).to.have.length(2)
  })

  it('mail test --set never takes the stored password to another server', async () => {
    const { h } = cli
    await h.put({ smtp_username: 'us', smtp_password: 'stored-password' })
    const heard: string[] = []
    const other = createSmtpEar(heard).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const test = ['mail', 'test', '--to', 'me@example.com', '--set', `smtp_port=${port}`]
    const { stdout } = await cli.run(test)
    other.close()
    expect(stdout).to.match(
      /^warning +configuration: The stored smtp_password belongs to another smtp_host or smtp_port/m,
    )
    expect(stdout)
      .to.include('--set smtp_password asks for it')
      .and.not.include('Set smtp_password')
    expect(heard.join(''))
      .to.match(/^EHLO /)
      .and.not.match(/AUTH|stored/)
    expect((await cli.settings())['smtp_password']).to.equal('***')
    await h.put({ smtp_username: '', smtp_password: '' })
  })
})

/** A mail server that offers a login, hears what is said, and takes nothing. */
function createSmtpEar(heard: string[]): Server {
  return createTcpServer((socket) => {
    socket.write('220 ear\r\n')
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      heard.push(String(chunk))
      const isHello = String(chunk).startsWith('EHLO')
      socket.write(isHello ? '250-ear\r\n250 AUTH PLAIN LOGIN\r\n' : '550 No\r\n')
    })
  })
}
