import { expect } from 'chai'
import { newLinkFrom, reasonOf } from '../support/bad-links.ts'
import { expectNothingChanged } from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { PASSWORD } from '../support/harness.ts'
import { formsOf } from '../support/page-forms.ts'
import { rawRequest } from '../support/raw-request.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode } from '../support/waiting-window.ts'
import { blockedLogin, type Person, tokenOf, userWithLink, codeOn } from '../support/person.ts'

type Change = (link: string) => string

/** What stands behind a link in a text, and is taken for a part of it. */
const ENDS = ['%3E', ')', '.', ',', '%22', "'", '%E2%80%9D', ').', ';', '!', '%20', '%0A', '%5D']

const plus =
  (text: string): Change =>
  (link) =>
    link + text

const withEnds = (ends: string[]) =>
  Object.fromEntries(ends.map((end) => [`with a trailing ${decodeURIComponent(end)}`, plus(end)]))

/** Wrapped at this column, in a way of the mail program. */
const wrapped =
  (column: number, by: string): Change =>
  (link) =>
    link.slice(0, column) + by + link.slice(column)

const quotedPrintable: Change = (link) => link.replaceAll('=', '=3D')

/** What changes no word of the link, or can be undone because token and signature say which reading was mailed. */
const MENDED: Record<string, Change> = {
  'with &amp; left in': (link) => link.replaceAll('&', '&amp;'),
  'with &amp;amp; left in': (link) => link.replaceAll('&', '&amp;amp;'),
  'wrapped in the token': wrapped(60, '%0A'),
  'wrapped in the middle': wrapped(120, '%0D%0A'),
  'wrapped and indented': wrapped(150, '%0D%0A%20%20'),
  'wrapped near the end': (link) => wrapped(link.length - 10, '%0A')(link),
  'with a space in the token': wrapped(60, '%20'),
  'with a plus in the signature': (link) => wrapped(link.length - 10, '+')(link),
  'with its plus turned into a space': (link) => link.replaceAll('+', '%20'),
  'with parameters of a campaign': plus('&utm_source=mail&utm_source=news&mc_eid=%ZZ'),
  'with a parameter of a campaign in front': (link) => link.replace('?', '?fbclid=abc&'),
  'with a fragment': plus('#:~:text=confirm'),
  ...withEnds([...ENDS, '*']),
}

const cutAfter =
  (name: string): Change =>
  (link) =>
    link.replace(new RegExp(`([?&]${name}=[^&]*).*$`), '$1')

/** What is lost is lost. */
const BROKEN: Record<string, Change> = {
  'cut in the middle of the token': (link) => link.replace(/(token=.{20}).*$/, '$1'),
  'cut after its token': cutAfter('token'),
  'cut after its client_id': cutAfter('client_id'),
  'cut after its redirect_uri': cutAfter('redirect_uri'),
  'cut after its scope': cutAfter('scope'),
  'cut after its state': cutAfter('state'),
  'cut in the middle of its signature': (link) => link.slice(0, -20),
  'without the last character': (link) => link.slice(0, -1),
  'without its query': (link) => link.split('?')[0] ?? '',
  'with an empty query': (link) => `${link.split('?')[0]}?`,
  'in lower case': (link) => link.toLowerCase(),
  'with text glued to its end': plus('Thanks'),
  'pasted twice in a row': (link) => link + link,
  'with an encoding that is none': (link) => link.replace('state=', 'state=%ZZ'),
  'in quoted-printable': quotedPrintable,
}

