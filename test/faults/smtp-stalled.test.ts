import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import {
  type Account,
  addAccounts,
  forgot,
  opensForm,
  outboxIsQuiet,
} from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import { percentile, steadyLoad } from '../support/load.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { shapeOf } from '../support/observe.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { scaled } from './scale.ts'
import { suiteService } from './suite-service.ts'

const PER_SECOND = 50
const REQUESTS = scaled({ full: 2_000, short: 200 })
/** Half of the requests are for accounts; nobody asks more often than an account may get mails in an hour. */
const ACCOUNTS = scaled({ full: 250, short: 25 })
const MOST_SOCKETS = 10
const MOST_GROWTH_MIB = 100
/** Far longer than the work takes that does not wait for SMTP, and shorter than it would take if it did. */
const NO_WAIT_FOR_SMTP_MS = scaled({ full: 180_000, short: 60_000 })
const LIMIT_MS = 300_000

interface Measured {
  answers: Answer[]
  /** Of the page with the form, in milliseconds. */
  p99: number
}

describeWithMongo('An SMTP server accepts, and never speaks', function (this: Mocha.Suite) {
  this.timeout(scaled({ full: 900_000, short: 480_000 }))

  const { database, mail, server } = suiteService()
  let accounts: Account[]
  let healthy: Measured
  let stalled: Measured
  /** Of the process, in MiB, during the load on the stalled server. */
  let growth: number
  /** Links from before the server fell silent. */
  let earlier: string[]
  /** Of somebody who did not ask again. */
  let bystandersLink: string
  let mailsBefore: number

  /** The same load with a server that speaks, and with one that does not: accounts and strangers in turn. */
  async function load(): Promise<Measured> {
    const page = `${server.baseUrl}/oauth2/forgot-password`
    const [posts, gets] = await Promise.all([
      steadyLoad({ perSecond: PER_SECOND, count: REQUESTS }, (index) => {
        const account = accounts[Math.floor(index / 2) % accounts.length] as Account
        const identifier = index % 4 === 0 ? account.username : account.email
        return forgot(server, index % 2 === 0 ? identifier : `nobody-${index}@example.com`)
      }),
      steadyLoad({ perSecond: PER_SECOND, count: REQUESTS }, async () => {
        const { status, mode } = await createUserAgent().get(page)
        expect([status, mode]).to.deep.equal([200, 'form'])
      }),
    ])
    return { answers: posts.answers, p99: percentile(gets.milliseconds, 0.99) }
  }

  const newestLinkTo = ({ email }: Account) =>
    mail.mails.findLast(({ to }) => to.includes(email))?.link

  before(async () => {
    accounts = await addAccounts(database.db, 'stalled', ACCOUNTS)
    const [bystander] = (await addAccounts(database.db, 'bystander', 1)) as [Account]
    await forgot(server, bystander.username)
    bystandersLink = (await mail.mailTo(bystander.email)).link

    healthy = await load()
    await eventually('everybody has a link', () => accounts.every(newestLinkTo), LIMIT_MS)
    await outboxIsQuiet(database.db, LIMIT_MS)
    earlier = accounts.map((account) => newestLinkTo(account) ?? '')
    for (const link of earlier) expect(await opensForm(link)).to.equal(true)

    mail.fallSilent()
    mailsBefore = mail.mails.length
    const memory = await watchMemory(server.pid)
    stalled = await load()
    growth = await memory.growth()
  })

  it(`answers ${REQUESTS} requests alike, with few sockets and little memory (FLT-02)`, () => {
    const sockets = mail.mostOpen()
    const ratio = stalled.p99 / healthy.p99
    console.log(
      `SMTP stalled: ${REQUESTS} requests, at most ${sockets} sockets, ${growth.toFixed(0)} MiB more memory; ` +
        `p99 of the page ${stalled.p99.toFixed(0)} ms, ${ratio.toFixed(2)} times that with a healthy server`,
    )
    const [constant] = healthy.answers.map(shapeOf)
    for (const answer of stalled.answers) expect(shapeOf(answer)).to.deep.equal(constant)
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
    expect(mail.mails.length).to.equal(mailsBefore)
  })

  it('keeps nothing in the outbox that somebody typed', async () => {
    const typed = [...accounts.flatMap(({ username, email }) => [username, email]), 'nobody-']
    await eventually(
      'it is gone',
      async () => {
        const kept = JSON.stringify(await database.db.collection('mail_outbox').find().toArray())
        return !typed.some((each) => kept.includes(`"${each}`))
      },
      NO_WAIT_FOR_SMTP_MS,
    )
    expect(mail.mails.length).to.equal(mailsBefore)
  })

  it('sends what is owed once the server speaks, still with few sockets', async () => {
    mail.speak()
    const arrived = () => mail.mails.slice(mailsBefore)
    await eventually('it arrives', () => arrived().length >= ACCOUNTS, LIMIT_MS)
    await outboxIsQuiet(database.db, LIMIT_MS)
    const recipients = arrived().flatMap(({ to }) => to)
    expect(recipients.toSorted()).to.deep.equal(accounts.map(({ email }) => email).toSorted())
    for (const { link } of arrived()) expect(await opensForm(link)).to.equal(true)
    expect(mail.mostOpen()).to.be.at.most(MOST_SOCKETS)
    expect(await opensForm(bystandersLink)).to.equal(true)
  })
})

/** Looks at the memory of a process twice a second; `growth` ends it, and answers MiB. */
async function watchMemory(pid: number) {
  const look = async () => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
  }
  const first = await look()
  let most = first
  const looks = setInterval(() => {
    look().then((now) => (most = Math.max(most, now)), clearInterval.bind(undefined, looks))
  }, 500)

  return {
    async growth() {
      clearInterval(looks)
      return Math.max(most, await look()) - first
    },
  }
}
