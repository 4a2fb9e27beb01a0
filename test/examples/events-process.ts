/**
 * A process that is killed: `send` posts webhooks until then; `record` resets a password, and dies between the record of
 * `password_reset_completed` and its listeners.
 *
 * @module
 */
import { MongoClient } from 'mongodb'
import { sendWebhooks } from '../../examples/events/webhook.ts'
import { mongoStore } from '../../src/index.ts'
import { flowsStore } from '../../src/store/index.ts'
import { startHarness } from '../support/harness.ts'
import { movableClock } from '../support/time.ts'

const [work, uri = '', url = '', secret = ''] = process.argv.slice(2)
const db = (await MongoClient.connect(uri)).db()

if (work === 'send') {
  await sendWebhooks(db, url, secret, new AbortController().signal)
} else {
  const store = mongoStore(db)
  const { audit } = flowsStore(store, movableClock)
  const { record } = audit
  audit.record = async (event, keepMs) => {
    const isNew = await record(event, keepMs)
    if (event.type === 'password_reset_completed') process.kill(process.pid, 'SIGKILL')
    return isNew
  }
  const h = await startHarness({
    database: { db, drop: async () => {} },
    flows: { store },
  })
  h.flows.events.on('audit', ({ type }) => process.stdout.write(`${type}\n`))
  const ann = await h.addUser({ username: 'ann' })
  await h.reset(await ann.forgets(), 'a new password')
}
