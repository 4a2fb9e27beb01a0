import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { hasTerminals, startAtTerminal, startCliAtTerminal } from '../support/cli.ts'
import { outcomeOf } from '../support/admin.ts'
import { runCli, startCli } from '../support/cli-in-process.ts'
import { suiteCli } from '../support/cli-server.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { suiteFolder } from '../support/suite-folder.ts'

const INTERRUPT = '\u0003'
const SET_PASSWORD = ['settings', 'set', 'smtp_password']
const GET = ['settings', 'get', 'password_reset_expiration']

/** Sends a signal to the command line that `script` runs in a shell. Not every machine has `ps`, but every Linux has these files. */
function signalChild(script: number, signal: string): void {
  const childOf = (pid: number) =>
    parseInt(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), 10)
  process.kill(childOf(childOf(script)), `SIG${signal}`)
}

describe('account-flows at a terminal', () => {
  const cli = suiteCli()
  const file = suiteFolder()

  beforeEach(() => cli.h.put({ smtp_password: '' }))

  const password = async () => (await cli.settings())['smtp_password'] ?? ''

  describe('that is a real one', () => {
    before(function () {
      if (hasTerminals()) return
      console.log('      no `script` here that makes a terminal')
      this.skip()
    })

    /** Answers the question once it is shown, by typing or by a signal. */
    async function talk(
      args: string[],
      question: string,
      answer: (terminal: ReturnType<typeof startCliAtTerminal>) => void,
      env = {},
    ) {
      const terminal = startCliAtTerminal(args, { ...cli.env, ...env })
      await eventually(question, () => terminal.stdout().includes(question))
      answer(terminal)
      const exitCode = await terminal.exited
      const shown = terminal.stdout()
      expect(shown, 'the terminal shows what is typed again').to.match(/ icanon .* echo /s)
      expect(shown).not.to.include('canary')
      return { exitCode, shown }
    }

    it('asks for a secret, and does not show it', async () => {
      const { exitCode, shown } = await talk(SET_PASSWORD, 'smtp_password: ', ({ type }) =>
        type('canary\r'),
      )
      expect(shown).to.include('smtp_password: set')
      expect(exitCode).to.equal(0)
      expect(await password()).to.equal('***')
    })

    it('does not take arrow keys and other control sequences into a secret, which is not shown', async () => {
      const keys = ['\u001B[A', '\u001BOB', '\u001B[1;5C', '\u001B[[A', '\t', '\u001B', '\u0001']
      const [first = '', ...rest] = ADMIN_TOKEN
      const { exitCode, shown } = await talk(
        GET,
        'Admin token: ',
        ({ type }) => type(`${first}${keys.join('')}${rest.join('')}\r`),
        { ACCOUNT_FLOWS_TOKEN: '' },
      )
      expect(shown)
        .to.match(/^1h\r?$/m)
        .and.not.include(ADMIN_TOKEN)
      expect(exitCode).to.equal(0)
    })

    it('answers in lines of at most 80 columns, with nothing lost and times for people', async () => {
      const username = 'somebody-with-a-long-name-'.repeat(4)
      const email = `${'long'.repeat(15)}@${'department.'.repeat(12)}users.example`
      const { id } = await cli.h.addUser({ username, email, disabled: true })
      const { mail_id: mailId } = await cli.json(['user', 'send-reset', '--id', id, '--wait', '0'])
      await outcomeOf(cli.h, mailId, 'dead')
      const name = `Accounts of ${'a long name '.repeat(4)}etc`
      await cli.h.put({ smtp_from_name: name })
      await cli.h.put({ smtp_from_name: '' })
      const time = /\d\d:\d\d:\d\d UTC \(\d+ (s|min) ago\)|UTC \(just now\)/
      const { email: mailbox = '' } = await cli.h.addUser({ username: 'reader' })
      await cli.done(['user', 'send-reset', 'reader'])
      const { link } = await cli.h.mail.mailTo(mailbox)
      for (const [args, ...expected] of [
        [['user', 'status', '--id', id], username, email, time],
        [['audit', 'tail', '--account', id], username, time],
        [['outbox', 'list'], username, id, mailId, time],
        [['outbox', 'show', mailId], username, mailId, time],
        [['settings', 'list'], 'email_link_confirmation'],
        [['settings', 'history'], name, time],
        [['doctor', '--to', email], email],
        [['link', 'explain', link], 'live', time],
      ] as const) {
        const terminal = startCliAtTerminal([...args], cli.env)
        await terminal.exited
        const [answer = ''] = terminal.stdout().split(/^speed /m)
        const lines = answer.replace(/\p{Cc}\[\d+m/gu, '').split(/\r?\n/)
        for (const line of lines) expect(line.length, line).to.be.at.most(80)
        for (const each of expected) {
          if (each instanceof RegExp) expect(lines.join(' ').replace(/ +/g, ' ')).to.match(each)
          else expect(lines.join('').replace(/\s/g, '')).to.include(each.replace(/\s/g, ''))
        }
      }
    })

    it('is asked before a rollback, which shows what it takes back, in lines that fit', async () => {
      const good = (await cli.json(['settings', 'history'])).versions[0].version
      await cli.h.put({ resend_cooldown: '40s' })
      const args = ['settings', 'rollback', String(good)]
      for (const [answer, code, now] of [
        ['n\r', 1, '40s'],
        ['y\r', 0, '0s'],
      ] as const) {
        const { exitCode, shown } = await talk(args, '[y/N] ', ({ type }) => type(answer))
        expect(shown)
          .to.include('This takes back:')
          .and.include(`version ${good + 1}: `)
          .and.include('resend_cooldown: 40s -> 0s')
          .and.include(`Go back to version ${good} on ${cli.h.baseUrl}?`)
        expect(exitCode).to.equal(code)
        expect((await cli.settings())['resend_cooldown']).to.equal(now)
      }
    })

    it('completes commands, options, settings and their values in bash', async function () {
      if (spawnSync('bash', ['-c', 'true']).status !== 0) this.skip()
      const path = file('completion')
      await writeFile(path, (await runCli(['completion', 'bash'])).stdout)
      const bash = startAtTerminal('exec bash --norc --noprofile', {
        INPUTRC: '/dev/null',
        HISTFILE: '/dev/null',
      })
      try {
        bash.type(`source '${path}'; echo rea''dy\r`)
        await eventually('the shell', () => bash.stdout().includes('ready'))
        for (const [typed, completed] of [
          ['se\trol\t', 'settings rollback '],
          ['settings set smtp_tl\tst\t', 'settings set smtp_tls starttls '],
          ['settings set resend_c\t', 'settings set resend_cooldown '],
          ['settings set smtp_tls=imp\t', 'settings set smtp_tls=implicit '],
          ['mail test --from-e\tsmtp_us\t', 'mail test --from-env smtp_username '],
          ['--json outbox list --sta\td\t', '--json outbox list --state dead '],
          ['audit tail --type settings_\t', 'audit tail --type settings_changed '],
        ] as const) {
          bash.type(`account-flows ${typed}`)
          await eventually(completed, () => bash.stdout().includes(`account-flows ${completed}`))
          bash.type('\u0015')
        }
        bash.type('exit\r')
        expect(await bash.exited).to.equal(0)
      } finally {
        bash.process.kill('SIGHUP')
      }
    })

    for (const signal of ['INT', 'TERM', 'HUP']) {
      it(`is left as it was by ${signal === 'INT' ? 'Ctrl-C' : `SIG${signal}`} at a question, and nothing is changed`, async () => {
        const { exitCode, shown } = await talk(
          SET_PASSWORD,
          'smtp_password: ',
          ({ type, process }) => {
            // What is typed and not read yet is the terminal's again once the process has ended.
            if (signal === 'INT') type(`canary${INTERRUPT}`)
            else signalChild(process.pid ?? NaN, signal)
          },
        )
        expect(exitCode).to.equal(1)
        expect(shown).to.include('Interrupted. Nothing was changed.')
        expect(await password()).to.equal('')
      })
    }
  })

  /** In this process; the answer is there before the question. */
  async function talk(args: string[], answer: string, env = {}) {
    const terminal = startCli(args, { ...cli.env, ...env }, true)
    terminal.stdin.write(answer)
    const exitCode = await terminal.exited
    return { exitCode, shown: terminal.stdout() + terminal.stderr() }
  }

  it('takes corrections while a secret is typed', async () => {
    const args = ['settings', 'set', '--from-stdin', 'smtp_username']
    const { exitCode, shown } = await talk(args, `wrong\u0015canarx\u007Fy\r`)
    expect(shown).to.include('smtp_username: none -> canary')
    expect(shown.replace('-> canary', '')).not.to.include('canar')
    expect(exitCode).to.equal(0)
  })

  it('an interrupted question changes nothing, and can be asked again', async () => {
    for (const end of [INTERRUPT, '\u0004']) {
      const { exitCode, shown } = await talk(SET_PASSWORD, end)
      expect(exitCode).to.equal(1)
      expect(shown).to.include('Interrupted. Nothing was changed.')
    }
    expect(await password()).to.equal('')
    expect((await talk(SET_PASSWORD, 'canary\r')).exitCode).to.equal(0)
    expect(await password()).to.equal('***')
  })

  it('nothing typed is no secret: exit 2, and nothing is forgotten', async () => {
    await cli.h.put({ smtp_password: 'kept' })
    const { exitCode, shown } = await talk(SET_PASSWORD, '\r')
    expect(exitCode).to.equal(2)
    expect(shown).to.include('settings unset smtp_password')
    expect(await password()).to.equal('***')
  })

  it('asks one thing alone', async () => {
    const args = ['settings', 'set', '--from-stdin', 'smtp_password', '--token-file', '-']
    const { exitCode, shown } = await talk(args, `${ADMIN_TOKEN}\r`)
    expect(exitCode).to.equal(2)
    expect(shown).to.include('Only one thing').and.not.include(ADMIN_TOKEN)
  })

  for (const [args, question] of [
    [['user', 'end-sessions', 'alice'], 'alice'],
    [['user', 'forget', 'id-of-alice'], 'id-of-alice'],
    [['outbox', 'purge', '--all-dead'], 'all dead letters (0)'],
    [['outbox', 'retry', '--all-dead'], 'all dead letters (0)'],
  ] as const) {
    it(`${args.join(' ')} asks first, and names the server; anything but yes is no (CLI-08)`, async () => {
      for (const answer of ['\r', 'n\r', 'maybe\r', INTERRUPT]) {
        const { exitCode, shown } = await talk([...args], answer)
        expect(shown).to.include(question).and.include(cli.h.baseUrl)
        expect(shown).to.match(/nothing was changed\./i)
        expect(exitCode).to.equal(1)
      }
    })
  }

  it('does what is answered with yes', async () => {
    const { exitCode, shown } = await talk(['outbox', 'purge', '--all-dead'], 'y\r')
    expect(shown).to.include('0 mails removed.')
    expect(exitCode).to.equal(0)
  })

  it('colours what is wrong, unless told not to', async () => {
    const wrong = { ACCOUNT_FLOWS_TOKEN: 'wrong' }
    expect((await talk(['doctor'], '', wrong)).shown).to.include('\u001B[31mFAILED')
    for (const [args, env] of [
      [['doctor', '--no-color'], {}],
      [['doctor'], { NO_COLOR: '1' }],
    ] as const) {
      const { shown } = await talk([...args], '', { ...wrong, ...env })
      expect(shown).to.include('FAILED').and.not.include('\u001B')
    }
  })
})
