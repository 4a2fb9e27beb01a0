import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { CLIENT } from '../support/harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const CARRIED = { client_id: CLIENT.client_id, redirect_uri: CLIENT.redirect_uris[0], state: 'a' }

describe('A page about a verification link', () => {
  const h = suiteHarness()
  let zoe: User
  let named = 0

  beforeEach(async () => {
    zoe = await h.addUser({ username: `zoe-${(named += 1)}`, emailVerified: false })
  })

  async function linkFor({ username, email }: User): Promise<string> {
    const before = h.mail.mails.filter(({ to }) => to.includes(email ?? '')).length
    await createUserAgent().post(`${h.oauthUrl}/resend-verification`, { username, ...CARRIED })
    return (await h.mail.mailTo(email ?? '', before + 1)).link
  }

  /** In another browser than that of the login. */
  async function expectNobodyNamed(link: string): Promise<Answer> {
    const page = await createUserAgent().get(link)
    expect([page.status, page.mode]).to.deep.equal([400, 'expired'])
    for (const secret of [zoe.username, zoe.email ?? '', zoe.id, 'zoe', 'users.example']) {
      expect(page.text.replaceAll(/[\w-]{43}/g, ' ')).not.to.match(new RegExp(`\\b${secret}\\b`))
    }
    expect(page.hidden).not.to.have.any.keys('username', 'email', 'identifier')
    return page
  }

  it('names nobody, whether it is used, expired, changed or made up (ENU-09)', async () => {
    const link = await linkFor(zoe)
    const changed = link.replace('state=a', 'state=b')
    const madeUp = link.replace(/token=[\w-]{43}/, `token=${'x'.repeat(43)}`)
    expect(new Set([link, changed, madeUp]).size).to.equal(3)
    const pages = [await expectNobodyNamed(changed), await expectNobodyNamed(madeUp)]
    expect((await h.users.findById(zoe.id))?.emailVerified).to.equal(false)
    await createUserAgent().get(link)
    expect((await h.users.findById(zoe.id))?.emailVerified).to.equal(true)
    pages.push(await expectNobodyNamed(link), await expectNobodyNamed(madeUp))
    pages.push(await expectNobodyNamed(`${h.oauthUrl}/verify-email`))
    expect(new Set(pages.map(({ status }) => status))).to.deep.equal(new Set([400]))
  })

  it('names nobody once its time is over, and offers a new link that works (ENU-09)', async () => {
    await h.put({ email_verification_expiration: '1s' })
    const link = await linkFor(zoe)
    await moveTime(1_100)
    const page = await expectNobodyNamed(link)
    expect(page.text).to.match(/<form[^>]*action="[^"]*resend-verification"/)
    await h.put({ email_verification_expiration: '24h' })
    await createUserAgent().get(await linkFor(zoe))
    expect((await h.users.findById(zoe.id))?.emailVerified).to.equal(true)
  })
})
