import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { newLinkFrom, reasonOf, statusOf } from '../support/bad-links.ts'
import {
  accountOf,
  blockedLogin,
  changeUser,
  expectNothingChanged,
  expectOnlyVerified,
  expectResumed,
  expectStillWorks,
  isVerified,
  mailsTo,
  sessionId,
  setsSession,
} from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { type Harness } from '../support/harness.ts'
import { isIdle, later, withoutJobs } from '../support/jobs.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { formsOf, press } from '../support/page-forms.ts'

import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'

function expectRefused(answer: Answer, reason: string) {
  expectPage(answer, 400, 'verify-email', 'expired')
  expect(reasonOf(answer)).to.equal(reason)
  expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
}

async function expectNoMailFrom(h: Harness, page: Answer, user: User) {
  await withoutJobs(h, async () => {
    const form = formsOf(page).find(({ action }) => action.endsWith('/resend-verification'))
    const typed = form && 'username' in form.fields ? { username: user.username } : {}
    const sent = await press(createUserAgent(), page, '/resend-verification', { typed })
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    await isIdle(h)
  })
}

describe('A verification link that is opened too late, or for somebody else', () => {
  const h = suiteHarness()

  it('a second time, by the same person or another: says that it was used, and the session stays', async () => {
    const login = await blockedLogin(h)
    await expectStillWorks(h, login)
    const session = sessionId(h, login.agent)
    expectRefused(await login.agent.get(login.link), 'used')
    expect(sessionId(h, login.agent)).to.equal(session)
    const other = createUserAgent()
    expectRefused(await other.get(login.link), 'used')
    expect(sessionId(h, other)).to.equal(undefined)
    expect(await accountOf(h, login.agent)).to.equal(login.user.id)
  })

  it('after its time: one click sends a new link, without a name, which finishes the login', async () => {
    const login = await blockedLogin(h)
    const person = createUserAgent()
    await later(h, 24 * 3_600_000)
    const page = await person.get(login.link)
    expectRefused(page, 'expired')
    await expectNothingChanged(h, login, page)
    const link = await newLinkFrom(h, person, page, login)
    await expectResumed(h, { ...login, link }, await person.get(link))
    expectRefused(await person.get(login.link), 'used')
  })

  it('while the account is disabled: says that something changed, sends nothing, and works once it is enabled', async () => {
    const login = await blockedLogin(h)
    await changeUser(h, login.user, { disabled: true })
    const page = await login.agent.get(login.link)
    expectRefused(page, 'changed')
    await expectNothingChanged(h, login, page)
    await expectNoMailFrom(h, page, login.user)
    await changeUser(h, login.user, { disabled: false })
    await expectStillWorks(h, login)
  })

  it('after the address changed: says so, and the new link goes to the new address', async () => {
    const login = await blockedLogin(h)
    const email = `new-${login.user.email}`
    await changeUser(h, login.user, { email })
    const page = await login.agent.get(login.link)
    expectRefused(page, 'changed')
    await expectNothingChanged(h, login, page)
    const link = await newLinkFrom(h, login.agent, page, login, email)
    expect(mailsTo(h, login.user)).to.equal(1)
    await login.agent.get(link)
    expect(await isVerified(h, login.user)).to.equal(true)
    expect((await h.signIn(createUserAgent(), login.user.username)).location).to.include('code=')
  })

  it('after the interaction expired and all cookies were lost: finishes the login all the same', async () => {
    const login = await blockedLogin(h)
    const interaction = await h.provider.Interaction.find(login.interaction)
    await interaction?.destroy()
    login.agent.forget()
    expect(await statusOf(h, login)).to.deep.equal({ status: 'ended' })
    const form = { login: login.blocked.hidden['login'] ?? '' }
    const over = await login.agent.post(`${h.oauthUrl}/verify-email/waiting`, form)
    expect([over.status, over.mode, over.location]).to.deep.equal([400, 'ended', undefined])
    await expectStillWorks(h, login)
  })

  it('with all cookies lost where the link asks first: confirms, and the next sign-in goes through', async () => {
    await h.put({ email_link_confirmation: 'other_browser' })
    const login = await blockedLogin(h)
    login.agent.forget()
    const question = await login.agent.get(login.link)
    expect([question.status, question.mode]).to.deep.equal([200, 'confirm'])
    await expectNothingChanged(h, login, question)
    const answer = await press(login.agent, question, '/verify-email', { button: 'confirm' })
    await expectOnlyVerified(h, login, answer)
    await h.put({ email_link_confirmation: 'off' })
    expect((await h.signIn(login.agent, login.user.username)).location).to.include('code=')
  })
})

describeWithMongo('A verification link in the database [full]', () => {
  const h = suiteHarness({ technology: 'mongodb' })

  it('after the account was deleted: says that something changed, and sends nothing', async () => {
    const login = await blockedLogin(h)
    await h.db?.collection<{ _id: string }>('users').deleteOne({ _id: login.user.id })
    const page = await login.agent.get(login.link)
    expectRefused(page, 'changed')
    await expectNothingChanged(h, login, page)
    await expectNoMailFrom(h, page, login.user)
    const form = { login: login.blocked.hidden['login'] ?? '' }
    const over = await login.agent.post(`${h.oauthUrl}/verify-email/waiting`, form)
    expect([over.status, over.mode]).to.deep.equal([400, 'ended'])
  })

  for (const [where, minutes] of [
    ['ahead of', 3],
    ['behind', -3],
  ] as const) {
    it(`written by a process whose clock is three minutes ${where} ours: works`, async () => {
      const login = await blockedLogin(h)
      const shift = (name: string) => ({
        $dateAdd: { startDate: `$${name}`, unit: 'minute', amount: minutes },
      })
      const ofUser = [{ user_id: login.user.id }, { account_id: login.user.id }] as const
      const [token, pending] = await Promise.all([
        h.db
          ?.collection('email_verification_tokens')
          .updateOne(ofUser[0], [
            { $set: { created_at: shift('created_at'), expires_at: shift('expires_at') } },
          ]),
        h.db
          ?.collection('pending_logins')
          .updateOne(ofUser[1], [
            { $set: { created_at: shift('created_at'), purge_at: shift('purge_at') } },
          ]),
      ])
      expect([token?.modifiedCount, pending?.modifiedCount]).to.deep.equal([1, 1])
      await expectResumed(h, login, await createUserAgent().get(login.link))
      const form = { login: login.blocked.hidden['login'] ?? '' }
      const back = await login.agent.post(`${h.oauthUrl}/verify-email/waiting`, form)
      await expectResumed(h, login, back)
    })
  }
})
