import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { ask, shapeOf, usableRecord } from '../support/observe.ts'
import { eventually } from '../support/eventually.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { addUnverified, blockedLogin, notMeOf, tokenOf } from '../support/person.ts'

/** Some of what a host may have stored as an address, that is no plain one; test/settings/settings.test.ts has the others. */
const ADDRESSES: Record<string, string> = {
  'a line break and a header': 'victim@users.example\r\nBcc: attacker@evil.example',
  'a comma': 'victim@users.example,attacker@evil.example',
  'a display name': 'victim@users.example <attacker@evil.example>',
  'a domain literal': 'victim@[127.0.0.1]',
  'a full-width at sign': 'victim\uFF20users.example',
  NUL: 'victim@users.example\0@evil.example',
  '64 KiB': `${'a'.repeat(65_536)}@users.example`,
}

const NAMES: Record<string, string> = {
  'CR, LF and headers': 'ann\r\nBcc: attacker@evil.example\r\n\r\n<b>body</b>',
  'a line separator': 'ann\u2028Bcc: attacker@evil.example\u0085x',
  'an override of the direction': 'ann\u202Egpj.exe\u2066\u200F',
  'escapes of a terminal': 'ann\u001b[2J\u001b]8;;https://evil.example\u0007click',
  markup: '<a href="https://evil.example">click</a><img src=https://evil.example/x>',
  'an end of the page': '</p></td></table></body><script>alert(1)</script>',
  'an address of a page': 'ann https://evil.example/login?x=1 www.evil.example evil.example',
  'an address in other letters': 'https\uFF1A\uFF0F\uFF0Fevil\uFF0Eexample evil\u3002example',
  'an address of a mailbox': 'mailto:attacker@evil.example',
  'syntax of templates':
    '#{7007*7} !{7007*7} {{7007*7}} ${7007*7} <%= 7007*7 %> {link} {lead} $& $1',
  'a phishing text': `your account is locked, call us now ${'or lose everything '.repeat(20)}`,
  'quotes and commas': '"ann", \'x\' <ann@users.example>,',
  'an encoded word': '=?utf-8?B?QmNjOiB4QGV2aWwuZXhhbXBsZQ==?=',
  NUL: 'ann\0\0',
}

describe('An address that is not one plain address (MAIL-01, MAIL-02)', () => {
  const h = suiteHarness()
  before(() => h.addUser({ username: 'honest' }))

  it('gets no mail, and the same answer as any other, from either flow', async () => {
    const { answer: any } = await ask(h, 'nobody')
    const anyShape = shapeOf(any)
    await Promise.all(
      Object.entries(ADDRESSES).map(async ([what, email], index) => {
        const user = await h.addUser({ username: `bad-${index}`, email })
        const byName = await ask(h, user.username)
        expect(byName.reason, what).to.equal('bad_address')
        expect(shapeOf(byName.answer), what).to.deep.equal(anyShape)
        expect(user.events('password_reset_mail_sent'), what).to.deep.equal([])
        // Typed, it is no name.
        if (email.length > 60_000 || email.includes('\0')) return
        const byEmail = await ask(h, email)
        expect(shapeOf(byEmail.answer), what).to.deep.equal(anyShape)
        expect(byEmail.reason, what).to.be.oneOf(['bad_address', 'unknown'])
      }),
    )
    await Promise.all(
      Object.entries(ADDRESSES).map(async ([what, email], index) => {
        const user = await addUnverified(h, { username: `worse-${index}`, email })
        const { url } = await h.party.begin()
        const { mode } = await h.login(createUserAgent(), url, user.username)
        expect(mode, what).to.equal('blocked')
        const isRefused = () =>
          h.events.some(
            ({ accountId, reason }) => accountId === user.id && reason === 'bad_address',
          )
        await eventually(`${what}: no mail is sent`, isRefused)
      }),
    )
    expect(h.mail.mails).to.deep.equal([])
  })

  it('does not stand in the way of an honest one', async () => {
    expect((await ask(h, 'honest')).reason).to.equal(undefined)
    expect(h.mail.mails.map(({ to }) => to)).to.deep.equal([['honest@users.example']])
  })

  it('and an address of nobody gets no mail, so that nobody is mailed through us (MAIL-12)', async () => {
    const before = h.mail.mails.length
    for (const stranger of ['stranger@evil.example', 'honest@users.example,x@evil.example'])
      expect((await ask(h, stranger)).reason).to.equal('unknown')
    expect(h.mail.mails).to.have.length(before)
  })
})

