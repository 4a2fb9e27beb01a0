import {
  type ExampleServer,
  putSettings,
  smtpSettings,
  startExampleServer,
} from '../support/example-server.ts'
import { freePort } from '../support/free-port.ts'
import { startMailServer, type MailServer, type MailServerOptions } from '../support/mail-server.ts'
import { freshDatabase, type FreshDatabase } from '../support/mongod.ts'

export interface SuiteService {
  database: FreshDatabase
  mail: MailServer
  server: ExampleServer
}

/** The example server of the suite that asks for it, on a database of its own, with its mails over a real SMTP server. */
export function suiteService(
  settings: Record<string, string> = {},
  answer?: MailServerOptions['answer'],
): SuiteService {
  const service = { database: {}, mail: {}, server: {} } as SuiteService
  const { database, mail, server } = service
  const ends: (() => Promise<unknown>)[] = []

  before('the service runs', async function () {
    this.timeout(180_000)
    Object.assign(database, await freshDatabase())
    ends.unshift(database.drop)
    Object.assign(
      mail,
      await startMailServer({ port: await freePort(), ...(answer && { answer }) }),
    )
    ends.unshift(() => mail.close())
    Object.assign(server, await startExampleServer({ MONGODB_URI: database.uri }))
    ends.unshift(server.kill)
    await putSettings(server, { ...smtpSettings(mail.port), ...settings })
  })

  after(async () => {
    for (const end of ends) await end()
  })

  return service
}
