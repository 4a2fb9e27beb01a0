// A login server in one file: sign-in, password reset and verification of addresses. Everything is in memory.
// In an empty folder: npm init -y && npm install oidc-account-flows oidc-provider express bcrypt
// Copy this file there, run node first-app.mjs, and open http://localhost:3000/. The terminal shows the mails.
import { randomBytes } from 'node:crypto'
import { hash } from 'bcrypt'
import express from 'express'
import { createAccountFlows, memoryStore, memoryUsers } from 'oidc-account-flows'
import { interactionPolicy, Provider } from 'oidc-provider'

const port = Number(process.env.PORT ?? 3000)
const baseUrl = `http://localhost:${port}`

const users = memoryUsers([
  {
    id: '1',
    username: 'ann',
    email: 'ann@example.com',
    emailVerified: false,
    passwordHash: await hash('the password of ann', 12),
    disabled: false,
  },
])

const flows = createAccountFlows({
  baseUrl,
  oauthPath: '/oauth2',
  secrets: [randomBytes(32)], // in production a fixed one: links and records need it
  store: memoryStore(), // in production mongoStore(db) or postgresStore(pool)
  users,
  transport: {
    isStandIn: true,
    async send({ to, subject, text }) {
      console.log(`\nTo: ${to}\nSubject: ${subject}\n\n${text}`)
      return { accepted: true }
    },
  },
  initialSettings: { require_email_verification: 'true' },
})

const provider = new Provider(`${baseUrl}/oauth2`, {
  adapter: flows.adapter(),
  clients: [
    {
      client_id: 'app',
      redirect_uris: [`${baseUrl}/callback`],
      token_endpoint_auth_method: 'none',
    },
  ],
  features: { devInteractions: { enabled: false } },
  interactions: {
    url: (_ctx, { uid }) => `/login/${uid}`,
    policy: flows.policy(interactionPolicy.base()),
  },
  async findAccount(_ctx, sub) {
    const user = await users.findById(sub)
    if (!user || user.disabled) return undefined
    return { accountId: sub, claims: () => ({ sub }) }
  },
  // Your own client needs no consent. Without this, the provider asks for it at the login page: with `prompt=consent`, it still does.
  async loadExistingGrant({ oidc: { client, session, requestParamScopes } }) {
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
    grant.addOIDCScope([...requestParamScopes].join(' '))
    await grant.save()
    return grant
  },
})
flows.attach(provider)
await flows.start()

const app = express()
app.use(flows.adminApi, flows.wellKnownChangePassword)

app
  .route('/login/:uid')
  .get((req, res) => showForm(req, res, 200))
  .post(express.urlencoded({ extended: false }), async (req, res) => {
    const startedAt = flows.loginStarted()
    if (!isOurs(req)) return void res.status(403).send('This form came from another site.')
    await provider.interactionDetails(req, res) // throws unless this browser has this sign-in
    const { username = '', password = '' } = req.body
    const waitSeconds = await flows.limitLogin(req, username)
    if (waitSeconds !== undefined)
      return void res.status(429).set('Retry-After', String(waitSeconds)).send('Try again later.')
    const account = await users.findByUsername(username)
    const isRight = await flows.verifyPassword(account, password, req)
    if (!account || !isRight) return showForm(req, res, 401)
    await flows.finishLogin(req, res, { account, startedAt })
  })

/** Another site must not sign people in to the account of its choice. */
function isOurs({ headers }) {
  const { origin = baseUrl, 'sec-fetch-site': site = 'none' } = headers
  // A page without a referrer sends `Origin: null`.
  if (site === 'same-origin') return [baseUrl, 'null'].includes(origin)
  return site === 'none' && origin === baseUrl
}

async function showForm(req, res, status) {
  // The link carries the request, so that the end of a reset leads back to this login.
  const { params } = await provider.interactionDetails(req, res)
  const names = ['client_id', 'redirect_uri', 'scope', 'state', 'ui_locales']
  const given = names.filter((name) => params[name]).map((name) => [name, params[name]])
  const query = new URLSearchParams(given)
  res.status(status).send(`<!doctype html><title>Sign in</title>
    <h1>Sign in</h1>${status === 401 ? '<p>That username and password do not match.</p>' : ''}
    <form method="post">
      <p><label>Username <input name="username" autocomplete="username"></label>
      <p><label>Password <input name="password" type="password" autocomplete="current-password"></label>
      <p><button>Sign in</button>
    </form>
    <p><a href="/oauth2/forgot-password?${query}">Forgot your password?</a>`)
}

// The app that people sign in to: only its two ends.
app.get('/', (_req, res) => {
  const query = new URLSearchParams({
    client_id: 'app',
    redirect_uri: `${baseUrl}/callback`,
    response_type: 'code',
    scope: 'openid',
    state: 'a random value',
    code_challenge: 'the-challenge-of-a-random-verifier-43-chars',
    code_challenge_method: 'S256',
  })
  res.send(`<!doctype html><title>App</title>
    <a href="/oauth2/auth?${query}">Sign in as ann, "the password of ann"</a>`)
})
app.get('/callback', (req, res) => {
  res.type('text').send(req.query.code ? 'Signed in: the app has a code.' : 'Not signed in.')
})

app.use('/oauth2', provider.callback()) // last
// An old login page, for example: its sign-in is over.
app.use((error, _req, res, next) => {
  if (!error.status) console.error(error)
  if (res.headersSent) next(error)
  else res.status(error.status ?? 500).send('That did not work. Go back to the app and try again.')
})
app.listen(port, () => console.log(`Open ${baseUrl}/`))
