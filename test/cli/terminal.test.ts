import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { array, assert, integer, property, stringMatching, tuple } from 'fast-check'
import { eventText } from '../../cli/words.ts'
import { plain, plainAnswer, plainJson, withTimes } from '../../cli/output.ts'
import { fitted, table } from '../../cli/table.ts'
import { outcomeOf } from '../support/admin.ts'
import {
  hasTerminals,
  runCli,
  startAtTerminal,
  startCli,
  startCliAtTerminal,
  suiteCli,
} from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { suiteFolder } from '../support/folders.ts'

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

    type Terminal = ReturnType<typeof startCliAtTerminal>

    /** Answers the question once it is shown, by typing or by a signal. */
    async function talk(
      args: string[],
      question: string,
      answer: (terminal: Terminal) => void,
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
      const answer = ({ type }: Terminal) => type('canary\r')
      const { exitCode, shown } = await talk(SET_PASSWORD, 'smtp_password: ', answer)
      expect(shown).to.include('smtp_password: set')
      expect(exitCode).to.equal(0)
      expect(await password()).to.equal('***')
    })

    it('does not take arrow keys and other control sequences into a secret, which is not shown', async () => {
      const keys = ['\u001B[A', '\u001BOB', '\u001B[1;5C', '\u001B[[A', '\t', '\u001B', '\u0001']
      const typed = `${ADMIN_TOKEN.slice(0, 1)}${keys.join('')}${ADMIN_TOKEN.slice(1)}\r`
      const none = { ACCOUNT_FLOWS_TOKEN: '' }
      const { exitCode, shown } = await talk(GET, 'Admin token: ', ({ type }) => type(typed), none)
      expect(shown).to.match(/^1h\r?$/m)
      expect(shown).not.to.include(ADMIN_TOKEN)
      expect(exitCode).to.equal(0)
    })

    it('completes commands, options, settings and their values in bash', async function () {
      if (spawnSync('bash', ['-c', 'true']).status !== 0) this.skip()
      const path = file('completion')
      await writeFile(path, (await runCli(['completion', 'bash'])).stdout)
      const env = { INPUTRC: '/dev/null', HISTFILE: '/dev/null' }
      const bash = startAtTerminal('exec bash --norc --noprofile', env)
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
        const answer = ({ type, process }: Terminal) => {
          // What is typed and not read yet is the terminal's again once the process has ended.
          if (signal === 'INT') type(`canary${INTERRUPT}`)
          else signalChild(process.pid ?? NaN, signal)
        }
        const { exitCode, shown } = await talk(SET_PASSWORD, 'smtp_password: ', answer)
        expect(exitCode).to.equal(1)
        expect(shown).to.include('Interrupted. Nothing was changed.')
        expect(await password()).to.equal('')
      })
    }
  })

  it('takes corrections while a secret is typed', async () => {
    const args = ['settings', 'set', '--from-stdin', 'smtp_username']
    const shown = await cli.atTerminal(args, `wrong\u0015canarx\u007Fy\r`, 0)
    expect(shown).to.include('smtp_username: none -> canary')
    expect(shown.replace('-> canary', '')).not.to.include('canar')
  })

  it('an interrupted question changes nothing, and can be asked again', async () => {
    for (const end of [INTERRUPT, '\u0004']) {
      const shown = await cli.atTerminal(SET_PASSWORD, end, 1)
      expect(shown).to.include('Interrupted. Nothing was changed.')
    }
    expect(await password()).to.equal('')
    await cli.atTerminal(SET_PASSWORD, 'canary\r', 0)
    expect(await password()).to.equal('***')
  })

  it('nothing typed is no secret: exit 2, and nothing is forgotten', async () => {
    await cli.h.put({ smtp_password: 'kept' })
    expect(await cli.atTerminal(SET_PASSWORD, '\r', 2)).to.include('settings unset smtp_password')
    expect(await password()).to.equal('***')
  })

  it('asks one thing alone', async () => {
    const args = ['settings', 'set', '--from-stdin', 'smtp_password', '--token-file', '-']
    const shown = await cli.atTerminal(args, `${ADMIN_TOKEN}\r`, 2)
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
        const shown = await cli.atTerminal(args, answer, 1)
        expect(shown).to.include(question).and.include(cli.h.baseUrl)
        expect(shown).to.match(/nothing was changed\./i)
      }
    })
  }

  it('asks about what was typed without its control characters (CLI-08)', async () => {
    const typed = 'x\u001B[2J\u202Ey\nz'
    for (const args of [
      ['user', 'end-sessions', typed],
      ['user', 'end-sessions', '--id', typed],
      ['user', 'forget', typed],
      ['outbox', 'purge', typed],
    ]) {
      const shown = await cli.atTerminal(args, 'n\r', 1)
      expect(shown).to.include('x[2Jy z').and.include(`on ${cli.h.baseUrl}? [y/N] `)
      expect(shown).not.to.include('\u001B').and.not.include('\u202E')
      expect(shown).to.include('Nothing was changed.')
    }
    const { id } = await cli.h.addUser({ username: 'asked' })
    const shown = await cli.atTerminal(['user', 'end-sessions', 'asked'], 'y\r', 0)
    expect(shown).to.include('asked').and.include('All sessions, grants and tokens are ended.')
    expect(cli.h.eventsOf('sessions_ended').at(-1)?.accountId).to.equal(id)
  })

  it('does what is answered with yes', async () => {
    expect(await cli.atTerminal(['outbox', 'purge', '--all-dead'], 'y\r', 0)).to.include(
      '0 mails removed.',
    )
  })

  it('colours what is wrong, unless told not to, or where no terminal is', async () => {
    const wrong = { ACCOUNT_FLOWS_TOKEN: 'wrong' }
    expect(await cli.atTerminal(['doctor'], '', 4, wrong)).to.include('\u001B[31mFAILED')
    for (const [args, env] of [
      [['doctor', '--no-color'], {}],
      [['doctor'], { NO_COLOR: '1' }],
    ] as const) {
      const shown = await cli.atTerminal(args, '', 4, { ...wrong, ...env })
      expect(shown).to.include('FAILED').and.not.include('\u001B')
    }
    const { stdout } = await cli.done(['doctor'])
    expect(stdout).to.match(/^ok /).and.not.include('\u001B')
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
    const time = /\d\d:\d\d:\d\d UTC \(\d+ (s|min) ago\)|UTC \(now\)/
    const { email: mailbox = '' } = await cli.h.addUser({ username: 'reader' })
    await cli.done(['user', 'send-reset', 'reader'])
    const { link } = await cli.h.mail.mailTo(mailbox)
    const ofReader = ['The last reset link was sent at', 'The operator of the mail server finds it']
    for (const [args, ...expected] of [
      [['user', 'status', '--id', id], username, email, time],
      [['user', 'status', 'reader'], ...ofReader, time],
      [['audit', 'tail', '--account', id], username, time],
      [['outbox', 'list'], username, id, mailId, time],
      [['outbox', 'show', mailId], username, mailId, time],
      [['settings', 'list'], 'email_link_confirmation'],
      [['settings', 'history'], name, time],
      [['doctor', '--to', email], email],
      [['link', 'explain', link], 'live', time],
    ] as const) {
      const terminal = startCli([...args], cli.env, true)
      await terminal.exited
      const shown = terminal.stdout() + terminal.stderr()
      const lines = shown.replace(/\p{Cc}\[\d+m/gu, '').split('\n')
      for (const line of lines) expect(line.length, line).to.be.at.most(80)
      for (const each of expected) {
        if (each instanceof RegExp) expect(lines.join(' ').replace(/ +/g, ' ')).to.match(each)
        else expect(lines.join('').replace(/\s/g, '')).to.include(each.replace(/\s/g, ''))
      }
    }
  })
})

