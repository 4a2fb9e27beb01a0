/** The sections of docs/reference.md: which options, methods and errors belong together, with an example. */
import type { ErrorCode } from '../../src/errors.ts'
import { list, type } from './source.ts'

export interface Section {
  title: string
  /** Left out: all that no section before it has. */
  members?: string[]
  /** What else there is to tell, by what stands in front of it. */
  more?: Record<string, string>
  code?: string
}

export const OPTIONS: Section[] = [
  {
    title: 'Address, keys and records',
    members: ['baseUrl', 'oauthPath', 'secrets', 'store', 'users', 'initialSettings'],
    code: `
createAccountFlows({
  baseUrl: 'https://id.example.com',
  oauthPath: '/oauth2',
  secrets: [signingKey],
  store: mongoStore(db),
  users: mongoUsers(db.collection('users')),
  adminToken,
  initialSettings: { smtp_host: 'smtp.example.com', require_email_verification: 'true' },
})`,
  },
  {
    title: 'Admins',
    members: ['adminToken', 'adminJwt', 'adminPath'],
    more: { '`adminJwt` has:': list('AdminJwtOptions') },
    code: `
createAccountFlows({
  ...options,
  adminToken: undefined,
  adminJwt: {
    issuer: 'https://staff.example.com',
    audience: 'https://id.example.com/admin/api',
    algorithms: ['ES256'],
    keys: new URL('https://staff.example.com/jwks'),
  },
})`,
  },
  {
    title: 'Passwords',
    members: ['bcryptCost', 'hashing', 'validatePassword'],
    more: { '`hashing` has:': list('Hashing') },
    code: `
createAccountFlows({
  ...options,
  validatePassword: (password, user) =>
    password.includes(user.username) ? { reason: 'Do not use your username in it.' } : undefined,
})`,
  },
  {
    title: 'Robots, strangers and proxies',
    members: ['trustedProxies', 'beforeForgotPassword', 'captcha', 'responseDelay'],
    more: {
      '`beforeForgotPassword` gets:': list('ForgotPasswordRequest'),
      '`captcha` has:': list('Captcha'),
      '`responseDelay` is random, from `floorMs` to `floorMs` + `jitterMs` milliseconds:':
        list('ResponseDelay'),
    },
    code: `
createAccountFlows({
  ...options,
  trustedProxies: 1,
  beforeForgotPassword: ({ requester }) => (requester.address === '203.0.113.7' ? 'deny' : 'allow'),
})`,
  },
  {
    title: 'Mails',
    members: ['transport'],
    code: `
const mailbox = memoryMailbox()
createAccountFlows({ ...options, transport: mailbox })
mailbox.messages() // the newest first`,
  },
  {
    title: 'Look and language',
    members: ['brand', 'viewsDirectory', 'defaultLocale'],
    more: { '`brand` has:': list('Brand') },
    code: `
createAccountFlows({
  ...options,
  brand: { name: 'Acme', logo: '/acme.png', colour: '#4f46e5' },
  viewsDirectory: 'theme',
  defaultLocale: 'de',
})`,
  },
  {
    title: 'Clients, log and time',
    members: ['clientLogout', 'log', 'clock'],
    more: { '`clientLogout` has:': list('ClientLogoutOptions') },
    code: `
createAccountFlows({
  ...options,
  log: (level, message, details) => console.error(level, message, details),
})`,
  },
]