describe('Names that others chose, in a mail (MAIL-04, MAIL-05, MAIL-13)', () => {
  let h: Harness
  let plain: ReceivedMail

  before(async () => {
    const clients = Object.values(NAMES).map((name, index) => ({
      ...CLIENT,
      client_id: `app-${index}`,
      client_name: name,
    }))
    h = await startHarness({ clients: [CLIENT, ...clients] })
    await h.addUser({ username: 'plain' })
    await ask(h, 'plain', { client_id: 'app', redirect_uri: CLIENT.redirect_uris[0] })
    plain = await h.mail.mailTo('plain@users.example')
  })
  after(() => h.close())

  const headersOf = ({ mail }: ReceivedMail) => mail.headerLines.map(({ key }) => key)
  const elementsOf = (html: string) =>
    DomUtils.getElementsByTagName(() => true, parseDocument(html), true)
  const skeletonOf = ({ mail }: ReceivedMail) =>
    elementsOf(String(mail.html)).map(({ name, attribs }) => [name, ...Object.keys(attribs)])

  function expectPlain(received: ReceivedMail, to: string) {
    const { mail } = received
    expect(received.to).to.deep.equal([to])
    expect(headersOf(received)).to.deep.equal(headersOf(plain))
    expect(mail.subject).to.equal(plain.mail.subject)
    expect(skeletonOf(received)).to.deep.equal(skeletonOf(plain))
    const text = mail.text ?? ''
    expect(text.split('\n\n')).to.have.length((plain.mail.text ?? '').split('\n\n').length)
    const addresses = [received.link, notMeOf(received)]
    expect(text.match(/https?:\/\/\S+/g)).to.deep.equal(addresses)
    const ours = [...addresses, /\d{1,2}:\d{2}(?=.[AP]M UTC)/]
    const theirs = ours.reduce<string>((rest, own) => rest.replace(own, ''), text)
    expect(theirs).not.to.match(/\w[.:\u3002\uFF0E\uFF1A](?=[^\s\u2060])/)
    expect(text.replaceAll('\n', '')).not.to.match(/[\p{Cc}\p{Bidi_Control}\u2028]/u)
    expect(text).not.to.match(/49049|or lose everything or lose everything or lose everything/)
    const links = elementsOf(String(mail.html)).filter(({ name }) => name === 'a')
    expect(links.map(({ attribs }) => attribs['href'])).to.deep.equal(addresses)
    expect(mail.headerLines.map(({ line }) => line).join('\n')).not.to.match(/evil|ann/)
  }

  before(() =>
    Promise.all(
      Object.values(NAMES).map(async (name, index) => {
        const email = `named-${index}@users.example`
        await h.addUser({ username: name, email })
        const carried = { client_id: `app-${index}`, redirect_uri: CLIENT.redirect_uris[0] }
        expect((await ask(h, email, carried)).reason).to.equal(undefined)
      }),
    ),
  )

  for (const [index, what] of Object.keys(NAMES).entries()) {
    it(`${what}: in one line, bounded, and no link in either part`, async () => {
      const email = `named-${index}@users.example`
      const received = await h.mail.mailTo(email)
      expectPlain(received, email)
      expect((await usableRecord(h, received.link))?.carried.clientId).to.equal(`app-${index}`)
    })
  }

  it('whatever the name, its link sets a new password', async () => {
    expect((await h.reset(plain.link, 'a new password')).mode).to.equal('done')
    const { link } = await h.mail.mailTo('named-0@users.example')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })
})

describe('Every mail (MAIL-09, MAIL-10, MAIL-11)', () => {
  const h = suiteHarness({ settings: { password_changed_email: 'true' } })

  it('says that a machine wrote it, names the domain of its sender alone, and loads nothing', async () => {
    const ann = await h.addUser({ username: 'ann' })
    const link = await ann.forgets()
    await h.reset(link, 'another password')
    await h.mail.mailTo(ann.email ?? '', 2)
    await blockedLogin(h)
    const kinds = h.mail.mails.map(({ kind }) => kind)
    expect(kinds).to.have.members(['password_reset', 'password_changed', 'email_verification'])
    for (const { mail, link: own, to, kind } of h.mail.mails) {
      expect(to).to.have.length(1)
      expect(mail.messageId).to.match(/^<[^@<>\s]+@idp\.example>$/)
      expect(mail.headers.get('auto-submitted')).to.equal('auto-generated')
      expect(mail.headers.get('x-auto-response-suppress')).to.equal('All')
      expect(mail.headers.has('x-mailer')).to.equal(false)
      expect(mail.attachments).to.deep.equal([])
      const html = String(mail.html)
      expect(html).not.to.match(/<(img|script|link|iframe|object|video)|url\(|\ssrc=|background=/i)
      const outside = `${mail.subject} ${mail.headerLines.map(({ line }) => line).join(' ')}`
      expect(outside).not.to.match(/localhost|127\.0\.0\.1/)
      const token = tokenOf(own)
      if (kind === 'password_changed') expect(token).to.equal('')
      else {
        expect((mail.text ?? '').split(token)).to.have.length(2)
        expect(html.split(token)).to.have.length(2)
        expect(outside).not.to.include(token)
      }
      expect(`${mail.text} ${html} ${outside}`).not.to.include('another password')
    }
  })
})
