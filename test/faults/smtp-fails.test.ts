import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { type Account, addAccounts, forgot, outboxIsQuiet } from '../support/example-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { shapeOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { steadyLoad } from './load.ts'
import { scaled, suiteService } from './servers.ts'

const STALLED_PER_SECOND = 50
const REQUESTS = scaled({ full: 2_000, short: 200 })
/** Half of the requests are for accounts; nobody asks more often than an account may get mails in an hour. */
const ACCOUNTS = scaled({ full: 250, short: 25 })
const MAX_SOCKETS = 10
const MAX_GROWTH_MIB = 100
const LIMIT_MS = 300_000

describeWithMongo('An SMTP server accepts, and never speaks', () => {
  const at = suiteService({ isDirect: true })

  it(`answers ${REQUESTS} requests alike, with few sockets and little memory (FLT-02)`, async () => {
    const accounts = await addAccounts(at.database, 'stalled', ACCOUNTS)
    let mostMemory = 0

    /** The same load with a server that speaks, and with one that does not: accounts and strangers in turn. */
    async function load() {
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
      return answers.map(shapeOf)
    }

    const [constant] = await load()
    await outboxIsQuiet(at.database, LIMIT_MS)
    at.mail.fallSilent()
    const memory = await memoryOf(at.server.pid)
    mostMemory = 0
    for (const answer of await load()) expect(answer).to.deep.equal(constant)
    const [growth, sockets] = [mostMemory - memory, at.mail.mostOpen()]
    console.log(
      `SMTP stalled: ${REQUESTS} requests, at most ${sockets} sockets, ${growth.toFixed(0)} MiB more memory`,
    )
    expect(sockets).to.be.within(1, MAX_SOCKETS)
    expect(growth).to.be.lessThan(MAX_GROWTH_MIB)
  })
})

/** What a process has, in MiB. */
async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}
