import { expect } from 'chai'
import { parseDuration } from '../../src/settings/kinds.ts'

describe('parseDuration() (2.5)', () => {
  const durations: Record<string, number> = {
    '1s': 1_000,
    '59s': 59_000,
    '90s': 90_000,
    '90m': 5_400_000,
    '1h': 3_600_000,
    '24h': 86_400_000,
    '7d': 604_800_000,
    '1h30m': 5_400_000,
    '1d2h3m4s': 93_784_000,
    '1d4s': 86_404_000,
    '100h': 360_000_000,
    '999999d': 86_399_913_600_000,
  }
  for (const [text, ms] of Object.entries(durations)) {
    it(`reads ${text} as ${ms} ms`, () => expect(parseDuration(text)).to.equal(ms))
  }

  const others = ['', ' ', '0', '0s', '00s', '1', '60', '-1h', '+1h', '1.5h', '1,5h', '1e3h', '01h']
  others.push(' 1h', '1h ', '1 h', '1h\n', '\n1h', '1h 30m', '1h30', '30m1h', '1h1h', '1h0m', 'h')
  others.push('1H', '1D', '1M', 'PT1H', '1ms', '1w', '1y', '1hour', '0x1h', '١h', '１h', 'Infinity')
  others.push('NaN', 'null', '9999999d', '99999999999h', '1h;', '1h\0', `${'1'.repeat(100_000)}h`)
  for (const text of others) {
    it(`refuses ${JSON.stringify(text).slice(0, 40)}`, () => {
      expect(parseDuration(text)).to.equal(undefined)
    })
  }
})
