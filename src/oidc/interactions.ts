/** The login prompt of the provider: what it asks for, what is captured of it, and how it is finished. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { interactionPolicy, type KoaContextWithOIDC, type Provider } from 'oidc-provider'
import type { LoginResult } from '../store/logins.ts'
import type { Log, UserStore } from '../contract/index.ts'
import { defined } from '../store/kind.ts'
import { must, refuseWeak } from '../errors.ts'
import type { Settings } from '../settings/table.ts'

export type Interactions = ReturnType<typeof createInteractions>

/** The login prompt that this browser is at, by its cookie. Without one, oidc-provider throws `SessionNotFound`. */
export function createInteractions(provider: () => Provider) {
  return {
    /** Captures what is needed of the authorization request to resume it later, without the login. */
    async capture(req: IncomingMessage, res: ServerResponse) {
      const interaction = await provider().interactionDetails(req, res)
      const { params, prompt, trusted, cid, deviceCode, lastSubmission } = interaction
      const { parJti }: { parJti?: string } = Object(interaction)
      const rest = defined({ trusted, deviceCode, lastSubmission, parJti })
      return { params, prompt, cid, ...rest }
    },

    finish: (req: IncomingMessage, res: ServerResponse, login: LoginResult) =>
      provider().interactionFinished(req, res, { login: { ...login } }),

    /** The address of that redirect. Nothing is answered. */
    redirectUrl: (req: IncomingMessage, res: ServerResponse, login: LoginResult) =>
      provider().interactionResult(req, res, { login: { ...login } }),
  }
}

/** A policy of oidc-provider, such as `interactionPolicy.base()`. */
export type InteractionPolicy = interactionPolicy.DefaultPolicy

type Asks = (ctx: KoaContextWithOIDC) => boolean | Promise<boolean>

/** The provider does not reveal its policy. So `expectMade` checks only that `add` was called. */
export function createAccountPolicy(
  users: Pick<UserStore, 'findById'>,
  settings: () => Settings,
  log: Log,
) {
  const { Check } = interactionPolicy
  let isMade = false

  return {
    /**
     * Adds two checks, so that no client gets a code against section 4.8. They stop a session from before the setting was on, `prompt=none`,
     * and a host that forgot `finishLogin`. The session of a disabled or deleted account leads to the login page, not to an error.
     */
    add(policy: InteractionPolicy): InteractionPolicy {
      isMade = true
      const login = policy.get('login')
      must(login, 'policy must have a prompt with the name "login"')
      const add = (reason: string, description: string, asks: Asks) =>
        login.checks.add(new Check(reason, description, 'login_required', asks))

      add(
        'account_gone',
        'the account is disabled or deleted',
        ({ oidc }) => oidc.session?.accountId !== undefined && oidc.account === undefined,
      )
      add('email_unverified', 'the e-mail address is not verified', async ({ oidc }) => {
        const accountId = oidc.session?.accountId
        if (accountId === undefined || !settings().requireEmailVerification) return false
        return (await users.findById(accountId))?.emailVerified !== true
      })
      return policy
    },

    /** Warns if `add` was never called; in production it throws. */
    expectMade() {
      if (!isMade) refuseWeak(log)('interactions.policy of the provider must be flows.policy(…)')
    },
  }
}
