import { expect } from 'chai'
import type { UserStore } from '../../src/index.ts'
import type { RecordStore } from '../../src/store/record-store.ts'
import { CLIENT, onEachStore, PASSWORD, suiteHarness, type Harness } from '../support/harness.ts'
import { dump, instead } from '../support/records.ts'
import { codeIn, disown, expectMode, notMeOf, personAt, type Person } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'

const HOUR_MS = 3_600_000
const REPLACING = { mayReplaceEmail: true }

/** The form with the address, on the page that the browser shows. */
const hasForm = ({ text }: Answer) => text.includes('value="replace_email"')

let named = 0
/** A mailbox that no other test has. */
const mailbox = () => `right-${(named += 1)}@users.example`

onEachStore('"Wrong address?" on the page that waits (3.9)', (technology) => {
  const h: Harness = suiteHarness({ technology, settings: { mails_per_account_per_hour: '0' } })

  const mailsTo = (email = '') => h.mail.mails.filter(({ to }) => to.includes(email))

  /** A login that waits for a mail to a mistyped address. */
  const mistyped = async (extra = {}) =>
    h.blockedLogin({ user: await h.addUnverified({ ...REPLACING, email: mailbox() }), extra })

  /** Types another address, and reads the mail that goes there. */
  async function corrects(login: Person, email = mailbox()) {
    const count = mailsTo(email).length + 1
    const page = await login.goesOn({ action: 'replace_email', email })
    expectMode(page, 200, 'blocked')
    const { link, mail } = await h.mail.mailTo(email, count)
    await h.isIdle()
    const read = { blocked: page, page, link, code: codeIn(mail) ?? '', email }
    return { corrected: Object.assign(login.in(login.agent), read), email }
  }

  /** The same request of the same browser, and the password, once more. */
  async function sameAgain({ agent, request, username }: Person) {
    await agent.get((await agent.get(request.url)).location ?? '')
    return agent.post(`${h.oauthUrl}/login`, { username, password: PASSWORD })
  }

  const accountOf = async ({ id }: Person) => {
    const { email, emailVerified } = (await h.users.findById(id)) ?? {}
    return { email, emailVerified }
  }

  const unchanged = ({ email }: Person) => ({ email, emailVerified: false })

  for (const way of ['code', 'link'] as const) {
    it(`gives the account the typed address once its mailbox is proven by the ${way}, and finishes the very request`, async () => {
      const login = await mistyped()
      expect(hasForm(login.blocked)).to.equal(true)
      const { corrected, email } = await corrects(login)
      expect(corrected.page.text).to.include(
        `Only the code that we email to ${email.slice(0, 1)}•••@users.example`,
      )
      expect((await login.reloads()).text).to.not.include('works now')
      expect(await accountOf(login)).to.deep.equal(unchanged(login))
      const answer = await (way === 'code' ? corrected.types() : corrected.opensLink())
      await corrected.comesBack(answer)
      expect(await accountOf(login)).to.deep.equal({ email, emailVerified: true })
      const asked = login.events('email_replacement_requested')
      expect(asked.map(({ clientId }) => clientId)).to.deep.equal([CLIENT.client_id])
      const [done] = login.events('email_verification_completed')
      expect(done?.details).to.deep.equal({ address: 'replaced' })
    })
  }

  it('keeps the address sealed until then, and out of the events for ever', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    expect(JSON.stringify(await dump(h))).to.not.include(email)
    await corrected.comesBack(await corrected.types())
    expect(JSON.stringify(h.events)).to.not.include(email)
  })

  it('voids all that was mailed before: links, codes and resets, also those of other logins (VER-27)', async () => {
    const login = await mistyped()
    const { link, code } = login
    const reset = await login.forgets()
    const other = await h.blockedLogin({ user: login })
    const { corrected } = await corrects(login)
    expectMode(await login.opensElsewhere(link), 400, 'expired')
    expectMode(await login.opensElsewhere(other.link), 400, 'expired')
    expectMode(await other.types(), 400, 'blocked')
    expectMode(await login.types(code), 400, 'blocked')
    const page = await login.in().choosesPassword('a brand new password', reset)
    expect(page.mode).to.equal('invalid')
    expect(await accountOf(login)).to.deep.equal(unchanged(login))
    await corrected.comesBack(await corrected.types())
  })

  it('mails nothing but notices to the address of the account until then, whoever asks, and does so again afterwards', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    const before = login.mailCount()
    await h.forgot(login.username)
    await h.isIdle()
    expect(login.events('password_reset_requested').map(({ reason }) => reason)).to.deep.equal([
      'other_address',
    ])
    await h.resend(login.username)
    await h.isIdle()
    expect([login.mailCount(), mailsTo(email).length]).to.deep.equal([before, 2])
    await corrected.goesOn({ action: 'cancel' })
    await login.in().asksAgain()
    await login.in().getsBackIn()
  })

  it('is followed by every login that begins meanwhile, and its mail goes to the typed address too', async () => {
    const login = await mistyped()
    const { email } = await corrects(login)
    const there = login.in()
    there.blocked = await there.signsIn()
    expectMode(there.blocked, 200, 'blocked')
    const { mail } = await h.mail.mailTo(email, 2)
    await there.comesBack(await there.types(codeIn(mail)))
    expect(await accountOf(login)).to.deep.equal({ email, emailVerified: true })
  })

  it('keeps its address where the same request of the same browser comes again', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    const blocked = await sameAgain(login)
    expectMode(blocked, 200, 'blocked')
    expect(blocked.hidden['login']).to.equal(corrected.blocked.hidden['login'])
    await h.isIdle()
    await corrected.comesBack(await corrected.types())
    expect(await accountOf(login)).to.deep.equal({ email, emailVerified: true })
  })

  it('goes back to the first address in the same way, and on to a third', async () => {
    const login = await mistyped()
    const { corrected: wrongAgain, email: second } = await corrects(login)
    const { corrected: first } = await corrects(wrongAgain, login.email)
    expectMode(await wrongAgain.opensElsewhere(), 400, 'expired')
    const { corrected, email } = await corrects(first)
    expectMode(await first.opensElsewhere(), 400, 'expired')
    expect(email).to.not.equal(second)
    await corrected.comesBack(await corrected.opensLink())
    expect(await accountOf(login)).to.deep.equal({ email, emailVerified: true })
  })

  it('verifies the first address when it was typed again', async () => {
    const login = await mistyped()
    const { corrected: other } = await corrects(login)
    const { corrected } = await corrects(other, login.email)
    await corrected.comesBack(await corrected.types())
    expect(await accountOf(login)).to.deep.equal({ email: login.email, emailVerified: true })
  })

  it('mails once where the form is sent twice', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    const again = await login.goesOn({ action: 'replace_email', email })
    expectMode(again, 400, 'blocked')
    expect(again.text).to.include('We already sent the email to this address')
    await h.isIdle()
    expect(mailsTo(email)).to.have.length(1)
    await corrected.comesBack(await corrected.types())
  })

  it('has one address in the end where two are typed at once, and each page waits for that one', async () => {
    const login = await mistyped()
    const other = await h.blockedLogin({ user: login })
    const emails = [mailbox(), mailbox()] as const
    const pages = await Promise.all([
      login.goesOn({ action: 'replace_email', email: emails[0] }),
      other.goesOn({ action: 'replace_email', email: emails[1] }),
    ])
    for (const page of pages) expectMode(page, 200, 'blocked')
    await h.isIdle()
    const outcomes = await Promise.all(
      emails.flatMap((email) =>
        mailsTo(email).map(async ({ link }) => {
          return { email, mode: (await login.opensElsewhere(link)).mode }
        }),
      ),
    )
    const winner = outcomes.find(({ mode }) => mode !== 'expired')
    expect(await accountOf(login)).to.deep.equal({ email: winner?.email, emailVerified: true })
  })

  const REFUSED: [string, string][] = [
    ['nothing', ''],
    ['no address', 'ann'],
    ['two addresses', 'ann@users.example, bob@users.example'],
    ['a line break', 'ann@users.example\r\nBcc: eve@users.example'],
    ['a display name', 'Ann <ann@users.example>'],
    [
      '255 letters',
      `${'a'.repeat(64)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.example`,
    ],
    ['a look-alike', 'аnn@users.example'],
  ]
  for (const [what, typed] of REFUSED) {
    it(`refuses ${what}, with a sentence at the field, and the login waits as before`, async () => {
      const login = await mistyped()
      const page = await login.goesOn({ action: 'replace_email', email: typed })
      expectMode(page, 400, 'blocked')
      expect(page.text).to.match(/id="email"[^>]*aria-invalid="true"/)
      expect(page.text).to.include('Enter one complete email address')
      expect(login.events('email_replacement_requested')).to.deep.equal([])
      await login.comesBack(await login.types())
      expect(await accountOf(login)).to.deep.equal({ email: login.email, emailVerified: true })
    })
  }

  it('says that the mail went to the same address already, in any case', async () => {
    const login = await mistyped()
    const email = ` ${login.email?.toUpperCase()} `
    const page = await login.goesOn({ action: 'replace_email', email })
    expectMode(page, 400, 'blocked')
    expect(page.text).to.include('We already sent the email to this address')
    await login.stillGetsIn()
  })

  it('takes three addresses in a day, and more the day after', async () => {
    let login = await mistyped()
    for (let i = 0; i < 3; i += 1) login = (await corrects(login)).corrected
    const page = await login.goesOn({ action: 'replace_email', email: mailbox() })
    expectMode(page, 400, 'blocked')
    expect(page.text)
      .to.include('The address was changed too often')
      .and.include('Ask the people who run this service')
    expect(login.events('email_replacement_requested')).to.have.length(3)
    await moveTime(25 * HOUR_MS)
    const user = await h.users.findById(login.id)
    const { corrected } = await corrects(await h.blockedLogin({ user: personAt(h, user ?? login) }))
    await corrected.comesBack(await corrected.types())
  })

  it('tells only the owner of the mailbox that another account has the address, and gives it to no second account (VER-28)', async () => {
    const owner = await h.addVerified({ email: mailbox() })
    const free = mailbox()
    const pages: string[] = []
    for (const email of [owner.email ?? '', free]) {
      const login = await mistyped()
      const { text, hidden } = await login.goesOn({ action: 'replace_email', email })
      const own = [hidden['login'], login.username, hidden['state']]
      pages.push(own.reduce<string>((page, each = '') => page.replaceAll(each, ''), text))
    }
    expect(pages[0]?.length).to.equal(pages[1]?.length)
    for (const way of ['code', 'link'] as const) {
      const login = await mistyped()
      const before = mailsTo(owner.email).length
      const answer = await login.goesOn({ action: 'replace_email', email: owner.email ?? '' })
      const { link, mail } = await h.mail.mailTo(owner.email ?? '', before + 1)
      const read = { blocked: answer, link, code: codeIn(mail) }
      const there = Object.assign(login.in(login.agent), read)
      const page = await (way === 'code' ? there.types() : there.opensLink())
      expectMode(page, 400, way === 'code' ? 'blocked' : 'expired')
      expect(page.text).to.match(/Another account (already )?uses this address/)
      expect(await accountOf(login)).to.deep.equal(unchanged(login))
      expect(await accountOf(owner)).to.deep.equal({ email: owner.email, emailVerified: true })
      const { corrected, email } = await corrects(there)
      await corrected.comesBack(await corrected.types())
      expect(await accountOf(login)).to.deep.equal({ email, emailVerified: true })
    }
  })

  it('goes on waiting for a taken address in each of its logins, until another one is typed', async () => {
    const owner = await h.addVerified({ email: mailbox() })
    const login = await mistyped()
    const other = await h.blockedLogin({ user: login })
    await login.goesOn({ action: 'replace_email', email: owner.email ?? '' })
    await other.presses('/resend-verification')
    const { mail } = await h.mail.mailTo(owner.email ?? '', 2)
    expectMode(await other.types(codeIn(mail)), 400, 'blocked')
    expect((await login.reloads()).text).to.include('r•••@users.example')
    const { corrected } = await corrects(login)
    await corrected.comesBack(await corrected.types())
  })

  const CLOSED: [string, Parameters<Person['becomes']>[0]][] = [
    ['was verified', { emailVerified: true }],
    ['was disabled', { disabled: true }],
    ['got another address', { email: 'moved@users.example' }],
    ['may replace it no more', { mayReplaceEmail: false }],
  ]
  for (const [what, change] of CLOSED) {
    it(`gives no account the address that ${what} meanwhile`, async () => {
      const login = await mistyped()
      const { corrected, email } = await corrects(login)
      await login.becomes(change)
      await corrected.opensElsewhere()
      await corrected.types()
      const after = await accountOf(login)
      expect(after.email).to.equal('email' in change ? change.email : login.email)
      expect(after.email).to.not.equal(email)
    })
  }

  it('is over while the host takes the leave back; what is mailed then proves the address of the account alone', async () => {
    const login = await mistyped()
    const { corrected } = await corrects(login)
    await login.becomes({ mayReplaceEmail: false })
    const before = login.mailCount()
    await corrected.presses('/resend-verification')
    const { link, mail } = await login.mail(before + 1)
    await login.becomes({ mayReplaceEmail: true })
    expectMode(await login.opensElsewhere(link), 400, 'expired')
    expectMode(await corrected.types(codeIn(mail)), 400, 'blocked')
    expect(await accountOf(login)).to.deep.equal(unchanged(login))
    await corrected.comesBack(await corrected.types())
  })

  it('is not offered to accounts that may not, whatever is sent', async () => {
    const login = await h.blockedLogin()
    expect(hasForm(login.blocked)).to.equal(false)
    const email = mailbox()
    await login.goesOn({ action: 'replace_email', email })
    await h.isIdle()
    expect(mailsTo(email)).to.deep.equal([])
    await login.comesBack(await login.types())
    expect(await accountOf(login)).to.deep.equal({ email: login.email, emailVerified: true })
  })

  it('is offered to the browser of the login alone', async () => {
    const login = await mistyped()
    const stranger = login.in()
    const email = mailbox()
    expectMode(await stranger.goesOn({ action: 'replace_email', email }), 400, 'ended')
    await h.isIdle()
    expect(mailsTo(email)).to.deep.equal([])
    await login.stillGetsIn()
  })

  it('is undone by "This wasn\'t me" in its own mail, before and after it is proven, and by no other mail', async () => {
    for (const isProven of [false, true]) {
      const login = await mistyped()
      const old = notMeOf(await login.mail())
      const { corrected, email } = await corrects(login)
      expect((await disown(old)).mode).to.equal('stopped')
      if (isProven) await corrected.comesBack(await corrected.types())
      const [mail] = mailsTo(email)
      const page = await disown(mail ? notMeOf(mail) : '')
      expect(page.mode).to.equal(isProven ? 'unverified' : 'stopped')
      if (!isProven) expectMode(await corrected.opensElsewhere(), 400, 'expired')
      expect((await accountOf(login)).emailVerified).to.equal(false)
    }
  })

  it('does nothing where the login need not wait any more', async () => {
    const login = await mistyped()
    const email = mailbox()
    await h.put({ require_email_verification: 'false' })
    await login.goesOn({ action: 'replace_email', email })
    await h.put({ require_email_verification: 'true' })
    await h.isIdle()
    expect([mailsTo(email), login.events('email_replacement_requested')]).to.deep.equal([[], []])
    await login.comesBack(await login.types())
  })

  it('ends by itself when its link does: then the address of the account counts again, whoever asks', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    await moveTime(25 * HOUR_MS)
    const phone = corrected.in()
    expectMode(await phone.opensLink(), 400, 'expired')
    expect(phone.page.text).to.include('Your account has changed')
    expectMode(await corrected.reloads(), 400, 'ended')
    const { login: _, ...parameters } = login.blocked.hidden
    await login.in().asksAgain(parameters)
    expectMode(await phone.opensLink(), 400, 'expired')
    expectMode(await corrected.reloads(), 400, 'ended')
    expect(mailsTo(email)).to.have.length(1)
    const again = await h.blockedLogin({ user: login })
    await again.stillGetsIn()
    expect(await accountOf(login)).to.deep.equal({ email: login.email, emailVerified: true })
  })

  it('is not prolonged by a stranger who asks by name', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    await moveTime(12 * HOUR_MS)
    const stranger = createUserAgent()
    await stranger.post(`${h.oauthUrl}/resend-verification`, { username: login.username })
    await h.mail.mailTo(email, 2)
    await h.isIdle()
    expectMode(await corrected.reloads(), 200, 'blocked')
    await moveTime(13 * HOUR_MS)
    expectMode(await corrected.reloads(), 400, 'ended')
    await login.getsBackIn()
  })

  it('begins no wait anew by the same request once it has run out', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    await moveTime(25 * HOUR_MS)
    const before = login.mailCount()
    expectMode(await sameAgain(corrected), 200, 'blocked')
    const { link } = await login.mail(before + 1)
    await login.comesBack(await login.opensLink(link))
    expect(mailsTo(email)).to.have.length(1)
    expect(await accountOf(login)).to.deep.equal({ email: login.email, emailVerified: true })
  })

  it('is undone by "This wasn\'t me" that is pressed while it is verified', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    const [mail] = mailsTo(email)
    const presses =
      (real: UserStore['replaceEmail']): UserStore['replaceEmail'] =>
      async (...given) => {
        const isReplaced = (await real?.(...given)) ?? false
        expect((await disown(mail ? notMeOf(mail) : '')).mode).to.equal('stopped')
        return isReplaced
      }
    await instead(h.users, 'replaceEmail', presses, () => corrected.opensElsewhere())
    expect((await accountOf(login)).emailVerified).to.equal(false)
  })

  it('awaits no address again that was typed before the last one', async () => {
    const login = await mistyped()
    const other = await h.blockedLogin({ user: login })
    const { corrected: slip, email } = await corrects(login)
    const { corrected: right } = await corrects(other)
    await right.goesOn({ action: 'cancel' })
    const stranger = slip.in()
    expectMode(await stranger.opensLink(), 400, 'expired')
    await stranger.presses('/resend-verification', { typed: { username: login.username } })
    await h.isIdle()
    expect(mailsTo(email)).to.have.length(1)
    expectMode(await slip.types(), 400, 'blocked')
    const before = login.mailCount()
    expectMode(await sameAgain(other), 200, 'blocked')
    const { link } = await login.mail(before + 1)
    await other.comesBack(await other.opensLink(link))
    expect(await accountOf(login)).to.deep.equal({ email: login.email, emailVerified: true })
  })

  it('gives no address by a proof that is void by the time that it counts', async () => {
    const login = await mistyped()
    const { corrected } = await corrects(login)
    const ends = (real: UserStore['findByVerifiedEmail']) => async (email: string) => {
      await h.flows.endSessions(login.id)
      return real(email)
    }
    const page = await instead(h.users, 'findByVerifiedEmail', ends, () => corrected.types())
    expectMode(page, 400, 'ended')
    expect(await accountOf(login)).to.deep.equal(unchanged(login))
    await (await h.blockedLogin({ user: login })).stillGetsIn()
  })

  it('is not offered to an account without an address', async () => {
    const user = await h.addUnverified({ ...REPLACING, email: undefined })
    const page = await user.signsIn()
    expectMode(page, 200, 'blocked')
    expect([hasForm(page), page.text.includes('has no email address')]).to.deep.equal([false, true])
  })

  it('is offered where the address of the account is none that a mail could go to', async () => {
    const user = await h.addUnverified({ ...REPLACING, email: 'ann@users,example' })
    user.blocked = await user.signsIn()
    expect(hasForm(user.blocked)).to.equal(true)
    const { corrected, email } = await corrects(user)
    await corrected.comesBack(await corrected.types())
    expect(await accountOf(user)).to.deep.equal({ email, emailVerified: true })
  })

  it('lets the page that waits go on when the link was opened elsewhere, also where the app asks for consent', async () => {
    const login = await mistyped({ prompt: 'consent' })
    const { corrected, email } = await corrects(login)
    await corrected.opensElsewhere()
    expect(await accountOf(login)).to.deep.equal({ email, emailVerified: true })
    expect((await corrected.goesOn()).status).to.equal(302)
  })

  it('loses to a link of the first address that verifies at the same moment, or wins: one address is live', async () => {
    const login = await mistyped()
    const { link } = login
    const email = mailbox()
    await Promise.all([
      login.opensElsewhere(link),
      login.goesOn({ action: 'replace_email', email }),
    ])
    await h.isIdle()
    const [mail] = mailsTo(email)
    const after = await accountOf(login)
    expect(after.email).to.equal(login.email)
    if (after.emailVerified && mail) await login.opensElsewhere(mail.link)
    expect(await accountOf(login)).to.deep.equal(after)
  })
})

