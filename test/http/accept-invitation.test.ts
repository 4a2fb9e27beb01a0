import { expect } from 'chai'
import { memoryUsers, type User } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage, linksOf, createUserAgent } from '../support/user-agent.ts'
import { CLIENT, type Harness, onEachStore, suiteHarness } from '../support/harness.ts'
import { isGivenBack } from '../support/jobs.ts'
import { sha256 } from '../support/observe.ts'
import { OTHER_HASH, type Person, tokenOf } from '../support/person.ts'
import { beforeFirst, instead } from '../support/records.ts'
import { moveTime } from '../support/time.ts'
import { expectTitle, words } from '../support/words.ts'

const NEW = 'a first password'
const PAGE = 'accept-invitation'
const WEEK_MS = 7 * 86_400_000
const agent = createUserAgent()

async function invited(h: Harness, changes: Partial<User> = {}) {
  const user = await h.addImported(changes)
  return { user, link: await user.isInvited() }
}

onEachStore('An invitation (3.4)', (technology) => {
  const h = suiteHarness({ technology, mayLogErrors: true })

  const completed = (user: Person) => user.events('invitation_completed')

  async function expectUntouched(user: Person) {
    expect(await h.users.findById(user.id)).to.include({
      passwordHash: undefined,
      emailVerified: false,
    })
    expect(completed(user)).to.deep.equal([])
  }

  async function expectDead(user: Person, link: string) {
    await h.withoutJobs(async () => {
      const renewed = { token: tokenOf(link), action: 'renew' }
      for (const page of [
        await agent.get(link),
        await user.choosesPassword(NEW, link),
        await agent.post(`${h.oauthUrl}/${PAGE}`, renewed),
      ]) {
        expectPage(page, 400, PAGE, 'invalid')
        expectTitle(page, 'reset-password.invalid.changed.title')
        expect(page.text).not.to.include('value="renew"')
      }
    })
  }

  it('is opened as often as anybody likes, and sets the first password once: the address is verified by that', async () => {
    const { user, link } = await invited(h)
    const neighbour = await h.addImported({ email: user.email })
    expect(new URL(link).pathname).to.equal(`/oauth2/${PAGE}`)
    await agent.request('HEAD', link)
    for (const headers of [{}, { 'sec-purpose': 'prefetch' }, { 'x-moz': 'prefetch' }]) {
      expectPage(await agent.get(link, headers), 200, PAGE, 'form')
    }
    expectPage(await user.choosesPassword(NEW, link, 'another one'), 400, PAGE, 'password_mismatch')
    expectPage(await user.choosesPassword('short', link), 400, PAGE, 'password_too_short')
    await expectUntouched(user)

    const done = await user.choosesPassword(NEW, link)
    expectPage(done, 200, PAGE, 'done')
    expect(done.headers.getSetCookie()).to.deep.equal([])
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(await user.isVerified()).to.equal(true)
    expect(completed(user)).to.have.length(1)
    await expectUntouched(neighbour)
    expect((await user.in().signsIn(NEW)).location).to.include('code=')

    for (const again of [
      await user.choosesPassword('another password', link),
      await agent.get(link),
    ]) {
      expectPage(again, 400, PAGE, 'invalid')
      expectTitle(again, 'reset-password.invalid.used.title')
    }
    expect(await user.hasPassword(NEW)).to.equal(true)
    const record = await h.store.invitationTokens.find(sha256(tokenOf(link)))
    expect(record?.completedAt).to.be.instanceOf(Date)
  })

  it('ends with a newer one: the first link says so, and the newest works', async () => {
    const { user, link } = await invited(h)
    const newer = await user.isInvited()
    for (const page of [await agent.get(link), await user.choosesPassword(NEW, link)]) {
      expectPage(page, 400, PAGE, 'invalid')
      expectTitle(page, 'reset-password.invalid.superseded.title')
      expect(page.text).not.to.include('forgot-password')
    }
    await expectUntouched(user)
    expectPage(await user.choosesPassword(NEW, newer), 200, PAGE, 'done')
  })

  const changes: Record<string, Partial<User>> = {
    'has a password': { passwordHash: OTHER_HASH },
    'has another address': { email: 'elsewhere@users.example' },
    'has the address in other letters': { email: 'INVITED-LETTERS@users.example' },
    'is disabled': { disabled: true },
  }
  for (const [what, change] of Object.entries(changes)) {
    it(`does nothing where the account ${what} at the very moment that it is set (TOK-18, RACE-06)`, async () => {
      const { user, link } = await invited(h, { email: 'invited-letters@users.example' })
      beforeFirst(h.users, 'setFirstPassword', () => user.becomes(change))
      expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
      const after = await h.users.findById(user.id)
      expect(after).to.include({ emailVerified: false, ...change })
      expect(await user.hasPassword(NEW)).to.equal(false)
      const reason = change.passwordHash ? 'newer_password' : 'account_changed'
      expect(user.events('invitation_rejected', reason)).to.have.length(1)
      expect(completed(user)).to.deep.equal([])
      expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
    })
  }

  it('that expired is one click away from a new one, which goes to the same address and works', async () => {
    const { user, link } = await invited(h)
    await h.later(WEEK_MS)
    expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
    await expectUntouched(user)
    expectTitle(await user.opensLink(link), 'reset-password.invalid.expired.title')
    expectPage(await user.presses(PAGE), 200, PAGE, 'sent')
    const { link: newer } = await user.mail(2)
    await h.isIdle()
    expectPage(await user.choosesPassword(NEW, newer), 200, PAGE, 'done')
  })

  it('ends what the account was signed in with before, and tells its owner', async () => {
    await h.put({ password_changed_email: 'true' })
    const user = await h.addVerified()
    await user.signsIn()
    await user.becomes({ passwordHash: undefined })
    expect(await user.account()).to.equal(user.id)
    const mails = user.mailCount()
    expectPage(await user.choosesPassword(NEW, await user.isInvited()), 200, PAGE, 'done')
    expect(await user.account()).to.equal(undefined)
    const { mail } = await user.mail(mails + 2)
    expect(mail.subject).to.equal(words['accept-invitation.done.title'])
    expect(mail.text).not.to.include('was changed')
    await h.put({ password_changed_email: 'false' })
  })

  it('is finished by another process where one dies between its effects, and recorded once', async () => {
    const { user, link } = await invited(h)
    let calls = 0
    const thenDies = (set: typeof h.users.setFirstPassword): typeof set => {
      return async (...of) => {
        calls += 1
        await set?.(...of)
        throw new Error('the process dies')
      }
    }
    await instead(h.users, 'setFirstPassword', thenDies, async () => {
      expectPage(await user.choosesPassword(NEW, link), 500, 'error', 'error')
      await eventually('another process has finished', async () => {
        await moveTime(1_000)
        return completed(user).at(0)
      })
    })
    expect(calls).to.equal(1)
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(await user.isVerified()).to.equal(true)
    expect(completed(user)).to.have.length(1)
  })

  it('is refused with a reason by flows.invite(), and nothing is asked for', async () => {
    const refusals: [string, Partial<User>][] = [
      ['has_password', { passwordHash: OTHER_HASH }],
      ['disabled', { disabled: true }],
      ['no_address', { email: undefined }],
      ['bad_address', { email: 'no address' }],
    ]
    await h.withoutJobs(async () => {
      for (const [refused, change] of refusals) {
        const user = await h.addImported(change)
        for (const who of [user, user.id, { ...user, passwordHash: undefined, disabled: false }])
          expect(await h.flows.invite(who)).to.deep.equal({ refused })
      }
      expect(await h.flows.invite('nobody')).to.deep.equal({ refused: 'not_found' })
    })
  })

  it('is not mailed where it has to wait, and the account has a password by then', async () => {
    const user = await h.addImported()
    await h.put({ smtp_host: '' })
    await h.flows.invite(user)
    await eventually('looked up', () => user.events('invitation_requested')[0])
    await isGivenBack(h)
    await user.becomes({ passwordHash: OTHER_HASH })
    await h.put({ smtp_host: '127.0.0.1' })
    await eventually('no mail', () => user.events('invitation_mail_failed', 'has_password')[0])
    expect(user.mailCount()).to.equal(0)
  })

  it('dies with endSessions, and once its account was met disabled; nobody renews it then', async () => {
    const { user, link } = await invited(h)
    await h.flows.endSessions(user.id)
    await expectDead(user, link)
    const second = await user.isInvited()
    await user.becomes({ disabled: true })
    await expectDead(user, second)
    await user.becomes({ disabled: false })
    await expectDead(user, second)
    const third = await user.isInvited()
    await h.later(WEEK_MS)
    await h.flows.endSessions(user.id)
    await expectDead(user, third)
    await expectUntouched(user)
    expectPage(await user.choosesPassword(NEW, await user.isInvited()), 200, PAGE, 'done')
  })

  it('leads on to the client that it named, and to none that is not registered', async () => {
    const [redirectUri] = CLIENT.redirect_uris
    const genuine = await h.addImported()
    const link = await genuine.isInvited({ clientId: CLIENT.client_id, redirectUri })
    expect(JSON.stringify(await genuine.mail())).to.include(CLIENT.client_name)
    expect(linksOf(await genuine.choosesPassword(NEW, link))).to.include('https://app.example/')
    const forged = await h.addImported()
    const parameters = { clientId: CLIENT.client_id, redirectUri: 'https://evil.example/cb' }
    const page = await forged.choosesPassword(NEW, await forged.isInvited(parameters))
    expectPage(page, 200, PAGE, 'done')
    expect(page.text).not.to.include('evil.example').and.not.include(CLIENT.client_name)
  })
})

describe('flows.invite() of a host whose users cannot set a first password', () => {
  const { setFirstPassword: _none, ...users } = memoryUsers()
  const h = suiteHarness({ flows: { users } })

  it('says so, and asks for nothing', async () => {
    await h.withoutJobs(async () => {
      expect(await h.flows.invite('anybody')).to.deep.equal({ refused: 'unsupported' })
    })
  })
})

describe('Many invitations (8)', () => {
  const h = suiteHarness({ settings: { mails_per_account_per_hour: '2' } })

  it('of one account are limited while it has one to use; of many accounts, all leave', async () => {
    const user = await h.addImported()
    for (let count = 0; count < 5; count += 1) await h.flows.invite(user)
    await h.isIdle()
    expect(user.mailCount()).to.be.within(1, 2)
    const many = await Promise.all(Array.from({ length: 20 }, () => h.addImported()))
    for (const each of many) await h.flows.invite(each)
    for (const each of many) await h.mail.mailTo(each.email ?? '')
  })
})
