// E-mail and password, verification required. Mails are not awaited, as its documentation advises; it has no indexes of its own.
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { mongodbAdapter } from 'better-auth/adapters/mongodb'
import { toNodeHandler } from 'better-auth/node'
import { MongoClient } from 'mongodb'
import { createMailer, listen, sendWith } from '../comparison/mailer.mjs'

const { PORT, MONGO_URL } = process.env
const client = await MongoClient.connect(MONGO_URL, { maxPoolSize: 32 })
const db = client.db()
await db.collection('user').createIndex({ email: 1 }, { unique: true })
await db.collection('account').createIndex({ userId: 1 })
await db.collection('verification').createIndex({ identifier: 1 })
await db.collection('session').createIndexes([{ key: { userId: 1 } }, { key: { token: 1 } }])

const mailer = createMailer()
async function send({ user, url }) {
  sendWith(mailer, { to: user.email, subject: 'Your link', text: `Open this link:\n${url}\n` })
}

const auth = betterAuth({
  baseURL: `http://127.0.0.1:${PORT}`,
  secret: 'a secret of 32 characters for the bench alone',
  database: mongodbAdapter(db, { client }),
  emailAndPassword: {
    enabled: true,
    requireEmailVerification: true,
    revokeSessionsOnPasswordReset: true,
    sendResetPassword: send,
  },
  emailVerification: { autoSignInAfterVerification: true, sendVerificationEmail: send },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { disabled: true },
})
const handle = toNodeHandler(auth)
listen(createServer((req, res) => void handle(req, res)))
