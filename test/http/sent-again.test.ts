import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { isIdle, later, withoutJobs } from '../support/jobs.ts'
import { shapeOf, usableRecord } from '../support/observe.ts'
import { formsOf } from '../support/page-forms.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { addUnverified, addVerified, blockedLogin, tokenOf } from '../support/person.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A form as it was sent, so that it can be sent again. */
interface Sent {
  action: string
  fields: Record<string, string>
}

onBothStores('A form that asks for a mail, sent again', (technology) => {
  const h = suiteHarness({ technology })
  const agent = createUserAgent()
  const post = ({ action, fields }: Sent) => agent.post(action, fields)

  function formOf(page: Answer, path: string, typed: Record<string, string> = {}): Sent {
    const form = formsOf(page).find(({ action }) => action.endsWith(path))
    expect(form?.fields['form_id']).to.match(/^[\w-]{22}$/)
    return { action: form?.action ?? '', fields: { ...form?.fields, ...typed } }
  }

  const forgotForm = async (identifier: string) =>
    formOf(await agent.get(`${h.oauthUrl}/forgot-password`), '/forgot-password', { identifier })

  /** Each page that has such a form, and whom its mail goes to. */
  const forms: Record<string, () => Promise<{ email: string; sent: Sent }>> = {
    'the forgot-password form': async () => {
      const { username, email = '' } = await addVerified(h)
      return { email, sent: await forgotForm(username) }
    },
    'the forgot-password form that came back': async () => {
      const { username, email = '' } = await addVerified(h)
      const back = await post(await forgotForm(''))
      return { email, sent: formOf(back, '/forgot-password', { identifier: username }) }
    },
    'the page of an expired reset link': async () => {
      const user = await addVerified(h)
      const link = await user.forgets()
      await later(h, DAY_MS)
      return { email: user.email ?? '', sent: formOf(await agent.get(link), '/forgot-password') }
    },
    'the blocked page': async () => {
      const { user, blocked } = await blockedLogin(h)
      return { email: user.email ?? '', sent: formOf(blocked, '/resend-verification') }
    },
    'the page of an expired verification link': async () => {
      const { user, link } = await blockedLogin(h)
      await later(h, 2 * DAY_MS)
      const page = await agent.get(link)
      return { email: user.email ?? '', sent: formOf(page, '/resend-verification') }
    },
  }
  /** An id is that of its form for a week of the calendar. */
  const atNextWeek = () => later(h, 7 * DAY_MS - (Date.now() % (7 * DAY_MS)))

  for (const [page, open] of Object.entries(forms)) {
    it(`from ${page} is the same request: the same answer, and no second mail, at once and days later`, async () => {
      await atNextWeek()
      const { email, sent } = await open()
      const before = h.mail.mails.filter(({ to }) => to.includes(email)).length
      const [first, atOnce] = await Promise.all([post(sent), post(sent)])
      expect([first.status, first.mode]).to.deep.equal([200, 'sent'])
      const { link } = await h.mail.mailTo(email, before + 1)
      await isIdle(h)
      const answers = [atOnce]
      for (const ms of [0, HOUR_MS / 2, DAY_MS]) {
        await later(h, ms)
        await withoutJobs(h, async () => answers.push(await post(sent)))
      }
      for (const answer of answers) {
        // The token that it is asked by may be spent or replaced by then.
        if (answer.mode === 'sent') expect(shapeOf(answer)).to.deep.equal(shapeOf(first))
        else expect(sent.fields).to.have.property('token')
      }
      const mails = h.mail.mails.filter(({ to }) => to.includes(email))
      expect(mails.map((mail) => mail.link).slice(before)).to.deep.equal([link])
    })
  }

  it('is another request a week later, and the log has events of each', async () => {
    const user = await addVerified(h)
    const sent = await forgotForm(user.username)
    for (const count of [1, 2]) {
      await post(sent)
      await h.mail.mailTo(user.email ?? '', count)
      await isIdle(h)
      for (const type of ['password_reset_requested', 'password_reset_mail_sent'] as const) {
        expect(user.events(type)).to.have.length(count)
      }
      await atNextWeek()
    }
  })

  it('leaves the link of its mail alive', async () => {
    const user = await addVerified(h)
    const sent = await forgotForm(user.username)
    await post(sent)
    const { link } = await h.mail.mailTo(user.email ?? '')
    await isIdle(h)
    await withoutJobs(h, () => post(sent))
    expect(await usableRecord(h, link)).to.include({ userId: user.id })
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })

  it('is another request by another name, of another kind, or with another form: nobody keeps the mail of somebody else back', async () => {
    const [ann, ben] = [await addVerified(h), await addVerified(h)]
    const sent = await forgotForm(ann.username)
    const id = sent.fields['form_id'] ?? ''
    await post(sent)
    await h.mail.mailTo(ann.email ?? '')
    await post({ ...sent, fields: { ...sent.fields, identifier: ben.username } })
    await h.mail.mailTo(ben.email ?? '')
    await post(await forgotForm(ann.username))
    await h.mail.mailTo(ann.email ?? '', 2)
    const eve = await addUnverified(h)
    await post({ ...sent, fields: { identifier: eve.username, form_id: id } })
    const action = `${h.oauthUrl}/resend-verification`
    await post({ action, fields: { username: eve.username, form_id: id } })
    await h.mail.mailTo(eve.email ?? '')
    await isIdle(h)
    expect([ann, ben, eve].map((user) => user.mailCount())).to.deep.equal([2, 1, 2])
  })

  it('is no longer the same once its id is what no form of ours has, or there is none', async () => {
    const user = await addVerified(h)
    const { action } = await forgotForm(user.username)
    let mails = 0
    for (const id of [undefined, undefined, '', 'x', 'x'.repeat(23)]) {
      const fields = { identifier: user.username, ...(id !== undefined && { form_id: id }) }
      expect((await post({ action, fields })).mode).to.equal('sent')
      await h.mail.mailTo(user.email ?? '', (mails += 1))
      await isIdle(h)
    }
  })

  it('has an id that no address gives it, and another one each time', async () => {
    const id = 'A'.repeat(22)
    const page = await agent.get(`${h.oauthUrl}/forgot-password?form_id=${id}`)
    const ids = [page.hidden['form_id'], (await forgotForm('x')).fields['form_id']]
    expect(new Set([id, ...ids]).size).to.equal(3)
  })

  it('is asked for once by a page of a link whose token alone is posted', async () => {
    const user = await addVerified(h)
    const link = await user.forgets()
    await later(h, DAY_MS)
    const page = await agent.get(link)
    expect(page.hidden['token']).to.equal(tokenOf(link))
    const sent = await post(formOf(page, '/forgot-password'))
    expect(sent.text).not.to.include(user.username)
    expect(sent.text).to.include('to the same email address')
    await h.mail.mailTo(user.email ?? '', 2)
    await isIdle(h)
  })
})
