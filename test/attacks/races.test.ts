import { expect } from 'chai'
import { expectExpired, expectStillWorks, silently } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { ask, databaseOf, usableRecord } from '../support/observe.ts'
import { turns } from '../support/turns.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  setsSession,
  tokenOf,
  wrongCode,
} from '../support/person.ts'

const NEW = 'a new password'

onBothStores('Requests at the same moment', (technology) => {
  const h = suiteHarness({ technology })

  /** Forms that are no forms, beside one that is (RACE-04). */
  const post = (url: string, body: string, type = 'application/x-www-form-urlencoded') =>
    createUserAgent().request('POST', url, { headers: { 'content-type': type }, body })

  it('give one reset of one link, whatever the bodies are written in (RACE-01, RACE-04)', async () => {
    const user = await addVerified(h)
    const link = await user.forgets()
    const url = `${h.oauthUrl}/reset-password`
    const passwords = Array.from({ length: 12 }, (_none, index) => `password number ${index}`)
    const answers = await Promise.all(
      passwords.flatMap((password) => {
        const form = { token: tokenOf(link), password, confirm_password: password }
        const text = new URLSearchParams(form).toString()
        return [
          post(url, text),
          post(url, text, 'application/x-www-form-urlencoded; charset=utf-8'),
          post(url, JSON.stringify(form), 'application/json'),
          post(url, `${text}&token=${tokenOf(link)}`),
        ]
      }),
    )
    const won = answers.flatMap(({ mode }, index) => (mode === 'done' ? [index] : []))
    expect(won).to.have.length(1)
    const refusals = ['400 invalid', '400 invalid', '415 unsupported_media_type', '400 bad_request']
    const expected = answers.map(({ mode }, index) =>
      mode === 'done' ? '200 done' : refusals[index % 4],
    )
    expect(answers.map(({ status, mode }) => `${status} ${mode}`)).to.deep.equal(expected)
    for (const [index, password] of passwords.entries()) {
      const isWinner = index === Math.floor((won[0] ?? -1) / 4)
      expect(await user.hasPassword(password), password).to.equal(isWinner)
    }
    expect(await user.hasPassword(PASSWORD)).to.equal(false)
    expect(user.events('password_reset_completed')).to.have.length(1)
    expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')
  })

  it('give one effect of one verification link, opened and answered in every way (RACE-04, RACE-05)', async () => {
    const login = await blockedLogin(h)
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => [
        login.agent.get(login.link),
        login.types(login.code),
        login.types(wrongCode(login.code)),
        login.goesOn(),
      ]).flat(),
    )
    const codes = answers.filter(({ location }) => location !== undefined)
    expect(codes.length).to.be.at.most(1)
    expect(answers.filter(setsSession)).to.deep.equal(codes)
    for (const { status } of answers) expect(status).to.be.oneOf([200, 302, 400])
    expect(await login.isVerified()).to.equal(true)
    const events = login.events('email_verification_completed')
    expect(events).to.have.length(1)
    const late = await createUserAgent().get(login.link)
    expectExpired(late)
  })

  it('of two links of one account give one session (RACE-05)', async () => {
    const user = await addUnverified(h)
    const [first, second] = [await blockedLogin(h, { user }), await blockedLogin(h, { user })]
    const links = [first.link, second.link]
    const answers = await Promise.all(links.map((link) => createUserAgent().get(link)))
    expect(answers.filter(setsSession)).to.have.length(1)
    expect(answers.filter(({ location }) => location !== undefined)).to.have.length(1)
    expect(user.events('email_verification_completed')).to.have.length(1)
  })

  it('of two codes of one account, or a code and a link, finish one login (RACE-05)', async () => {
    for (const isLink of [false, true]) {
      const user = await addUnverified(h)
      const [first, second] = [await blockedLogin(h, { user }), await blockedLogin(h, { user })]
      const answers = await Promise.all([
        first.types(first.code),
        isLink ? second.agent.get(second.link) : second.types(second.code),
      ])
      expect(answers.filter(setsSession)).to.have.length(1)
      expect(user.events('email_verification_completed')).to.have.length(1)
    }
  })

  it('a reset and a newer request: the reset is done, or the newer link works; never neither (RACE-02)', async () => {
    await Promise.all(
      Array.from({ length: 10 }, async (_none, round) => {
        const user = await addVerified(h)
        const old = await user.forgets()
        const [{ mode }] = await Promise.all([
          turns(round * 3).then(() => h.reset(old, NEW)),
          ask(h, user.username),
        ])
        expect(mode).to.be.oneOf(['done', 'invalid'])
        expect(await user.hasPassword(mode === 'done' ? NEW : PASSWORD)).to.equal(true)
        const completed = user.events('password_reset_completed')
        expect(completed).to.have.length(mode === 'done' ? 1 : 0)
        // Either way the earlier link is dead.
        expect((await h.reset(old, 'yet another one')).mode).to.equal('invalid')
        const newer = h.mail.mails.findLast(({ to }) => to.includes(user.email ?? ''))?.link
        const isAlive = newer !== old && (await usableRecord(h, newer ?? '')) !== undefined
        if (mode !== 'done') expect(isAlive).to.equal(true)
        const next = await user.forgets()
        expect((await h.reset(next, 'an honest password')).mode).to.equal('done')
        expect(await user.hasPassword('an honest password')).to.equal(true)
      }),
    )
  })

  it('a reset and a verification: both are whole, and nothing from before the reset lives (I5, I6)', async () => {
    await Promise.all(
      Array.from({ length: 6 }, async (_none, round) => {
        const login = await blockedLogin(h)
        const resetLink = await login.forgets()
        const agent = createUserAgent()
        const [verified, { mode }] = await Promise.all([
          turns(round * 2).then(() => agent.get(login.link)),
          h.reset(resetLink, NEW),
        ])
        expect(mode).to.equal('done')
        expect(await login.isVerified()).to.equal(`${verified.status}` !== '400')
        expect((await silently(h, agent)).get('error')).to.equal('login_required')
      }),
    )
  })
})

