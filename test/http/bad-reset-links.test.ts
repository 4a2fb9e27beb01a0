import { expect } from 'chai'
import { reasonOf } from '../support/bad-links.ts'
import { expectPage } from '../support/expect-page.ts'
import { PASSWORD } from '../support/harness.ts'
import { hasPassword, tokenOf } from '../support/observe.ts'
import { isMendedBy, userWithLink, type UserWithLink } from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

type Change = (link: string) => string

const inToken =
  (text: string): Change =>
  (link) =>
    link.replace(/(token=.{10})/, `$1${text}`)

const plus =
  (text: string): Change =>
  (link) =>
    link + text

const ENDS = ['%3E', ')', '.', ',', '%22', "'", '%E2%80%9D', ').', ';', '!', '%20', '%0A', '%5D']

/** The token alone decides, and its characters are known. */
const MENDED: Record<string, Change> = {
  'wrapped with %0A': inToken('%0A'),
  'wrapped with %0D%0A and indented': inToken('%0D%0A%20%20'),
  'with a space in it': inToken('%20'),
  'with a plus in it': inToken('+'),
  'with a soft break of quoted-printable': inToken('=%0D%0A'),
  'with padding': plus('='),
  'with NUL': plus('%00'),
  'with a space in front': (link) => link.replace('token=', 'token=%20'),
  'in quoted-printable': (link) => link.replace('token=', 'token=3D'),
  'with its query encoded': (link) => link.replace('token=', 'token%3D'),
  'with parameters of a campaign': plus('&utm_source=mail&utm_source=news&mc_eid=%ZZ'),
  'with &amp; before a parameter of a campaign': plus('&amp;utm_source=mail'),
  'with a parameter of a campaign and &amp; in front': (link) =>
    link.replace('?', '?utm_source=mail&amp;'),
  'with bytes that are no UTF-8 in front': (link) => link.replace('?', '?utm_source=%FF&'),
  'with a token in brackets beside it': plus('&token[]=x'),
  'with a fragment': plus('#top'),
  ...Object.fromEntries(
    ENDS.map((end) => [`with a trailing ${decodeURIComponent(end)}`, plus(end)]),
  ),
}

const BROKEN: Record<string, Change> = {
  'cut in the middle of the token': (link) => link.slice(0, -20),
  'cut by one character': (link) => link.slice(0, -1),
  'cut before the token': (link) => link.slice(0, link.indexOf('token=')),
  'without its query': (link) => link.split('?')[0] ?? '',
  'in lower case': (link) => link.toLowerCase(),
  'with text glued to its end': plus('Thanks'),
  'pasted twice in a row': (link) => link + link,
  'with the token twice': (link) => `${link}&token=${tokenOf(link)}`,
  'with an encoding that is none': inToken('%ZZ'),
}

describe('A reset link that a mail program or a person changed', () => {
  const h = suiteHarness()
  let mailed: UserWithLink

  before(async () => {
    mailed = await userWithLink(h)
  })

  for (const [how, change] of Object.entries(MENDED)) {
    it(`opens the form ${how}`, async () => {
      const page = await createUserAgent().get(change(mailed.link))
      expectPage(page, 200, 'reset-password', 'form')
      expect(page.hidden).to.deep.equal({ token: tokenOf(mailed.link) })
    })
  }

  for (const [how, change] of Object.entries(BROKEN)) {
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
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(await hasPassword(h, user, 'a new password')).to.equal(true)
    await isMendedBy(h, user)
  })
})
