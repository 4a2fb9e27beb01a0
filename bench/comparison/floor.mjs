// The least that this stack can do for the flows with all effects of the specification: Koa, the driver, native bcrypt. No pages to
// speak of, no limits, no retries, no languages.
import { createHash, randomBytes } from 'node:crypto'
import bcrypt from 'bcrypt'
import Koa from 'koa'
import { MongoClient } from 'mongodb'
import { createMailer, listen, sendWith } from './mailer.mjs'

const { PORT, MONGO_URL } = process.env
const base = `http://127.0.0.1:${PORT}`
const client = await MongoClient.connect(MONGO_URL, { maxPoolSize: 32 })
const [users, resets, verifies, sessions, oauth] = [
  'users',
  'password_reset_tokens',
  'email_verification_tokens',
  'idp_sessions',
  'oauth_sessions',
].map((name) => client.db().collection(name))
const byHash = { key: { hash: 1 }, unique: true }
await users.createIndexes([
  { key: { username: 1 }, unique: true },
  { key: { email: 1 }, unique: true },
])
await resets.createIndexes([byHash, { key: { userId: 1 } }])
await verifies.createIndexes([byHash])
for (const each of [sessions, oauth]) await each.createIndex({ userId: 1 })

const mailer = createMailer()
const newToken = () => randomBytes(32).toString('base64url')
const sha = (token) => createHash('sha256').update(token).digest('base64url')
const page = (title) => `<!doctype html><html lang="en"><title>${title}</title><h1>${title}</h1>`

async function issue(tokens, { _id, email }, lifetimeMs, path) {
  const [token, now] = [newToken(), new Date()]
  const expiresAt = new Date(now.getTime() + lifetimeMs)
  await tokens.insertOne({ hash: sha(token), userId: _id, createdAt: now, expiresAt, usedAt: null })
  const text = `Open this link:\n${base}${path}?token=${token}\n`
  sendWith(mailer, { to: email, subject: 'Your link', text })
}

function use(tokens, token) {
  const now = new Date()
  const isLive = { hash: sha(token), usedAt: null, expiresAt: { $gt: now } }
  return tokens.findOneAndUpdate(isLive, { $set: { usedAt: now } })
}

const pages = {
  async 'POST /forgot'({ identifier }) {
    const user = await users.findOne({ email: identifier, emailVerified: true })
    if (!user) return
    await resets.updateMany({ userId: user._id, usedAt: null }, { $set: { usedAt: new Date() } })
    await issue(resets, user, 3_600_000, '/reset')
  },

  async 'POST /resend'({ username }) {
    const user = await users.findOne({ username, emailVerified: false })
    if (user) await issue(verifies, user, 86_400_000, '/verify')
  },

  async 'POST /reset'({ token, password, confirm_password: again }) {
    const reset = password.length >= 8 && password === again && (await use(resets, token))
    if (!reset) return 400
    const { userId } = reset
    const passwordHash = await bcrypt.hash(password, 10)
    await users.updateOne({ _id: userId }, { $set: { passwordHash } })
    for (const each of [oauth, sessions])
      await each.updateMany({ userId, active: true }, { $set: { active: false } })
    console.error(JSON.stringify({ event: 'password_reset_completed', userId }))
    return 200
  },

  async 'GET /verify'({ token }, ctx) {
    const verified = await use(verifies, token)
    if (!verified) return 400
    const { userId } = verified
    await users.updateOne({ _id: userId }, { $set: { emailVerified: true } })
    await sessions.insertOne({ hash: sha(newToken()), userId, active: true })
    ctx.redirect(`https://app.example/cb?code=${newToken()}`)
    return 302
  },
}

async function fieldsOf(ctx) {
  const parts = []
  for await (const chunk of ctx.req) parts.push(chunk)
  const text = ctx.method === 'POST' ? Buffer.concat(parts).toString() : ctx.querystring
  return Object.fromEntries(new URLSearchParams(text))
}

const app = new Koa()
app.use(async (ctx) => {
  const answer = pages[`${ctx.method} ${ctx.path}`]
  if (!answer) return
  const status = (await answer(await fieldsOf(ctx), ctx)) ?? 200
  ctx.status = status
  ctx.type = 'html'
  ctx.body = page(status === 400 ? 'That did not work' : 'Done')
})
listen(app)
