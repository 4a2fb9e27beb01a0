import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import {
  forgot,
  putSettings,
  resetPassword,
  smtpSettings,
  startExampleServer,
} from '../test/support/example-server.ts'
import { percentile } from '../test/faults/load.ts'
import {
  LOGOUT_CLIENTS,
  logoutClient,
  signedInAt,
  signInAt,
  type LogoutClient,
  type LogoutClientKind,
} from '../test/oidc/real-clients.ts'
import { startMailServer } from '../test/support/mail-server.ts'
import { freshDatabase, stopMongo } from '../test/support/mongod.ts'
import { createUserAgent } from '../test/support/user-agent.ts'

/** From the form of a reset to the end of the session at a real client. Two times: the client has ended it, and the form is answered. */

const ROUNDS = 20
const PASSWORD = 'a password of the bench'

const clients: LogoutClient[] = []
for (const kind of Object.keys(LOGOUT_CLIENTS) as LogoutClientKind[]) {
  clients.push(await logoutClient(kind))
}
const folder = await mkdtemp(join(tmpdir(), 'account-flows-bench-'))
const seedFile = join(folder, 'seed.json')
const password_hash = await bcrypt.hash(PASSWORD, 4)
const users = Array.from({ length: 1 + ROUNDS }, (_none, index) => ({
  username: `person-${index}`,
  email: `person-${index}@example.com`,
  email_verified: true,
  password_hash,
}))
await writeFile(seedFile, JSON.stringify({ users, clients: clients.map((each) => each.metadata) }))
const mail = await startMailServer()
const database = await freshDatabase()
const server = await startExampleServer({ MONGODB_URI: database.uri, SEED_FILE: seedFile })
await putSettings(server, { ...smtpSettings(mail.port), password_changed_email: 'false' })
for (const client of clients) await client.start(`${server.baseUrl}/oauth2`)

const ended: number[] = []
const answered: number[] = []
for (const { username, email } of users) {
  const agent = createUserAgent()
  for (const client of clients) await signInAt(client, agent, { username, password: PASSWORD })
  await forgot(server, username)
  const { link } = await mail.mailTo(email)
  const begin = performance.now()
  const told = clients.map(
    ({ door }) =>
      new Promise<number>((resolve) => {
        door.after = () => resolve(performance.now() - begin)
      }),
  )
  await resetPassword(link, `${PASSWORD}, a new one`)
  answered.push(performance.now() - begin)
  ended.push(Math.max(...(await Promise.all(told))))
  for (const client of clients) {
    if ((await signedInAt(client, agent)) !== undefined) throw new Error('still signed in')
  }
}

for (const [what, times] of Object.entries({
  'until both clients have ended their sessions': ended,
  'until the form is answered': answered,
})) {
  // The first warms up.
  const sorted = times.slice(1).sort((a, b) => a - b)
  const [median, longest] = [percentile(sorted, 0.5), percentile(sorted, 1)]
  console.log(`${what}: median ${median.toFixed(0)} ms, longest ${longest.toFixed(0)} ms`)
}

await server.kill()
for (const client of clients) await client.stop()
await mail.close()
await database.drop()
stopMongo()
await rm(folder, { recursive: true, force: true })
