import { expect } from 'chai'
import { array, assert, integer, property, stringMatching, tuple } from 'fast-check'
import { eventText } from '../../cli/event-text.ts'
import { plain, plainAnswer, plainJson } from '../../cli/plain-text.ts'
import { table } from '../../cli/table.ts'

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
