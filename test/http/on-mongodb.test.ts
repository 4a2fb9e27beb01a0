import { expect } from 'chai'
import { adminOf, outcomeOf } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { type Harness, startHarness, suiteHarness } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { databaseOf, records } from '../support/records.ts'
import { expectExpired } from '../support/person.ts'

/** What only one store could get wrong is shown by the contract suite, and by `npm run test:full`. */
describeWithMongo('Each endpoint and each flow once, on MongoDB', () => {
  const h = suiteHarness({ technology: 'mongodb' })

  it('resets a password: forgot-password, the mail, the form, and nothing that was signed in stays signed in (4.1 to 4.4, 3.3)', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const visitor = user.in()
    await visitor.opensLink(`${h.oauthUrl}/forgot-password`)
    await visitor.sees('forgot-password', 'form')
    const earlier = await visitor.forgets()
    await visitor.forgets()
    await visitor.choosesPassword('a password of the earlier link', earlier)
    await visitor.sees('reset-password', 'invalid', 400)
    await visitor.opensLink()
    await visitor.sees('reset-password', 'form')
    await visitor.choosesPassword('quite another password')
    await visitor.sees('reset-password', 'done')
    expect((await h.silently(user.agent)).get('error')).to.equal('login_required')
    await visitor.choosesPassword('a third password')
    await visitor.sees('reset-password', 'invalid', 400)
    expect((await user.signsIn('quite another password')).location).to.include('code=')
    const type = ['password_reset_completed' as const]
    const { events } = await adminOf(h).listAudit({ account_id: user.id, type })
    expect(events).to.have.length(1)
  })

  it('verifies an address in the login: blocked, the mail, the link, the code (4.6, 4.8)', async () => {
    const login = await h.blockedLogin()
    await login.stillGetsIn()
    expect(await login.account()).to.equal(login.id)
    expectExpired(await login.opensElsewhere())
  })

  it('lets the window that logged in go on once the link was opened elsewhere; sends a new one to whoever asks (4.7)', async () => {
    const login = await h.blockedLogin()
    await login.opensElsewhere()
    await login.comesBack(await login.goesOn())
    const user = await h.addUnverified()
    await user.asksAgain()
    await user.isOnlyVerified(await user.opensLink())
  })

  it('changes settings in one process, which are in force in the other, both ways, the password sealed (4.5, SET-13)', async () => {
    const other = await startHarness({ database: { db: databaseOf(h), drop: async () => {} } })
    const { user, link } = await h.userWithLink()
    const follows = (process: Harness, length: number) =>
      eventually(
        `a form asks for ${length} characters`,
        async () => {
          const page = await user.opensLink(link.replace(h.oauthUrl, process.oauthUrl))
          return page.text.includes(`minlength="${length}"`)
        },
        10_000,
      )
    try {
      await h.put({ validation_min_password_length: '20', smtp_password: 'canary of the server' })
      await follows(other, 20)
      const { answer } = await adminOf(other).getSettings()
      expect(answer.smtp_password).to.equal('***')
      await other.put({ validation_min_password_length: '9' })
      await follows(h, 9)
      const stored = JSON.stringify(await records(h, 'settings').find().toArray())
      expect(stored).to.include('"9"').and.not.include('canary')
    } finally {
      await adminOf(h).unsetSettings(['validation_min_password_length', 'smtp_password'])
      await other.close()
    }
  })

  it('answers what an admin asks: accounts, mails, links, dead letters, audit, doctor', async () => {
    const user = await h.addVerified()
    const admin = adminOf(h)
    const { mail_id } = await admin.sendReset({ user: user.username })
    await outcomeOf(h, mail_id, 'sent')
    const { link } = await user.mail(1)
    expect((await admin.userStatus({ user: user.username })).links).to.have.length(1)
    expect((await admin.explainLink({ link })).state).to.equal('live')
    expect((await admin.listOutbox({ state: 'dead' })).mails).to.deep.equal([])
    const checks = (await admin.runDoctor()).checks.filter(({ step }) => step === 'indexes')
    expect(checks.map(({ status }) => status)).to.deep.equal(['ok'])
    expect((await admin.rotateKeys()).unreadable).to.deep.equal([])
  })
})
