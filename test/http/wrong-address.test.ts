import { expect } from 'chai'
import { CLIENT, onEachStore, PASSWORD, suiteHarness, type Harness } from '../support/harness.ts'
import { dump } from '../support/records.ts'
import { codeIn, disown, expectMode, notMeOf, wrongCode, type Person } from '../support/person.ts'
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
  const mistyped = async () =>
    h.blockedLogin({ user: await h.addUnverified({ ...REPLACING, email: mailbox() }) })

  /** Types another address, and reads the mail that goes there. */
  async function corrects(login: Person, email = mailbox()) {
    const count = mailsTo(email).length + 1
    const page = await login.goesOn({ action: 'replace_email', email })
    expectMode(page, 200, 'blocked')
    const { link, mail } = await h.mail.mailTo(email, count)
    await h.isIdle()
    const corrected = Object.assign(login.in(login.agent), {
      blocked: page,
      page,
      link,
      code: codeIn(mail) ?? '',
      email,
    })
    return { corrected, email, mail }
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
      expect(corrected.page.text).to.include(`${email.slice(0, 1)}•••@u•••.example`)
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

  it('voids all that was mailed before: links, codes, the page, other logins and resets (VER-27)', async () => {
    const login = await mistyped()
    const { link, code } = login
    const reset = await login.forgets()
    const other = await h.blockedLogin({ user: login })
    const { corrected } = await corrects(login)
    expectMode(await login.opensElsewhere(link), 400, 'expired')
    expectMode(await login.opensElsewhere(other.link), 400, 'expired')
    expectMode(await other.types(), 400, 'ended')
    expectMode(await login.types(code), 400, 'ended')
    const page = await login.in().choosesPassword('a brand new password', reset)
    expect(page.mode).to.equal('invalid')
    expectMode(
      await corrected.types(code === corrected.code ? wrongCode(code) : code),
      400,
      'blocked',
    )
    expect(await accountOf(login)).to.deep.equal(unchanged(login))
    await corrected.comesBack(await corrected.types())
  })

  it('mails nothing to the address of the account while another one is awaited, and does so again afterwards', async () => {
    const login = await mistyped()
    const { corrected } = await corrects(login)
    const before = login.mailCount()
    await h.forgot(login.username)
    await h.resend(login.username)
    await h.flows.sendVerification(login)
    await h.isIdle()
    const refused = h.events.filter(
      ({ accountId, reason, type }) =>
        accountId === login.id && reason === 'other_address' && type.endsWith('_requested'),
    )
    expect(refused.map(({ type }) => type)).to.deep.equal([
      'password_reset_requested',
      'email_verification_requested',
      'email_verification_requested',
    ])
    expect(login.mailCount()).to.equal(before)
    await corrected.goesOn({ action: 'cancel' })
    await login.in().asksAgain()
    await login.in().getsBackIn()
  })

  it('is followed by every login that begins meanwhile, and its mail goes to the typed address too', async () => {
    const login = await mistyped()
    const { email } = await corrects(login)
    const phone = createUserAgent()
    await login.in(phone).starts()
    const page = login.in(phone)
    await page.starts()
    const blocked = await phone.post(`${h.oauthUrl}/login`, {
      username: login.username,
      password: PASSWORD,
    })
    expectMode(blocked, 200, 'blocked')
    const { link, mail } = await h.mail.mailTo(email, 2)
    const there = Object.assign(login.in(phone), {
      blocked,
      page: blocked,
      link,
      code: codeIn(mail),
      request: page.request,
      email,
    })
    await there.comesBack(await there.types())
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

  it('answers a form that is sent twice with the same page, and mails once', async () => {
    const login = await mistyped()
    const { corrected, email } = await corrects(login)
    const again = await login.goesOn({ action: 'replace_email', email })
    expectMode(again, 200, 'blocked')
    expect(again.hidden['login']).to.equal(corrected.blocked.hidden['login'])
    await h.isIdle()
    expect(mailsTo(email)).to.have.length(1)
    await corrected.comesBack(await corrected.types())
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
    const page = await login.goesOn({
      action: 'replace_email',
      email: ` ${login.email?.toUpperCase()} `,
    })
    expectMode(page, 400, 'blocked')
    expect(page.text).to.include('We already sent the email to this address')
    await login.stillGetsIn()
  })

  it('takes three addresses in a day, and more the day after', async () => {
    let login = await mistyped()
    for (let i = 0; i < 3; i += 1) login = (await corrects(login)).corrected
    const page = await login.goesOn({ action: 'replace_email', email: mailbox() })
    expectMode(page, 400, 'blocked')
    expect(page.text).to.include('The address was changed too often')
    expect(login.events('email_replacement_requested')).to.have.length(3)
    await login.comesBack(await login.types())
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
      const there = Object.assign(login.in(login.agent), {
        blocked: answer,
        link,
        code: codeIn(mail),
      })
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

  it('mails no code of it to the address of the account when the host takes the leave back, and its link is void once the leave is there again', async () => {
    const login = await mistyped()
    const { corrected } = await corrects(login)
    await login.becomes({ mayReplaceEmail: false })
    const before = login.mailCount()
    await corrected.presses('/resend-verification')
    const { link, mail } = await login.mail(before + 1)
    expect(codeIn(mail)).to.equal(undefined)
    await login.becomes({ mayReplaceEmail: true })
    expectMode(await login.opensElsewhere(link), 400, 'expired')
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
    const stranger = login.in(createUserAgent())
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

  it('ends by itself when its link does: then the address of the account counts again', async () => {
    const login = await mistyped()
    const { corrected } = await corrects(login)
    await moveTime(25 * HOUR_MS)
    expectMode(await corrected.opensElsewhere(), 400, 'expired')
    expectMode(await corrected.reloads(), 400, 'ended')
    const again = await h.blockedLogin({ user: login })
    await again.stillGetsIn()
    expect(await accountOf(login)).to.deep.equal({ email: login.email, emailVerified: true })
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
    if (after.emailVerified && mail)
      await login.opensElsewhere(/https?:\S+verify-email\S+/.exec(mail.mail.text ?? '')?.[0])
    expect(await accountOf(login)).to.deep.equal(after)
  })
})
