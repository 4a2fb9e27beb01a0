import { expect } from 'chai'
import { parseDuration } from '../../src/settings/kinds.ts'
import { isLoopbackHost } from '../../src/settings/loopback-host.ts'
import { isMailAddress, mailboxKey } from '../../src/settings/mail-address.ts'

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

describe('isLoopbackHost()', () => {
  it('is true of this machine, in every spelling, and of nothing else', () => {
    const own = `localhost LOCALHOST App.LocalHost 127.0.0.1 127.255.0.9 ::1 [::1] 0:0:0:0:0:0:0:1
      ::ffff:127.0.0.1 ::ffff:7f00:1`
    for (const host of own.split(/\s+/)) expect(isLoopbackHost(host), host).to.equal(true)
    const others = `128.0.0.1 10.0.0.1 0.0.0.0 127.1 127.0.0.256 127.0.0.1. ::2 :: ::127.0.0.1 [::1 [localhost]x
      localhost. .localhost ..localhost notlocalhost localhost.evil.example 127.0.0.1.evil.example`
    for (const host of ['', ...others.split(/\s+/)]) {
      expect(isLoopbackHost(host), host).to.equal(false)
    }
  })
})

/** Whoever reads one of these as an address mails to another mailbox, to several, or says more than an address. */
const MALFORMED: Record<string, string> = {
  'a line break and a header': 'victim@users.example\r\nBcc: attacker@evil.example',
  'a bare LF': 'victim@users.example\nRCPT TO:<attacker@evil.example>',
  'a bare CR': 'victim@users.example\rattacker@evil.example',
  'NEL and a line separator': 'victim@users.example\u0085\u2028attacker@evil.example',
  'a comma': 'victim@users.example,attacker@evil.example',
  'a semicolon': 'victim@users.example;attacker@evil.example',
  'a space': 'victim@users.example attacker@evil.example',
  'a display name': 'victim@users.example <attacker@evil.example>',
  'angle brackets': '<attacker@evil.example>',
  'two angle brackets': '<victim@users.example><attacker@evil.example>',
  'a group': 'friends: victim@users.example, attacker@evil.example;',
  'a comment': 'victim(attacker@evil.example)@users.example',
  'a quoted local part': '"attacker@evil.example x"@users.example',
  'a quoted pair': '"a\\"b"@users.example',
  'two at signs': 'victim@users.example@evil.example',
  'parameters of SMTP': 'victim@users.example> NOTIFY=SUCCESS ORCPT=rfc822;x@evil.example',
  'a domain literal': 'victim@[127.0.0.1]',
  'an international domain': 'victim@b\u00fccher.example',
  'an international local part': 'v\u0131ctim@users.example',
  'a full-width at sign': 'victim\uFF20users.example',
  NUL: 'victim@users.example\0@evil.example',
  'a tab': 'victim@users.example\t',
  'a route': '@evil.example:victim@users.example',
  'no domain': 'victim',
  'no local part': '@users.example',
  'a dot at the end': 'victim@users.example.',
  'a local part of 65': `${'a'.repeat(65)}@users.example`,
  '255 characters': `a@${'b.'.repeat(125)}example`.slice(0, 255),
  '64 KiB': `${'a'.repeat(65_536)}@users.example`,
  'a dot in front': '.a@b.io',
  'two dots': 'a..b@b.io',
  'two dots in the domain': 'a@b..io',
  'a hyphen in front of the domain': 'a@-b.io',
  'a ligature in the domain': 'a@\uFB00.example',
  'an override of the direction': 'a\u202E@b.io',
  'a line break at the end': 'victim@example.com\n',
  'no domain after the at sign': 'a@',
  'a domain of 260': `a@${'b.'.repeat(130)}io`,
  nothing: '',
}

describe('isMailAddress()', () => {
  it('takes plain addresses', () => {
    for (const address of [
      'ada@example.org',
      'Ada.Lovelace+reset@mail.example.co.uk',
      "o'neil@example.org",
      'root@localhost',
      'a@xn--bcher-kva.example',
      `${'a'.repeat(64)}@b.io`,
    ])
      expect(isMailAddress(address), address).to.equal(true)
  })

  for (const [what, address] of Object.entries(MALFORMED)) {
    it(`takes no address with ${what}`, () => {
      expect(isMailAddress(address)).to.equal(false)
    })
  }

  it('answers at once for a long hostile value', () => {
    const startedAt = performance.now()
    expect(isMailAddress(`${'a.'.repeat(50_000)}@`)).to.equal(false)
    expect(isMailAddress(`a@${'a-'.repeat(120)}`)).to.equal(false)
    expect(performance.now() - startedAt).to.be.below(1_000)
  })
})

describe('mailboxKey()', () => {
  it('is the same for what many mail servers put into one mailbox, and no other', () => {
    for (const other of ['V.ictim+x@gmail.com', 'vic.tim@googlemail.com', 'victim@Gmail.com'])
      expect(mailboxKey(other)).to.equal(mailboxKey('victim@gmail.com'))
    for (const other of ['victim@gmail.co', 'victims@gmail.com', 'victim@mail.com'])
      expect(mailboxKey(other)).to.not.equal(mailboxKey('victim@gmail.com'))
  })
})
