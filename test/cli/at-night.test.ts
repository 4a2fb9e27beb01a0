import { createServer } from 'node:http'
import { expect } from 'chai'
import { outcomeOf } from '../support/admin-calls.ts'
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
      .to.match(/^Not sent, and nobody will try again/)
      .and.match(/^Reason: disabled: /m)
      .and.include(`off (${id})`)
    const unknown = await cli.run(['outbox', 'show', 'no-such-mail'])
    expect(unknown).to.include({ exitCode: 1 })
    expect(unknown.stdout).to.match(/^Nothing is known of the mail/)
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
    const mails = async (since: string) =>
      (await cli.json(['outbox', 'list', '--since', since])).mails.length
    expect(await mails('1h')).to.equal((await cli.json(['outbox', 'list'])).mails.length)
    expect(await mails('2099-01-01T00:00:00Z')).to.equal(0)
    for (const wrong of ['yesterday', '2', '-2h', '2026-02-31T', ''])
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
})
