import { expect } from 'chai'
import { newLinkFrom, reasonOf, statusOf } from '../support/bad-links.ts'
import {
  blockedLogin,
  expectNothingChanged,
  expectResumed,
  expectStillWorks,
  isVerified,
  setsSession,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { formsOf } from '../support/page-forms.ts'
import { rawRequest } from '../support/raw-request.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'

type Change = (link: string) => string

/** Wrapped at this column, in a way of the mail program. */
const wrapped =
  (column: number, by: string): Change =>
  (link) =>
    link.slice(0, column) + by + link.slice(column)

const onValues =
  (change: (value: string) => string): Change =>
  (link) =>
    link.replaceAll(/=([^&]*)/g, (_, value: string) => `=${change(value)}`)

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
  'in quoted-printable': quotedPrintable,
  'in quoted-printable with a soft break': (link) => wrapped(80, '=%0D%0A')(quotedPrintable(link)),
  'with a soft break that lost its line break': wrapped(140, '='),
  'with values encoded twice': onValues(encodeURIComponent),
  'with the whole query encoded': (link) => {
    const [address = '', query = ''] = link.split('?')
    return `${address}?${encodeURIComponent(query)}`
  },
  'with its plus turned into a space': (link) => link.replaceAll('+', '%20'),
  'with parameters of a campaign': (link) => `${link}&utm_source=mail&utm_source=news&mc_eid=%ZZ`,
  'with a parameter of a campaign in front': (link) => link.replace('?', '?fbclid=abc&'),
  'with a fragment': (link) => `${link}#:~:text=confirm`,
  ...Object.fromEntries(
    ['%3E', ')', '.', ',', '%22', "'", '%E2%80%9D', ').', ';', '!', '%20', '%0A', '%5D', '*'].map(
      (end): [string, Change] => [
        `with a trailing ${decodeURIComponent(end)}`,
        (link) => link + end,
      ],
    ),
  ),
}

const cutAfter =
  (name: string): Change =>
  (link) =>
    link.replace(new RegExp(`([?&]${name}=[^&]*).*$`), '$1')

/** What is lost is lost. */
const BROKEN: Record<string, Change> = {
  'cut in the middle of the token': (link) => link.replace(/(token=.{20}).*$/, '$1'),
  ...Object.fromEntries(
    ['token', 'client_id', 'redirect_uri', 'scope', 'state'].map((name): [string, Change] => [
      `cut after its ${name}`,
      cutAfter(name),
    ]),
  ),
  'cut in the middle of its signature': (link) => link.slice(0, -20),
  'without the last character': (link) => link.slice(0, -1),
  'without its query': (link) => link.split('?')[0] ?? '',
  'with an empty query': (link) => `${link.split('?')[0]}?`,
  'in lower case': (link) => link.toLowerCase(),
  'with text glued to its end': (link) => `${link}Thanks`,
  'pasted twice in a row': (link) => link + link,
  'with an encoding that is none': (link) => link.replace('state=', 'state=%ZZ'),
}

describe('A verification link that a mail program or a person changed', () => {
  const h = suiteHarness()

  describe('and that is mended', () => {
    let login: BlockedLogin

    before(async () => {
      await h.put({ email_link_confirmation: 'always' })
      login = await blockedLogin(h, { extra: { state: 'a b&c=d+é' } })
    })

    for (const [how, change] of Object.entries(MENDED)) {
      it(`is read as it was mailed ${how}`, async () => {
        const question = await createUserAgent().get(change(login.link))
        expect([question.status, question.mode]).to.deep.equal([200, 'confirm'])
        const mailed = Object.fromEntries(new URL(login.link).searchParams)
        expect(question.hidden).to.deep.include(mailed)
      })
    }

    it('works with all of its words changed', async () => {
      await h.put({ email_link_confirmation: 'off' })
      const changed = wrapped(150, '%0D%0A%20%20')(login.link.replaceAll('&', '&amp;'))
      await expectResumed(h, login, await createUserAgent().get(changed))
    })
  })

  it('works with the host in upper case', async () => {
    const login = await blockedLogin(h)
    const host = new URL(login.link).host.replace('127.0.0.1', 'LOCALHOST')
    const answer = await rawRequest(login.link, { method: 'GET', headers: { host } })
    expect(answer.status).to.equal(302)
    const tokens = await login.party.exchange(login.request, String(answer.headers.location))
    expect(tokens.claims()?.sub).to.equal(login.user.id)
  })

  describe('and that is broken', () => {
    let login: BlockedLogin

    before(async () => {
      login = await blockedLogin(h)
    })

    for (const [how, change] of Object.entries(BROKEN)) {
      it(`says that it is not complete ${how}, changes nothing, and leads on`, async () => {
        const person = createUserAgent()
        const answer = await person.get(change(login.link))
        expectNotComplete(answer)
        await expectNothingChanged(h, login, answer)
        await expectNothingChanged(h, { ...login, agent: person }, answer)
        expect((await statusOf(h, login)).status).to.equal('waiting')
        const form = formsOf(answer).find(({ action }) => action.endsWith('/resend-verification'))
        expect(form?.fields).to.have.property('username', '')
      })
    }

    it('is not spent by any of that: as it was mailed it does all of its work', () =>
      expectStillWorks(h, login))

    it('leads to a link that verifies, and the window that logged in still knows what it could not tell', async () => {
      const cut = await blockedLogin(h)
      const person = createUserAgent()
      const answer = await person.get(cut.link.split('?')[0] ?? '')
      const confirmed = await person.get(await newLinkFrom(h, person, answer, cut))
      expect([confirmed.status, confirmed.mode]).to.deep.equal([200, 'verified'])
      expect(await isVerified(h, cut.user)).to.equal(true)
      const form = { login: cut.blocked.hidden['login'] ?? '' }
      const back = await cut.agent.post(`${h.oauthUrl}/verify-email/waiting`, form)
      await expectResumed(h, cut, back)
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
      await expectNothingChanged(h, login, answer)
    }
    await expectStillWorks(h, login)
  })
})

function expectNotComplete(answer: Answer) {
  expectPage(answer, 400, 'verify-email', 'expired')
  expect(reasonOf(answer)).to.equal('unknown')
  expect(setsSession(answer)).to.equal(false)
}
