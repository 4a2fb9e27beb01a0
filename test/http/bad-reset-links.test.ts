import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { reasonOf } from '../support/bad-links.ts'
import { mailsTo } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { hasPassword } from '../support/observe.ts'
import { linksOf, press } from '../support/page-forms.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'

type Change = (link: string) => string

const NEW = 'a new password, longer'

const cut =
  (from: number, to = Infinity): Change =>
  (link) =>
    link.slice(0, from) + link.slice(to)

const inToken =
  (text: string): Change =>
  (link) =>
    link.replace(/(token=.{10})/, `$1${text}`)

/** The token alone decides, and its characters are known. */
const MENDED: Record<string, Change> = {
  'wrapped with %0A': inToken('%0A'),
  'wrapped with %0D%0A and indented': inToken('%0D%0A%20%20'),
  'with a space in it': inToken('%20'),
  'with a plus in it': inToken('+'),
  'with a soft break of quoted-printable': inToken('=%0D%0A'),
  'in quoted-printable': (link) => link.replace('token=', 'token=3D'),
  'with its query encoded': (link) => link.replace('token=', 'token%3D'),
  'with parameters of a campaign': (link) => `${link}&utm_source=mail&utm_source=news&mc_eid=%ZZ`,
  'with &amp; before a parameter of a campaign': (link) => `${link}&amp;utm_source=mail`,
  'with a parameter of a campaign and &amp; in front': (link) =>
    link.replace('?', '?utm_source=mail&amp;'),
  'with a fragment': (link) => `${link}#top`,
  ...Object.fromEntries(
    ['%3E', ')', '.', ',', '%22', "'", '%E2%80%9D', ').', ';', '!', '%20', '%0A', '%5D'].map(
      (end): [string, Change] => [
        `with a trailing ${decodeURIComponent(end)}`,
        (link) => link + end,
      ],
    ),
  ),
}

const BROKEN: Record<string, Change> = {
  'cut in the middle of the token': (link) => link.slice(0, -20),
  'cut by one character': (link) => link.slice(0, -1),
  'cut before the token': (link) => cut(link.indexOf('token='))(link),
  'without its query': (link) => link.split('?')[0] ?? '',
  'in lower case': (link) => link.toLowerCase(),
  'with text glued to its end': (link) => `${link}Thanks`,
  'pasted twice in a row': (link) => link + link,
  'with the token twice': (link) => `${link}&token=${new URL(link).searchParams.get('token')}`,
  'with an encoding that is none': inToken('%ZZ'),
}