const HEAD = ['id', 'state', 'reason']
const ROWS = [
  ['507f1f77bcf86cd799439011', 'waiting', 'the mail server could not be used: see why'],
  ['2', 'dead', 'a-word-that-is-longer-than-the-column-that-it-has-to-be-in'],
]

describe('tables of the command line', () => {
  it('are one line for each row where there is room, or no terminal', () => {
    for (const columns of [undefined, 200]) {
      expect(table(HEAD, ROWS, columns).split('\n')).to.deep.equal([
        'id                        state    reason',
        '507f1f77bcf86cd799439011  waiting  the mail server could not be used: see why',
        '2                         dead     a-word-that-is-longer-than-the-column-that-it-has-to-be-in',
      ])
    }
  })

  it('wrap the last column between words', () => {
    expect(table(HEAD, ROWS.slice(0, 1), 60).split('\n')).to.deep.equal([
      'id                        state    reason',
      '507f1f77bcf86cd799439011  waiting  the mail server could not',
      '                                   be used: see why',
    ])
  })

  it('of a terminal too narrow are one line for each cell that is not empty', () => {
    const rows = ROWS.slice(0, 1).map((row) => ['', ...row])
    const shown = fitted(table(['mark', ...HEAD], rows, 40), 40)
    expect(shown.split('\n')).to.deep.equal([
      'id: 507f1f77bcf86cd799439011',
      'state: waiting',
      'reason: the mail server could not be',
      '  used: see why',
    ])
  })

  it('align wide and combining characters by the columns they take', () => {
    const rows = ['密码', 'e\u0301', 'abcd'].map((name, index) => [name, String(index)])
    const [, ...lines] = table(['name', 'x'], rows, 80).split('\n')
    expect(lines).to.deep.equal(['密码  0', 'e\u0301     1', 'abcd  2'])
  })

  it('never cut a value, whatever the width', () => {
    const word = stringMatching(/^[a-z0-9]{1,40}$/)
    const holds = property(
      array(tuple(word, word, word), { minLength: 1 }),
      integer({ min: 1, max: 120 }),
      (rows, columns) => {
        const shown = table(HEAD, rows, columns).split(/\s+/)
        for (const cell of rows.flat()) expect(shown).to.include(cell)
      },
    )
    assert(holds, { numRuns: 200 })
  })
})

