import { expect } from 'chai'
import { codeIn, tokenOf } from '../support/person.ts'
import { createBrowser, createUserAgent, type Answer } from '../support/user-agent.ts'
import {
  type Account,
  addAccounts,
  blockedLogin,
  forgot,
  opensForm,
  outboxIsQuiet,
  resend,
  resetPassword,
} from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import { steadyLoad } from './load.ts'
import type { MailKind } from '../../src/ports/mail-kinds.ts'
import { startMailServer, type ReceivedMail } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { sha256, shapeOf } from '../support/observe.ts'
import { addPerson, isVerified, linkFor, liveTokensOf } from './people.ts'
import { scaled, suiteService } from './servers.ts'
import { readFile } from 'node:fs/promises'

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

  const at = suiteService({ settings: { require_email_verification: 'true' }, isDirect: true })
  let verified: Account[]
  let unverified: Account[]
  /** They ask before the outage, and not again. */
  let bystanders: Account[]
  /** Kind and address of every mail that is owed, and whether a login waits for it. */
  let owed: string[]
  /** Links from before the outage. */
  const earlier = new Map<Account, string>()

  /** One of eight kinds of request in turn; each finds its accounts one after the other. */
  function request(index: number) {
    const turn = Math.floor(index / 8)
    const one = (accounts: Account[], number: number) =>
      accounts[number % accounts.length] as Account
    const role = index % 8
    if (role < 4) {
      const { username, email } = one(verified, turn * 4 + role)
      return forgot(at, role % 2 === 0 ? username : email)
    }
    if (role === 4) return forgot(at, `nobody-${index}@example.com`)
    if (role === 5) return resend(at, one(unverified, turn).username)
    if (role === 6) {
      const { username, email } = one(unverified, turn * 3 + 1)
      // Each login that waits is owed a mail with its own code.
      owed.push(`email_verification ${email} of a login`)
      return blockedLogin(at, username)
    }
    // Nobody gets a mail for these: unknown, verified already, and an address that is not verified.
    if (turn % 3 === 0) return resend(at, `nobody-${index}`)
    if (turn % 3 === 1) return resend(at, one(verified, turn).username)
    return forgot(at, one(unverified, turn).email)
  }

  before(async () => {
    verified = await addAccounts(at.database.db, 'verified', VERIFIED)
    unverified = await addAccounts(at.database.db, 'unverified', UNVERIFIED, { verified: false })
    bystanders = await addAccounts(at.database.db, 'bystander', 3)
    for (const account of [...verified.slice(0, WITH_EARLIER_LINK), ...bystanders]) {
      earlier.set(account, await linkFor(at, account))
    }
    for (const link of earlier.values()) expect(await opensForm(link)).to.equal(true)
    owed = [
      ...verified.map(({ email }) => `password_reset ${email}`),
      ...unverified.map(({ email }) => `email_verification ${email}`),
    ]

    const { port } = at.mail
    await at.mail.close()
    const count = OUTAGE_SECONDS * PER_SECOND
    await steadyLoad({ perSecond: PER_SECOND, count }, request)
    for (const account of verified.slice(0, WITH_EARLIER_LINK)) {
      await eventually(
        `the earlier link of ${account.username} is dead while SMTP is down`,
        async () => !(await opensForm(earlier.get(account) ?? '')),
      )
    }

    const backAt = performance.now()
    at.mail = await startMailServer({ port })
    const arrived = () => new Set(at.mail.mails.map(nameOf))
    const isOver = () => owed.every((name) => arrived().has(name))
    await eventually('every owed mail arrives', isOver, RECOVERY_LIMIT_MS)
    await outboxIsQuiet(at.database.db, RECOVERY_LIMIT_MS)
    const seconds = ((performance.now() - backAt) / 1000).toFixed(1)
    console.log(
      `SMTP outage: ${count} requests in ${OUTAGE_SECONDS} s; ${owed.length} mails owed, ` +
        `${at.mail.mails.length} arrived within ${seconds} s`,
    )
  })

  it('sends each owed mail once, and no other (FLT-01)', () => {
    expect(at.mail.mails.map(nameOf).toSorted()).to.deep.equal(owed.toSorted())
  })

  it('leaves one working reset link to each account that asked: the one in its mail', async () => {
    for (const account of verified) {
      const link = mailTo(account, 'password_reset')
      expect(await opensForm(link), account.username).to.equal(true)
      expect(await liveTokensOf(at, account)).to.deep.equal([sha256(tokenOf(link))])
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
      expect(await isVerified(at, account)).to.equal(false)
      await createBrowser(at.baseUrl).visit(mailTo(account, 'email_verification'))
      expect(await isVerified(at, account), account.username).to.equal(true)
    }
  })

  const mailTo = ({ email }: Account, kind: MailKind) =>
    at.mail.mails.find(({ to, ...each }) => to.includes(email) && each.kind === kind)?.link ?? ''
})

function nameOf({ kind, to, mail }: ReceivedMail): string {
  return `${kind} ${to.join()}${codeIn(mail) === undefined ? '' : ' of a login'}`
}

