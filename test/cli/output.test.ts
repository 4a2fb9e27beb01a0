import { expect } from 'chai'
import { array, assert, integer, property, stringMatching, tuple } from 'fast-check'
import { eventText } from '../../cli/event-text.ts'
import { plain, plainAnswer, plainJson } from '../../cli/plain-text.ts'
import { fitted, table } from '../../cli/table.ts'
import { withTimes } from '../../cli/time-text.ts'

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
    expect(
      table(
        ['mark', ...HEAD],
        ROWS.slice(0, 1).map((row) => ['', ...row]),
        40,
      ).split('\n'),
    ).to.deep.equal([
      'id: 507f1f77bcf86cd799439011',
      'state: waiting',
      'reason: the mail server could not be',
      '  used: see why',
    ])
  })

  it('align wide and combining characters by the columns they take', () => {
    const lines = table(
      ['name', 'x'],
      [
        ['密码', '1'],
        ['e\u0301', '2'],
        ['abcd', '3'],
      ],
      80,
    )
    expect(lines.split('\n').slice(1)).to.deep.equal(['密码  1', 'e\u0301     2', 'abcd  3'])
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
    ['2026-11-23T08:15:04.400Z', '2026-11-23 08:15:04 UTC (just now)'],
    ['2026-11-23T08:15:04.900Z', '2026-11-23 08:15:04 UTC (just now)'],
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
    const text = eventText({
      id: '1',
      at: '2026-01-01T00:00:00.000Z',
      recorded_at: '2026-01-01T00:00:00.000Z',
      type: 'settings_changed',
      account_id: 'alice',
      address: '192.0.2.1',
      reason: 'real',
      details: { account: 'mallory', address: '198.51.100.1', reason: 'made up', at: 'x' },
    })
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