/** A store that fails when it is to change a link. */
const diesAtTokens =
  (swap: RecordStore['swap']): RecordStore['swap'] =>
  async (kind, changes) => {
    if (kind.name.endsWith('_tokens')) throw new Error('the process died')
    return swap(kind, changes)
  }

describe('"Wrong address?" and a process that dies (3.9)', () => {
  const h = suiteHarness({ settings: { mails_per_account_per_hour: '0' }, mayLogErrors: true })

  it('holds from the moment that it is written down, even if the process dies before it voids anything', async () => {
    const login = await h.blockedLogin({
      user: await h.addUnverified({ ...REPLACING, email: mailbox() }),
    })
    const { link, code } = login
    const reset = await login.forgets()
    const page = await instead(h.records, 'swap', diesAtTokens, () =>
      login.goesOn({ action: 'replace_email', email: mailbox() }),
    )
    expect(page.status).to.equal(500)
    expectMode(await login.opensElsewhere(link), 400, 'expired')
    expectMode(await login.types(code), 400, 'blocked')
    const refused = await login.in().choosesPassword('a brand new password', reset)
    expect(refused.mode).to.equal('invalid')
    expect(await login.isVerified()).to.equal(false)
    await login.goesOn({ action: 'replace_email', email: login.email ?? '' })
    const { mail } = await login.mail(3)
    await login.comesBack(await login.types(codeIn(mail)))
  })
})
