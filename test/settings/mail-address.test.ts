import { expect } from 'chai'
import { isMailAddress, mailboxKey } from '../../src/settings/mail-address.ts'

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

describe('mailboxKey', () => {
  it('is the same for what many mail servers put into one mailbox, and no other', () => {
    for (const other of ['V.ictim+x@gmail.com', 'vic.tim@googlemail.com', 'victim@Gmail.com'])
      expect(mailboxKey(other)).to.equal(mailboxKey('victim@gmail.com'))
    for (const other of ['victim@gmail.co', 'victims@gmail.com', 'victim@mail.com'])
      expect(mailboxKey(other)).to.not.equal(mailboxKey('victim@gmail.com'))
  })
})

describe('isMailAddress', () => {
  for (const address of [
    'ada@example.org',
    'Ada.Lovelace+reset@mail.example.co.uk',
    "o'neil@example.org",
    'root@localhost',
    'a@xn--bcher-kva.example',
    `${'a'.repeat(64)}@b.io`,
  ]) {
    it(`takes ${address}`, () => {
      expect(isMailAddress(address)).to.equal(true)
    })
  }

  for (const [what, address] of Object.entries(MALFORMED)) {
    it(`takes no address with ${what}`, () => {
      expect(isMailAddress(address)).to.equal(false)
    })
  }

  it('answers at once for a long hostile value', () => {
    const startedAt = performance.now()
    expect(isMailAddress(`${'a.'.repeat(50_000)}@`)).to.equal(false)
    expect(isMailAddress(`a@${'a-'.repeat(120)}`)).to.equal(false)
    expect(performance.now() - startedAt).to.be.below(50)
  })
})
