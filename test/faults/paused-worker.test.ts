import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import {
  addAccounts,
  forgot,
  opensForm,
  putSettings,
  smtpSettings,
  startExampleServer,
} from '../support/example-server.ts'
import { startMailServer } from '../support/mail-server.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { startMongoProxy, type MongoCommand } from '../support/mongo-proxy.ts'
import { scaled } from './scale.ts'

/** Longer than the lease of a mail that is being sent, and the time until somebody looks. */
const TAKEN_OVER_WITHIN_MS = 90_000

interface Pause {
  title: string
  isReached(command: MongoCommand): boolean
}

const LOOKING_UP: Pause = {
  title: 'while it looks the account up',
  isReached: ({ name, collection, body }) =>
    name === 'insert' &&
    collection === 'audit_events' &&
    JSON.stringify(body).includes('requested:'),
}

const SENDING: Pause = {
  title: 'before it stores the token',
  isReached: ({ name, collection }) => name === 'find' && collection === 'password_reset_tokens',
}

describeWithMongo('A worker that is paused for longer than its lease', () => {
  for (const { title, isReached } of scaled({ full: [LOOKING_UP, SENDING], short: [LOOKING_UP] })) {
    it(`undoes nothing of what another one did meanwhile, paused ${title}`, async function () {
      this.timeout(2 * TAKEN_OVER_WITHIN_MS)
      const database = await freshDatabase()
      const proxy = await startMongoProxy(database)
      const mail = await startMailServer()
      const paused = await startExampleServer({ MONGODB_URI: proxy.uri })
      const shared = { MONGODB_URI: database.uri, BASE_URL: paused.baseUrl }
      let other: Awaited<ReturnType<typeof startExampleServer>> | undefined
      try {
        await putSettings(paused, smtpSettings(mail.port))
        const [account] = await addAccounts(database.db, 'paused', 1)
        let isPaused = false
        const stopWatching = proxy.watch({
          reply(command) {
            if (isPaused || !isReached(command)) return
            isPaused = true
            paused.signal('SIGSTOP')
          },
        })
        await forgot(paused, account?.username ?? '')
        await eventually('the worker is paused', () => isPaused)
        stopWatching()
        other = await startExampleServer(shared)
        const { link } = await eventually(
          'the other worker sends the mail',
          () => mail.mails[0],
          TAKEN_OVER_WITHIN_MS,
        )
        const atOther = link.replace(paused.baseUrl, `http://localhost:${other.port}`)
        expect(await opensForm(atOther)).to.equal(true)
        const outbox = database.db.collection('mail_outbox')
        await eventually('the job is over', async () => (await outbox.countDocuments()) === 0)

        paused.signal('SIGCONT')
        await eventually('it goes on', async () => (await fetch(paused.baseUrl)).ok)
        // What it had begun is at its end.
        expect(await paused.stop()).to.equal(0)
        expect(await opensForm(atOther)).to.equal(true)
        expect(mail.mails).to.have.length(1)
        expect(await outbox.countDocuments()).to.equal(0)
        const failed = { type: 'password_reset_mail_failed' }
        expect(await database.db.collection('audit_events').countDocuments(failed)).to.equal(0)
      } finally {
        paused.signal('SIGCONT')
        await paused.kill()
        await other?.kill()
        await mail.close()
        await proxy.close()
        await database.drop()
      }
    })
  }
})