const STALLED_PER_SECOND = 50
const REQUESTS = scaled({ full: 2_000, short: 200 })
/** Half of the requests are for accounts; nobody asks more often than an account may get mails in an hour. */
const ACCOUNTS = scaled({ full: 250, short: 25 })
const MOST_SOCKETS = 10
const MOST_GROWTH_MIB = 100
/** Far longer than the work takes that does not wait for SMTP, and shorter than it would take if it did. */
const NO_WAIT_FOR_SMTP_MS = scaled({ full: 180_000, short: 60_000 })
const LIMIT_MS = 300_000

describeWithMongo('An SMTP server accepts, and never speaks', function (this: Mocha.Suite) {
  this.timeout(scaled({ full: 900_000, short: 480_000 }))

  const at = suiteService({ isDirect: true })
  let accounts: Account[]
  let healthy: Answer[]
  let stalled: Answer[]
  /** Of the process, in MiB: the most during a load, and how much more it was on the stalled server. */
  let mostMemory = 0
  let growth: number
  /** Links from before the server fell silent. */
  let earlier: string[]
  /** Of somebody who did not ask again. */
  let bystandersLink: string
  let mailsBefore: number

  /** The same load with a server that speaks, and with one that does not: accounts and strangers in turn. */
  async function load(): Promise<Answer[]> {
    const page = `${at.oauthUrl}/forgot-password`
    const [answers] = await Promise.all([
      steadyLoad({ perSecond: STALLED_PER_SECOND, count: REQUESTS }, (index) => {
        const account = accounts[Math.floor(index / 2) % accounts.length] as Account
        const identifier = index % 4 === 0 ? account.username : account.email
        return forgot(at, index % 2 === 0 ? identifier : `nobody-${index}@example.com`)
      }),
      steadyLoad({ perSecond: STALLED_PER_SECOND, count: REQUESTS }, async () => {
        const { status, mode } = await createUserAgent().get(page)
        expect([status, mode]).to.deep.equal([200, 'form'])
        mostMemory = Math.max(mostMemory, await memoryOf(at.server.pid))
      }),
    ])
    return answers
  }

  const newestLinkTo = ({ email }: Account) =>
    at.mail.mails.findLast(({ to }) => to.includes(email))?.link

  before(async () => {
    accounts = await addAccounts(at.database.db, 'stalled', ACCOUNTS)
    bystandersLink = await linkFor(at, await addPerson(at))

    healthy = await load()
    await eventually('everybody has a link', () => accounts.every(newestLinkTo), LIMIT_MS)
    await outboxIsQuiet(at.database.db, LIMIT_MS)
    earlier = accounts.map((account) => newestLinkTo(account) ?? '')
    for (const link of earlier) expect(await opensForm(link)).to.equal(true)

    at.mail.fallSilent()
    mailsBefore = at.mail.mails.length
    const memory = await memoryOf(at.server.pid)
    mostMemory = 0
    stalled = await load()
    growth = mostMemory - memory
  })

  it(`answers ${REQUESTS} requests alike, with few sockets and little memory (FLT-02)`, () => {
    const sockets = at.mail.mostOpen()
    console.log(
      `SMTP stalled: ${REQUESTS} requests, at most ${sockets} sockets, ${growth.toFixed(0)} MiB more memory`,
    )
    const [constant] = healthy.map(shapeOf)
    for (const answer of stalled) expect(shapeOf(answer)).to.deep.equal(constant)
    expect(sockets).to.be.within(1, MOST_SOCKETS)
    expect(growth).to.be.lessThan(MOST_GROWTH_MIB)
  })

  it('ends the earlier links of those who asked, although no mail can leave', async () => {
    const alive = [...earlier]
    await eventually(
      'they are dead',
      async () => {
        while (alive[0] !== undefined && !(await opensForm(alive[0]))) alive.shift()
        return alive.length === 0
      },
      NO_WAIT_FOR_SMTP_MS,
    )
    expect(await opensForm(bystandersLink)).to.equal(true)
    expect(at.mail.mails.length).to.equal(mailsBefore)
  })

  it('keeps nothing in the outbox that somebody typed', async () => {
    const typed = [...accounts.flatMap(({ username, email }) => [username, email]), 'nobody-']
    await eventually(
      'it is gone',
      async () => {
        const kept = JSON.stringify(await at.database.db.collection('mail_outbox').find().toArray())
        return !typed.some((each) => kept.includes(`"${each}`))
      },
      NO_WAIT_FOR_SMTP_MS,
    )
    expect(at.mail.mails.length).to.equal(mailsBefore)
  })

  it('sends what is owed once the server speaks, still with few sockets', async () => {
    at.mail.speak()
    const arrived = () => at.mail.mails.slice(mailsBefore)
    await eventually('it arrives', () => arrived().length >= ACCOUNTS, LIMIT_MS)
    await outboxIsQuiet(at.database.db, LIMIT_MS)
    const recipients = arrived().flatMap(({ to }) => to)
    expect(recipients.toSorted()).to.deep.equal(accounts.map(({ email }) => email).toSorted())
    for (const { link } of arrived()) expect(await opensForm(link)).to.equal(true)
    expect(at.mail.mostOpen()).to.be.at.most(MOST_SOCKETS)
    expect(await opensForm(bystandersLink)).to.equal(true)
  })
})

/** What a process has, in MiB. */
async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}
