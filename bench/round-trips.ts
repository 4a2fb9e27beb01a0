/**
 * What each step of the flows costs in MongoDB commands: on our collections, and on the provider's. The provider's include
 * what we ask of it, such as saving the interaction that a verification link resumes. Commands of one line do not wait for each other.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient, type CommandStartedEvent } from 'mongodb'
import { startHarness } from '../test/support/harness.ts'
import { commandRows } from '../test/support/command-rows.ts'
import { freshDatabase } from '../test/support/mongod.ts'
import { createUserAgent } from '../test/support/user-agent.ts'

const PROVIDERS = / oidc_records$/

export async function countRoundTrips(): Promise<void> {
  const database = await freshDatabase()
  const client = await MongoClient.connect(database.uri, { monitorCommands: true })
  const counted = commandRows(client, (name, event) => !isBackground(name, event))
  const h = await startHarness({
    database: { db: client.db(), drop: async () => {} },
    settings: { password_changed_email: 'true' },
    // Without, requests of this machine are not counted: one command less for each form.
    flows: { trustedProxies: 1 },
  })

  async function report<T>(what: string, work: () => Promise<T>): Promise<T> {
    await sleep(1_500)
    counted.startOver()
    const result = await work()
    const rows = counted.rows()
    const all = rows.flat()
    const providers = all.filter((name) => PROVIDERS.test(name)).length
    const sums = `${all.length - providers} ours, ${providers} the provider's, ${rows.length} in a row`
    console.log(`\n${what}: ${sums}`)
    for (const row of rows) console.log(`  ${row.join(', ')}`)
    return result
  }

  const alice = await h.addUser({ username: 'alice' })
  await report('POST forgot-password, behind a proxy', () => h.forgot('alice'))
  const { link } = await h.mail.mailTo(alice.email ?? '')
  await report('GET reset-password', () => createUserAgent().get(link))
  await report('POST reset-password', () => h.reset(link, 'another password'))
  await alice.signsIn('another password')

  const agent = createUserAgent()
  const { url } = await h.party.begin()
  await report('login of a verified user, record passed (finishLogin)', () =>
    h.login(agent, url, 'alice', 'another password'),
  )

  for (const [who, cookies] of [
    ['bob', 'no session cookie'],
    ['carol', 'with a session cookie of the same account'],
  ] as const) {
    const user = await h.addUser({ username: who, emailVerified: false })
    const browser = createUserAgent()
    if (who === 'carol') {
      await h.put({ require_email_verification: 'false' })
      await user.in(browser).signsIn()
      await h.put({ require_email_verification: 'true' })
    }
    const request = await h.party.begin({ prompt: 'login' })
    await report(`login of an unverified user (${who})`, () => h.login(browser, request.url, who))
    const mailed = await h.mail.mailTo(user.email ?? '')
    await report(`GET verify-email, ${cookies}`, () => browser.get(mailed.link))
  }

  await h.close()
  await client.close()
  await database.drop()
}

/** Looks for due mails and logouts, for unfinished resets and for a newer version of the settings, and notes of the keys. */
function isBackground(name: string, { command }: CommandStartedEvent): boolean {
  if (/^(hello|ping|endSessions) | key_rings$/.test(name)) return true
  if (/^find (settings|mail_outbox|client_logouts)$/.test(name)) return true
  return JSON.stringify(command['filter'] ?? {}).includes('lease_until')
}
