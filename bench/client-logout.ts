import { forgot, putSettings, resetPassword, smtpSettings } from '../test/support/example-server.ts'
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
import { middle } from './middle.ts'
import { PASSWORD, startSeeded } from './seeded.ts'

/** From the form of a reset to the end of the session at a real client. Two times: the client has ended it, and the form is answered. */

const ROUNDS = 20

const clients: LogoutClient[] = []
for (const kind of Object.keys(LOGOUT_CLIENTS) as LogoutClientKind[]) {
  clients.push(await logoutClient(kind))
}
const mail = await startMailServer()
const database = await freshDatabase()
const { server, users, close } = await startSeeded(
  { people: 1 + ROUNDS, cost: 4, clients: clients.map((each) => each.metadata) },
  { MONGODB_URI: database.uri },
)
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
  const later = times.slice(1)
  const longest = Math.max(...later).toFixed(0)
  console.log(`${what}: median ${middle(later).toFixed(0)} ms, longest ${longest} ms`)
}

await close()
for (const client of clients) await client.stop()
await mail.close()
await database.drop()
stopMongo()
