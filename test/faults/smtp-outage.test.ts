import { expect } from 'chai'
import { createBrowser } from '../support/browser.ts'
import {
  addAccounts,
  blockedLogin,
  forgot,
  opensForm,
  outboxIsQuiet,
  resend,
  resetPassword,
  type Account,
} from '../support/example-requests.ts'
import { eventually } from '../support/eventually.ts'
import { steadyLoad } from '../support/load.ts'
import type { MailKind } from '../../src/ports/mail-kinds.ts'
import { startMailServer, type ReceivedMail } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { sha256 } from '../support/observe.ts'
import { scaled } from './scale.ts'
import { suiteService } from './suite-service.ts'
import { codeIn, tokenOf } from '../support/person.ts'

const OUTAGE_SECONDS = scaled({ full: 600, short: 12 })
const PER_SECOND = scaled({ full: 4, short: 8 })
/** Everybody is asked for a few times, and nobody more often than an account may get mails in an hour. */
const VERIFIED = scaled({ full: 300, short: 30 })
const UNVERIFIED = scaled({ full: 100, short: 10 })
const WITH_EARLIER_LINK = 5
/** The longest pause between two attempts is far shorter. */
const RECOVERY_LIMIT_MS = 600_000

describeWithMongo('SMTP is down, and comes back', function (this: Mocha.Suite) {
  this.timeout(OUTAGE_SECONDS * 1000 + RECOVERY_LIMIT_MS + 120_000)

  const { database, mail, server } = suiteService({ require_email_verification: 'true' })
  let verified: Account[]
  let unverified: Account[]
  /** They ask before the outage, and not again. */
  let bystanders: Account[]
  /** Kind and address of every mail that is owed, and whether a login waits for it. */
  let owed: string[]
  /** Links from before the outage. */
  const earlier = new Map<Account, string>()

  async function linkFor({ username, email }: Account): Promise<string> {
    await forgot(server, username)
    return (await mail.mailTo(email)).link
  }

  /** One of eight kinds of request in turn; each finds its accounts one after the other. */
  function request(index: number) {
    const turn = Math.floor(index / 8)
    const one = (accounts: Account[], number: number) =>
      accounts[number % accounts.length] as Account
    const role = index % 8
    if (role < 4) {
      const { username, email } = one(verified, turn * 4 + role)
      return forgot(server, role % 2 === 0 ? username : email)
    }
    if (role === 4) return forgot(server, `nobody-${index}@example.com`)
    if (role === 5) return one(unverified, turn).username.asksAgain()
    if (role === 6) {
      const { username, email } = one(unverified, turn * 3 + 1)
      // Each login that waits is owed a mail with its own code.
      owed.push(`email_verification ${email} of a login`)
      return blockedLogin(server, username)
    }
    // Nobody gets a mail for these: unknown, verified already, and an address that is not verified.
    if (turn % 3 === 0) return resend(server, `nobody-${index}`)
    if (turn % 3 === 1) return one(verified, turn).username.asksAgain()
    return forgot(server, one(unverified, turn).email)
  }

  before(async () => {
    verified = await addAccounts(database.db, 'verified', VERIFIED)
    unverified = await addAccounts(database.db, 'unverified', UNVERIFIED, { verified: false })
    bystanders = await addAccounts(database.db, 'bystander', 3)
    for (const account of [...verified.slice(0, WITH_EARLIER_LINK), ...bystanders]) {
      earlier.set(account, await linkFor(account))
    }
    for (const link of earlier.values()) expect(await opensForm(link)).to.equal(true)
    owed = [
      ...verified.map(({ email }) => `password_reset ${email}`),
      ...unverified.map(({ email }) => `email_verification ${email}`),
    ]

    const { port } = mail
    await mail.close()
    const count = OUTAGE_SECONDS * PER_SECOND
    await steadyLoad({ perSecond: PER_SECOND, count }, request)
    for (const account of verified.slice(0, WITH_EARLIER_LINK)) {
      await eventually(
        `the earlier link of ${account.username} is dead while SMTP is down`,
        async () => !(await opensForm(earlier.get(account) ?? '')),
      )
    }

    const backAt = performance.now()
    Object.assign(mail, await startMailServer({ port }))
    const arrived = () => new Set(mail.mails.map(nameOf))
    await eventually(
      'every owed mail arrives',
      () => owed.every((name) => arrived().has(name)),
      RECOVERY_LIMIT_MS,
    )
    await outboxIsQuiet(database.db, RECOVERY_LIMIT_MS)
    const seconds = ((performance.now() - backAt) / 1000).toFixed(1)
    console.log(
      `SMTP outage: ${count} requests in ${OUTAGE_SECONDS} s; ${owed.length} mails owed, ` +
        `${mail.mails.length} arrived within ${seconds} s`,
    )
  })

  it('sends each owed mail once, and no other (FLT-01)', () => {
    expect(mail.mails.map(nameOf).toSorted()).to.deep.equal(owed.toSorted())
  })

  it('leaves one working reset link to each account that asked: the one in its mail', async () => {
    for (const account of verified) {
      const link = mailTo(account, 'password_reset')
      expect(await opensForm(link), account.username).to.equal(true)
      expect(await liveTokensOf(account)).to.deep.equal([sha256(tokenOf(link))])
    }
    for (const account of verified.slice(0, WITH_EARLIER_LINK)) {
      expect(await opensForm(earlier.get(account) ?? '')).to.equal(false)
    }
    for (const account of bystanders) {
      expect(await opensForm(earlier.get(account) ?? '')).to.equal(true)
    }
  })

  it('mails links that do what they are for', async () => {
    const link = mailTo(verified[0] as Account, 'password_reset')
    await resetPassword(link, 'a new password of the tests')
    expect(await opensForm(link)).to.equal(false)

    for (const account of unverified) {
      expect(await isVerified(account)).to.equal(false)
      await createBrowser(server.baseUrl).visit(mailTo(account, 'email_verification'))
      expect(await isVerified(account), account.username).to.equal(true)
    }
  })

  const mailTo = ({ email }: Account, kind: MailKind) =>
    mail.mails.find(({ to, ...each }) => to.includes(email) && each.kind === kind)?.link ?? ''

  /** Hashes of the tokens that nothing has ended yet. */
  async function liveTokensOf({ id }: Account): Promise<string[]> {
    const live = { user_id: id, used_at: null, invalidated_at: null }
    const found = await database.db.collection('password_reset_tokens').find(live).toArray()
    return found.map(({ token_hash }) => String(token_hash))
  }

  async function isVerified({ username }: Account): Promise<boolean> {
    const isThis = { username, email_verified: true }
    return (await database.db.collection('users').countDocuments(isThis)) === 1
  }
})

function nameOf({ kind, to, mail }: ReceivedMail): string {
  return `${kind} ${to.join()}${codeIn(mail) === undefined ? '' : ' of a login'}`
}
