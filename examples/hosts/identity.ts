import { randomBytes } from 'node:crypto'
import bcrypt from 'bcrypt'
import { errors, interactionPolicy, Provider } from 'oidc-provider'
import {
  createAccountFlows,
  memoryStore,
  memoryUsers,
  type AccountFlowsOptions,
  type MailTransport,
} from '../../src/index.ts'
import { createChangePassword } from './change-password.ts'
import type { HostParts } from './host-parts.ts'
import { askingToComeBack, isOurs, readForm, show, showTooMany } from './page.ts'

/**
 * All that is the same on every host: the flows, the provider, a login page, and one to change the password. Everything is in
 * memory, and one account, `ann`, waits for its address to be verified.
 */
export async function createIdentity(
  baseUrl: string,
  transport: MailTransport,
  oauthPath = '/oauth2',
  options: Partial<AccountFlowsOptions> = {},
): Promise<HostParts> {
  const loginForm = loginFormFor(oauthPath)
  const users = memoryUsers([
    {
      id: '1',
      username: 'ann',
      email: 'ann@example.com',
      emailVerified: false,
      passwordHash: await bcrypt.hash('the password of ann', 12),
      disabled: false,
    },
  ])
  const flows = createAccountFlows({
    baseUrl,
    oauthPath,
    secrets: [randomBytes(32)],
    store: memoryStore(),
    users,
    transport,
    initialSettings: { require_email_verification: 'true' },
    ...options,
  })
  const provider = new Provider(baseUrl + oauthPath, {
    adapter: flows.adapter(),
    interactions: {
      url: (_ctx, { uid }) => `${oauthPath}/login?interaction=${uid}`,
      policy: flows.policy(interactionPolicy.base()),
    },
    clients: [
      {
        client_id: 'app',
        client_name: 'The App',
        redirect_uris: ['https://app.example/cb'],
        token_endpoint_auth_method: 'none',
      },
    ],
    features: { devInteractions: { enabled: false } },
    async findAccount(_ctx, sub) {
      const user = await users.findById(sub)
      if (!user || user.disabled) return undefined
      return { accountId: sub, claims: () => ({ sub, email: user.email }) }
    },
    // A client of your own needs no consent.
    async loadExistingGrant({
      oidc: {
        client,
        session,
        provider: { Grant },
        requestParamScopes,
      },
    }) {
      if (!client || session?.accountId === undefined) return undefined
      const grant = new Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope([...requestParamScopes].join(' '))
      await grant.save()
      return grant
    },
  })
  flows.attach(provider)
  await flows.start()

  const { origin } = new URL(baseUrl)
  const login = askingToComeBack(async (req, res) => {
    const startedAt = flows.loginStarted()
    const isPost = req.method === 'POST'
    if (isPost && !isOurs(req, origin)) return show(res, 403, 'This form came from another site.')
    try {
      await provider.interactionDetails(req, res)
    } catch (error) {
      if (!(error instanceof errors.SessionNotFound)) throw error
      return show(
        res,
        400,
        'This sign-in took too long. Go back to the app and sign in from there.',
      )
    }
    if (!isPost) return show(res, 200, loginForm)
    const form = await readForm(req)
    if (!form) return show(res, 413, loginForm)
    const username = form.get('username') ?? ''
    const waitSeconds = await flows.limitLogin(req, username)
    if (waitSeconds !== undefined) return showTooMany(res, waitSeconds)
    const account = await users.findByUsername(username)
    // Takes as long for a wrong name as for a wrong password.
    const isRight = await flows.verifyPassword(account, form.get('password') ?? '', req)
    if (!account || !isRight) return show(res, 401, loginForm)
    await flows.finishLogin(req, res, { account, startedAt })
  })

  const changePassword = createChangePassword({ provider, flows, users })
  return { provider, flows, oauthPath, login, changePassword }
}

const loginFormFor = (oauthPath: string) => `
<form method="post">
  <label>Username <input name="username" autocomplete="username"></label>
  <label>Password <input type="password" name="password" autocomplete="current-password"></label>
  <button>Sign in</button>
</form>
<a href="${oauthPath}/forgot-password">Forgot your password?</a>`
