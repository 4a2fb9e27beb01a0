// This package, compiled, on Koa beside oidc-provider, as its README mounts it. The provider's records are in memory.
import { generateKeyPairSync } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import Koa from 'koa'
import mount from 'koa-mount'
import { MongoClient } from 'mongodb'
import { interactionPolicy, Provider } from 'oidc-provider'
import { FROM, listen } from './mailer.mjs'

const { PORT, MONGO_URL, DB, SMTP_PORT, COMPILED } = process.env
const { createAccountFlows, mongoStore, mongoUsers } = await import(
  pathToFileURL(`${COMPILED}/src/index.js`)
)
console.warn = () => {}
console.info = () => {}
const base = `http://127.0.0.1:${PORT}`
const oauthPath = '/oauth2'
const db = (await MongoClient.connect(MONGO_URL, { maxPoolSize: 32 })).db(DB)
const users = mongoUsers(db.collection('users'))
const flows = createAccountFlows({
  baseUrl: base,
  oauthPath,
  secrets: [Buffer.alloc(32, 7)],
  store: mongoStore(db),
  users,
  bcryptCost: 10,
  responseDelay: { floorMs: 0, jitterMs: 0 },
  adminToken: 'an admin token for the bench alone'.replaceAll(' ', '-'),
  log: (level, message, details) => level === 'error' && console.error(message, details),
  initialSettings: {
    require_email_verification: 'true',
    smtp_host: '127.0.0.1',
    smtp_port: SMTP_PORT,
    smtp_from: FROM,
    smtp_tls: 'none',
    mails_per_minute: '0',
  },
})
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const provider = new Provider(base + oauthPath, {
  adapter: flows.adapter(),
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig' }] },
  cookies: { keys: ['a cookie key for the bench alone'] },
  clients: [
    {
      client_id: 'app',
      client_secret: 'a client secret for the bench alone',
      redirect_uris: ['https://app.example/cb'],
    },
  ],
  features: { devInteractions: { enabled: false } },
  pkce: { required: () => false },
  interactions: {
    url: (_ctx, { uid }) => `${oauthPath}/login?interaction=${uid}`,
    policy: flows.policy(interactionPolicy.base()),
  },
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  async loadExistingGrant({ oidc }) {
    const { client, session } = oidc
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
    grant.addOIDCScope('openid')
    await grant.save()
    return grant
  },
})
flows.attach(provider)
await flows.start()

const app = new Koa()
app.keys = provider.keys
// A login without a check of the password: hashing would be all that is measured.
app.use(async (ctx, next) => {
  if (ctx.path !== `${oauthPath}/login`) return next()
  if (ctx.method === 'GET') {
    await provider.interactionDetails(ctx.req, ctx.res)
    ctx.body = '<!doctype html><form method="post"><input name="username"><button>Go on</button>'
    return undefined
  }
  const startedAt = flows.loginStarted()
  const parts = []
  for await (const chunk of ctx.req) parts.push(chunk)
  const username = new URLSearchParams(Buffer.concat(parts).toString()).get('username')
  const account = await users.findByUsername(username)
  ctx.respond = false
  await flows.finishLogin(ctx.req, ctx.res, { account, startedAt })
  return undefined
})
app.use(mount(oauthPath, provider))
listen(app)
