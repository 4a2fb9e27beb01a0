import { expect } from 'chai'
import { networkOf } from '../../src/http/requester.ts'

/** Each line is one network, in all its spellings. */
const NETWORKS: Record<string, (string | undefined)[]> = {
  '192.0.2.1': words(`
    192.0.2.1 192.0.2.1:4711 ::ffff:192.0.2.1 64:ff9b::192.0.2.1 64:ff9b::c000:201 2002:c000:201::1
    2002:c000:201:ffff::2 ::FFFF:192.0.2.1 ::ffff:c000:201 0:0:0:0:0:ffff:192.0.2.1
    0000:0000:0000:0000:0000:ffff:c000:0201 ::ffff:192.0.2.1%eth0 [::ffff:192.0.2.1]
    [::ffff:192.0.2.1]:4711`),
  '192.0.2.2': ['192.0.2.2'],
  '2001:db8:0:1::/64': words(`
    2001:db8:0:1:: 2001:db8:0:1::1 2001:db8:0:1:ffff:ffff:ffff:ffff 2001:db8::1:0:0:0:1
    2001:0DB8:0000:0001:0000:0000:0000:0001 2001:db8:0:1:0:0:192.0.2.1 2001:db8:0:1::1%eth0
    [2001:db8:0:1::1] [2001:db8:0:1::1]:443`),
  '2001:db8:0:2::/64': words('2001:db8:0:2::1 2001:db8:0:2::ffff:c000:201'),
  '64:ff9b:1:0::/64': ['64:ff9b:1::1', '64:ff9b:1::c000:201'],
  'fe80:0:0:0::/64': words('fe80::1%eth0 fe80::2%lo FE80::'),
  '0:0:0:0::/64': words(':: ::1 ::192.0.2.1'),
  unknown: [
    ...words(`
      localhost unknown _hidden 192.0.2 192.0.2.256 192.0.02.1 3221225985 0xc0000201 192.0.2.1.
      2001:db8 2001:db8:::1 2001:db8::1::2 2001:db8:0:1:0:0:0:0:1 g001:db8::1 [2001:db8::1
      ::ffff:192.0.2.256`),
    undefined,
    '',
    ' 192.0.2.1',
    '192.0.2.1\n',
    '1'.repeat(10_000),
    ':'.repeat(10_000),
  ],
}

describe('networkOf()', () => {
  for (const [network, spellings] of Object.entries(NETWORKS)) {
    it(`counts every spelling of ${network} as that`, () => {
      for (const spelling of spellings) {
        expect(networkOf(spelling), JSON.stringify(spelling)).to.equal(network)
      }
    })
  }

  it('is never long', () => {
    const longest = networkOf('ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff')
    expect(longest).to.have.lengthOf.at.most(24)
  })
})

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