onBothStores('A reset link', (technology) => {
  let h: Harness
  let added = 0

  before(async () => {
    h = await startHarness({ technology })
  })

  after(() => h.close())

  async function userWithLink() {
    added += 1
    const user = await h.addUser({ username: `forgetful-${added}` })
    return { user, link: await h.resetLink(user) }
  }

  async function expectForm(answer: Answer, user: User) {
    expect([answer.status, answer.page, answer.mode]).to.deep.equal([200, 'reset-password', 'form'])
    const typed = { password: NEW, confirm_password: NEW }
    const done = await press(createUserAgent(), answer, '/reset-password', { typed })
    expect([done.status, done.mode]).to.deep.equal([200, 'done'])
    expect(await hasPassword(h, user, NEW)).to.equal(true)
  }

  function expectInvalid(answer: Answer, reason: string) {
    expect([answer.status, answer.page, answer.mode]).to.deep.equal([
      400,
      'reset-password',
      'invalid',
    ])
    expect(reasonOf(answer)).to.equal(reason)
    expect(answer.text).to.not.include('name="password"')
  }

  /** From the page to the form that asks for a new link, and on to its mail. */
  async function newLinkFrom(page: Answer, user: User): Promise<string> {
    const person = createUserAgent()
    const address = linksOf(page).find((each) => each.endsWith('/forgot-password')) ?? ''
    const form = await person.get(address)
    expect([form.status, form.mode]).to.deep.equal([200, 'form'])
    const before = mailsTo(h, user)
    const typed = { identifier: user.username }
    const sent = await press(person, form, '/forgot-password', { typed })
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    return (await h.mail.mailTo(user.email ?? '', before + 1)).link
  }

  if (technology === 'memory') {
    for (const [how, change] of Object.entries(MENDED)) {
      it(`opens the form ${how}`, async () => {
        const { user, link } = await userWithLink()
        await expectForm(await createUserAgent().get(change(link)), user)
      })
    }

    for (const [how, change] of Object.entries(BROKEN)) {
      it(`leads to a new one ${how}, and is not spent`, async () => {
        const { user, link } = await userWithLink()
        const page = await createUserAgent().get(change(link))
        expectInvalid(page, 'unknown')
        expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
        expect((await createUserAgent().get(link)).mode).to.equal('form')
        const fresh = await newLinkFrom(page, user)
        expectInvalid(await createUserAgent().get(link), 'superseded')
        await expectForm(await createUserAgent().get(fresh), user)
      })
    }
  }

  it('that was used says so, to whoever opens it, and leads to a new one', async () => {
    const { user, link } = await userWithLink()
    await expectForm(await createUserAgent().get(link), user)
    for (const agent of [createUserAgent(), createUserAgent()]) {
      expectInvalid(await agent.get(link), 'used')
    }
    const fresh = await newLinkFrom(await createUserAgent().get(link), user)
    expect((await createUserAgent().get(fresh)).mode).to.equal('form')
  })

  it('that was replaced by a newer one says so, and the newer one works', async () => {
    const { user, link } = await userWithLink()
    const newer = await h.resetLink(user)
    expectInvalid(await createUserAgent().get(link), 'superseded')
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
    await expectForm(await createUserAgent().get(newer), user)
  })

  it('that expired says so, and one click sends a new one without a name', async () => {
    await h.put({ password_reset_expiration: '1s' })
    const { user, link } = await userWithLink()
    await h.put({ password_reset_expiration: '1h' })
    await sleep(1_100)
    const page = await createUserAgent().get(link)
    expectInvalid(page, 'expired')
    const sent = await press(createUserAgent(), page, '/forgot-password')
    expect([sent.status, sent.page, sent.mode]).to.deep.equal([200, 'forgot-password', 'sent'])
    const { link: fresh } = await h.mail.mailTo(user.email ?? '', 2)
    await expectForm(await createUserAgent().get(fresh), user)
  })

  it('says that something changed once the address is another one, and leads to a new one', async () => {
    const { user, link } = await userWithLink()
    const email = `new-${user.email}`
    await h.changeUser(user, { email })
    const page = await createUserAgent().get(link)
    expectInvalid(page, 'changed')
    const fresh = await newLinkFrom(page, { ...user, email })
    await expectForm(await createUserAgent().get(fresh), user)
  })

  it('says that something changed while the account is disabled, and works once it is enabled', async () => {
    const { user, link } = await userWithLink()
    await h.changeUser(user, { disabled: true })
    expectInvalid(await createUserAgent().get(link), 'changed')
    await h.changeUser(user, { disabled: false })
    await expectForm(await createUserAgent().get(link), user)
  })

  if (technology === 'mongodb') {
    it('says that something changed once the account was deleted, and the form changes nothing', async () => {
      const { user, link } = await userWithLink()
      const form = await createUserAgent().get(link)
      await h.db?.collection<{ _id: string }>('users').deleteOne({ _id: user.id })
      expectInvalid(await createUserAgent().get(link), 'changed')
      const typed = { password: NEW, confirm_password: NEW }
      const late = await press(createUserAgent(), form, '/reset-password', { typed })
      expect([late.status, late.mode]).to.deep.equal([400, 'invalid'])
      expect(await h.users.findById(user.id)).to.equal(undefined)
    })

    for (const [where, minutes] of [
      ['ahead of', 3],
      ['behind', -3],
    ] as const) {
      it(`written by a process whose clock is three minutes ${where} ours works`, async () => {
        const { user, link } = await userWithLink()
        const shift = (name: string) => ({
          $dateAdd: { startDate: `$${name}`, unit: 'minute', amount: minutes },
        })
        const tokens = h.db?.collection('password_reset_tokens')
        const shifted = await tokens?.updateOne({ user_id: user.id }, [
          { $set: { created_at: shift('created_at'), expires_at: shift('expires_at') } },
        ])
        expect(shifted?.modifiedCount).to.equal(1)
        await expectForm(await createUserAgent().get(link), user)
      })
    }
  }
})