describeWithMongo(
  'A verification while the account changes (RACE-06, RACE-07, VER-09) [full]',
  () => {
    const h = suiteHarness({ technology: 'mongodb' })

    const users = () => databaseOf(h).collection<{ _id: string }>('users')

    it('never verifies an address that the link was not mailed to', async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, async (_none, round) => {
          const login = await blockedLogin(h)
          const email = `changed-${round}@users.example`
          const [answer] = await Promise.all([
            turns(round).then(() => createUserAgent().get(login.link)),
            // As a host does that lets people change their address.
            users().updateOne({ _id: login.id }, { $set: { email, email_verified: false } }),
          ])
          expect(answer.status).to.be.oneOf([200, 302, 400])
          const stored = await users().findOne({ _id: login.id })
          expect(stored).to.include({ email, email_verified: false })
          expectExpired(await createUserAgent().get(login.link))
          return answer.status
        }),
      )
      expect(answers).to.include(400)
      await expectStillWorks(h, await blockedLogin(h))
    })

    it('refuses the second of two accounts that want one address, where the host allows it once', async () => {
      const index = await users().createIndex(
        { email: 1 },
        { unique: true, partialFilterExpression: { email_verified: true } },
      )
      const email = 'both@users.example'
      const [one, two] = [await addUnverified(h, { email }), await addUnverified(h, { email })]
      for (const user of [one, two]) {
        const form = { username: user.username }
        await createUserAgent().post(`${h.oauthUrl}/resend-verification`, form)
        const sent = () => user.events('email_verification_mail_sent')
        await eventually('the mail leaves', () => sent().length > 0)
      }
      const mailed = h.mail.mails.filter(({ to }) => to.includes(email)).map(({ link }) => link)
      expect(mailed).to.have.length(2)
      const answers = await Promise.all(mailed.map((link) => createUserAgent().get(link)))
      const outcomes = answers.map(({ status, mode }) => `${status} ${mode}`).toSorted()
      expect(outcomes).to.deep.equal(['200 verified', '400 expired'])
      expect([await one.isVerified(), await two.isVerified()].filter(Boolean)).to.have.length(1)
      await users().dropIndex(index)
    })
  },
)
