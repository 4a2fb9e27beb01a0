/**
 * What each step of the flows costs in MongoDB commands: on our collections, and on the provider's. The provider's include
 * what we ask of it, such as saving the interaction that a verification link resumes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient, type CommandStartedEvent } from 'mongodb'
import { startHarness } from '../test/support/harness.ts'
import { freshDatabase, stopMongo } from '../test/support/mongod.ts'
import { createUserAgent } from '../test/support/user-agent.ts'

const isOurs = (command: string) => !command.startsWith('oidc_records.')

const database = await freshDatabase()
const client = await MongoClient.connect(database.uri, { monitorCommands: true })
const commands: string[] = []
client.on('commandStarted', (event) => {
  if (!isBackground(event))
    commands.push(`${event.command[event.commandName]}.${event.commandName}`)
})
const h = await startHarness({
  database: { db: client.db(), drop: async () => {} },
  settings: { password_changed_email: 'true' },
  // Without, requests of this machine are not counted: one command less for each form.
  flows: { trustedProxies: 1 },
})

// Looks for due mails, for unfinished resets and for a newer version of the settings, and notes of the keys.
function isBackground({ commandName, command }: CommandStartedEvent): boolean {
  const [by = ''] = Object.keys(Object(command['sort']))
  const isPoll = ['available_at', 'expires_at', 'lease_until'].includes(by)
  const isAdministration = ['hello', 'ping', 'endSessions'].includes(commandName)
  return isPoll || isAdministration || ['settings', 'key_rings'].includes(command[commandName])
}

async function report<T>(what: string, work: () => Promise<T>): Promise<T> {
  await sleep(1_500)
  commands.length = 0
  const result = await work()
  const seen = [...commands]
  const ours = seen.filter(isOurs)
  const providers = seen.filter((name) => !isOurs(name))
  console.log(`\n${what}: ${ours.length} ours, ${providers.length} the provider's`)
  if (ours.length > 0) console.log(`  ${ours.join('\n  ')}`)
  if (providers.length > 0) console.log(`  (${providers.join(' ')})`)
  return result
}

const alice = await h.addUser({ username: 'alice' })
await report('POST forgot-password, behind a proxy', () => h.forgot('alice'))
const { link } = await h.mail.mailTo(alice.email ?? '')
await report('GET reset-password', () => createUserAgent().get(link))
await report('POST reset-password', () => h.reset(link, 'another password'))
await h.signIn(createUserAgent(), 'alice', 'another password')

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
    await h.signIn(browser, who)
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
stopMongo()