export const METHODS: Section[] = [
  {
    title: 'Mount and run',
    members: [
      'adapter',
      'policy',
      'attach',
      'start',
      'stop',
      'health',
      'adminApi',
      'wellKnownChangePassword',
    ],
    code: `
const provider = new Provider('https://id.example.com/oauth2', {
  adapter: flows.adapter(),
  interactions: { url, policy: flows.policy(interactionPolicy.base()) },
  features: { devInteractions: { enabled: false } },
})
flows.attach(provider)
await flows.start()
app.use(flows.adminApi, flows.wellKnownChangePassword)
app.get('/ready', async (_req, res) => {
  const health = await flows.health()
  res.status(health.isReady ? 200 : 503).json(health)
})
app.use('/oauth2', provider.callback())
const server = app.listen(3000)
process.once('SIGTERM', async () => {
  const closed = new Promise((done) => server.close(done))
  await flows.stop()
  await closed
  process.exit(0)
})`,
    more: {
      'An adapter may have one more method, as the type `AccountAdapter`:': list('AccountAdapter'),
    },
  },
  {
    title: 'Your login page',
    members: [
      'loginStarted',
      'limitLogin',
      'verifyPassword',
      'finishLogin',
      'decideLogin',
      'blockUnverified',
    ],
    more: {
      '`login` is:': list('CheckedLogin'),
      '`decideLogin` returns:': `${type('LoginDecision')}\n\n\`BlockedByEmail\` has:\n\n${list('BlockedByEmail')}`,
    },
    code: `
const startedAt = flows.loginStarted()
if (!isOurs(req)) return showOtherSite()
const waitSeconds = await flows.limitLogin(req, username)
if (waitSeconds !== undefined) return showTooMany(waitSeconds)
const account = await users.findByUsername(username)
const isRight = await flows.verifyPassword(account, password, req)
if (!account || !isRight) return showWrongPassword()
await flows.finishLogin(req, res, { account, startedAt })`,
  },
  {
    title: 'Accounts',
    more: {
      'If `validatePassword` refuses the password, it returns:': list('RefusedNewPassword'),
      '`invite` returns:': `${type('Invited')}\n\n${type('InvitationRefusal')}`,
      '`emailChanged` returns:': list('ChangedEmail'),
    },
    code: `
await flows.endSessions('42') // the account was disabled
await flows.passwordChanged('42', { req, res }) // your page replaced its password
const invited = await flows.invite('42') // it was imported without a password
if ('refused' in invited) note(invited.refused)
await flows.sendVerification('42') // it signed up on your page
const before = await users.findById('42')
// … your page replaces its address
await flows.emailChanged('42', before)`,
  },
]

/** Each code: what happened, and what to do. */
export const ERRORS: Record<ErrorCode, [happened: string, advice: string]> = {
  ERR_STORE_UNAVAILABLE: [
    'The database cannot be reached, or it does not answer in time. Your `UserStore` throws this too.',
    'Answer 503. What you asked for may have been done. You can ask again.',
  ],
  ERR_OVERLOADED: [
    'Too many passwords wait to be compared or hashed.',
    'Answer 503 with `Retry-After` ([the queue](limits.md#passwords-to-hash)).',
  ],
  ERR_VALIDATOR_FAILED: [
    'Your `validatePassword` threw, took more than 2 seconds, or gave no reason. No password was set.',
    'Answer 503, and mend it ([what it answers](passwords.md#your-own-check)).',
  ],
  ERR_NOT_ATTACHED: [
    '`passwordChanged` with a browser needs the provider.',
    'Call `flows.attach(provider)` first.',
  ],
  ERR_STORE_INDEX: [
    '`flows.start()` cannot create an index. The message names it.',
    'Make the values unique, or drop the index. Then start again.',
  ],
  ERR_STORE_DAMAGED: [
    'A record was changed by hand. The message names it.',
    'Mend or remove the record.',
  ],
  ERR_SETTINGS_CONFLICT: [
    'Others changed the settings at the same time, again and again.',
    'Try again.',
  ],
  ERR_MAIL_ADDRESS: [
    'The reason of a failed mail: the account has no single plain address.',
    'Correct the address.',
  ],
  ERR_MAIL_REFUSED: [
    'The reason of a failed mail: the mail server refused it for good.',
    "`account-flows user status` shows the server's words.",
  ],
  ERR_MAIL_FAILED: [
    'The reason of a failed mail: it could not be handed over. It is tried again.',
    '`account-flows doctor` says what is wrong with the mail server.',
  ],
}