describe('lines of a terminal', () => {
  it('are never longer than it is wide, and nothing is lost', () => {
    const line = stringMatching(/^ {0,6}([a-z密]{1,50} {1,2}){0,9}[a-z]{1,200}$/)
    const holds = property(array(line), integer({ min: 20, max: 120 }), (lines, columns) => {
      const text = lines.join('\n')
      const shown = fitted(text, columns)
      for (const each of shown.split('\n')) {
        expect(each.length + (each.match(/密/g) ?? []).length).to.be.at.most(columns)
      }
      expect(shown.replace(/\s/g, '')).to.equal(text.replace(/\s/g, ''))
    })
    assert(holds, { numRuns: 200 })
  })

  it('stay as they are where they fit, and take colours for nothing', () => {
    const painted = `\u001B[31m${'x'.repeat(40)}\u001B[0m`
    expect(fitted(`a\n${painted}`, 40)).to.equal(`a\n${painted}`)
    expect(fitted(painted, 20)).to.equal(
      `\u001B[31m${'x'.repeat(18)}\n  ${'x'.repeat(18)}\n  xxxx\u001B[0m`,
    )
  })
})

describe('times for people', () => {
  const now = new Date('2026-11-23T08:15:04.500Z')
  for (const [iso, shown] of [
    ['2026-11-23T08:15:04.400Z', '2026-11-23 08:15:04 UTC (now)'],
    ['2026-11-23T08:15:04.900Z', '2026-11-23 08:15:04 UTC (now)'],
    ['2026-11-23T08:15:07.500Z', '2026-11-23 08:15:07 UTC (now)'],
    ['2026-11-23T08:15:10.500Z', '2026-11-23 08:15:10 UTC (in 6 s)'],
    ['2026-11-23T08:14:14.500Z', '2026-11-23 08:14:14 UTC (50 s ago)'],
    ['2026-11-23T08:12:04Z', '2026-11-23 08:12:04 UTC (3 min ago)'],
    ['2026-11-23T06:45:04.500Z', '2026-11-23 06:45:04 UTC (90 min ago)'],
    ['2026-11-21T09:15:04.500Z', '2026-11-21 09:15:04 UTC (47 h ago)'],
    ['2026-01-01T00:00:00.000Z', '2026-01-01 00:00:00 UTC (326 days ago)'],
    ['2026-11-24T08:15:04.500Z', '2026-11-24 08:15:04 UTC (in 24 h)'],
  ] as const) {
    it(`tell ${iso} by the time of the server, wherever it is in a text`, () => {
      expect(withTimes(`at ${iso}.`, now)).to.equal(`at ${shown}.`)
      expect(withTimes(iso, undefined)).to.equal(shown.replace(/ \(.*/, ''))
    })
  }

  it('are taken for nothing else', () => {
    for (const text of ['2026-11-23', '08:12:04', '507f1f77bcf86cd799439011'])
      expect(withTimes(text, now)).to.equal(text)
  })
})

describe('what a server says, at a terminal', () => {
  const nasty = 'a\u001B[2Jb\u009Bc\u0007\r\nd\u2028e\u202Ef\u200B\uD800g\0'

  it('loses its control characters and line breaks', () => {
    expect(plain(nasty)).to.equal('a[2Jbc  d efg')
    expect(plainAnswer({ [nasty]: [nasty, 1, null, { x: nasty }] })).to.deep.equal({
      'a[2Jbc  d efg': ['a[2Jbc  d efg', 1, null, { x: 'a[2Jbc  d efg' }],
    })
  })

  it('as JSON says the same to a program, and nothing to the terminal', () => {
    const text = plainJson({ [nasty]: nasty }, 2)
    expect(text.replaceAll('\n', '')).not.to.match(/[\p{C}\u2028\u2029]/u)
    expect(JSON.parse(text)).to.deep.equal({ [nasty]: nasty })
  })
})

describe('an event in one line', () => {
  it('tells details apart from what the event is about', () => {
    const at = '2026-01-01T00:00:00.000Z'
    const about = { account_id: 'alice', address: '192.0.2.1', reason: 'real' }
    const made = { account: 'mallory', address: '198.51.100.1', reason: 'made up', at: 'x' }
    const event = { id: '1', at, recorded_at: at, type: 'settings_changed' } as const
    const text = eventText({ ...event, ...about, details: made })
    expect(text.split('  ')).to.include.members([
      'account=alice',
      'address=192.0.2.1',
      'reason=real',
      'details.account=mallory',
      'details.address=198.51.100.1',
      'details.reason="made up"',
    ])
    expect(text).not.to.match(/(^| )(account=mallory|address=198)/)
  })
})