describe('A verification link that a mail program or a person changed', () => {
  const h = suiteHarness()

  describe('and that is mended', () => {
    let login: Person

    before(async () => {
      await h.put({ email_link_confirmation: 'other_browser' })
      login = await blockedLogin(h, { extra: { state: 'a b&c=d+é' } })
    })

    for (const [how, change] of Object.entries(MENDED)) {
      it(`is read as it was mailed ${how}`, async () => {
        const page = await createUserAgent().get(change(login.link))
        expect([page.status, page.mode, codeOn(page)]).to.deep.equal([200, 'elsewhere', login.code])
        const ahead = await createUserAgent().get(change(login.link), { purpose: 'prefetch' })
        const mailed = Object.fromEntries(new URL(login.link).searchParams)
        expect(ahead.hidden).to.deep.include(mailed)
      })
    }

    it('works with all of its words changed', async () => {
      await h.put({ email_link_confirmation: 'off' })
      const changed = wrapped(150, '%0D%0A%20%20')(login.link.replaceAll('&', '&amp;'))
      await login.comesBack(await createUserAgent().get(changed))
    })
  })

  it('works with the host in upper case', async () => {
    const login = await blockedLogin(h)
    const host = new URL(login.link).host.replace('127.0.0.1', 'LOCALHOST')
    const answer = await rawRequest(login.link, { method: 'GET', headers: { host } })
    expect(answer.status).to.equal(302)
    const tokens = await login.party.exchange(login.request, String(answer.headers.location))
    expect(tokens.claims()?.sub).to.equal(login.id)
  })

  describe('and that is broken', () => {
    let login: Person

    before(async () => {
      login = await blockedLogin(h)
    })

    for (const [how, change] of Object.entries(BROKEN)) {
      it(`says that it is not complete ${how}, changes nothing, and leads on`, async () => {
        const person = createUserAgent()
        const answer = await person.get(change(login.link))
        expectPage(answer, 400, 'verify-email', 'expired')
        expect(reasonOf(answer)).to.equal('unknown')
        await login.getsNothing(answer)
        await expectNothingChanged(h, { ...login, agent: person }, answer)
        const form = formsOf(answer).find(({ action }) => action.endsWith('/resend-verification'))
        expect(form?.fields).to.have.property('username', '')
      })
    }

    it('is not spent by any of that: as it was mailed it does all of its work', () =>
      login.stillGetsIn())

    it('leads to a link that verifies, starts no session, and ends the login that it was not mailed for', async () => {
      const cut = await blockedLogin(h)
      const person = createUserAgent()
      const answer = await person.get(cut.link.split('?')[0] ?? '')
      const confirmed = await person.get(await newLinkFrom(h, person, answer, cut))
      expect([confirmed.status, confirmed.mode]).to.deep.equal([200, 'verified'])
      expect(await cut.isVerified()).to.equal(true)
      expectMode(await cut.goesOn(), 400, 'ended')
    })
  })

  it('makes no other link of it: what was put into a value is no part of another', async () => {
    const login = await blockedLogin(h, { extra: { state: 'one two' } })
    const edit = (change: (query: URLSearchParams) => void) => {
      const url = new URL(login.link)
      change(url.searchParams)
      return url.href
    }
    const state = new URL(login.link).searchParams.get('state') ?? ''
    const links = [
      edit((q) => q.set('state', state.replace(' ', ''))),
      edit((q) => q.set('state', `${state}.`)),
      edit((q) => q.set('redirect_uri', `${q.get('redirect_uri')}/`)),
      edit((q) => {
        q.set('scope', `${q.get('scope')}&state=${state}`)
        q.delete('state')
      }),
      `${login.link}%26state%3Dother`.replace('authorize_sig=', 'authorize_sig%3D'),
    ]
    for (const link of links) {
      const answer = await createUserAgent().get(link)
      expect([answer.status, answer.mode], link).to.deep.equal([400, 'expired'])
      await login.getsNothing(answer)
    }
    await login.stillGetsIn()
  })
})

const inToken =
  (text: string): Change =>
  (link) =>
    link.replace(/(token=.{10})/, `$1${text}`)

/** The token alone decides, and its characters are known. */
const MENDED_RESETS: Record<string, Change> = {
  'wrapped with %0A': inToken('%0A'),
  'wrapped with %0D%0A and indented': inToken('%0D%0A%20%20'),
  'with a space in it': inToken('%20'),
  'with a plus in it': inToken('+'),
  'with padding': plus('='),
  'with NUL': plus('%00'),
  'with a space in front': (link) => link.replace('token=', 'token=%20'),
  'with parameters of a campaign': plus('&utm_source=mail&utm_source=news&mc_eid=%ZZ'),
  'with &amp; before a parameter of a campaign': plus('&amp;utm_source=mail'),
  'with a parameter of a campaign and &amp; in front': (link) =>
    link.replace('?', '?utm_source=mail&amp;'),
  'with bytes that are no UTF-8 in front': (link) => link.replace('?', '?utm_source=%FF&'),
  'with a token in brackets beside it': plus('&token[]=x'),
  'with a fragment': plus('#top'),
  ...withEnds(ENDS),
}

const BROKEN_RESETS: Record<string, Change> = {
  'cut in the middle of the token': (link) => link.slice(0, -20),
  'cut by one character': (link) => link.slice(0, -1),
  'cut before the token': (link) => link.slice(0, link.indexOf('token=')),
  'without its query': (link) => link.split('?')[0] ?? '',
  'in lower case': (link) => link.toLowerCase(),
  'with text glued to its end': plus('Thanks'),
  'pasted twice in a row': (link) => link + link,
  'with the token twice': (link) => `${link}&token=${tokenOf(link)}`,
  'with an encoding that is none': inToken('%ZZ'),
  'in quoted-printable': quotedPrintable,
}

describe('A reset link that a mail program or a person changed', () => {
  const h = suiteHarness()
  let mailed: { user: Person; link: string }

  before(async () => {
    mailed = await userWithLink(h)
  })

  for (const [how, change] of Object.entries(MENDED_RESETS)) {
    it(`opens the form ${how}`, async () => {
      const page = await createUserAgent().get(change(mailed.link))
      expectPage(page, 200, 'reset-password', 'form')
      expect(page.hidden).to.deep.equal({ token: tokenOf(mailed.link), ui_locales: 'en' })
    })
  }

  for (const [how, change] of Object.entries(BROKEN_RESETS)) {
    it(`is not known ${how}, leads to the form for a new one, and is not spent`, async () => {
      const page = await createUserAgent().get(change(mailed.link))
      expectPage(page, 400, 'reset-password', 'invalid')
      expect(reasonOf(page)).to.equal('unknown')
      expect(page.text).to.include('/forgot-password').and.not.include('name="password"')
      expect((await createUserAgent().get(mailed.link)).mode).to.equal('form')
    })
  }

  it('does its work as it was mailed, after all of that', async () => {
    const { user, link } = mailed
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(await user.hasPassword('a new password')).to.equal(true)
    await user.getsBackIn()
  })
})
