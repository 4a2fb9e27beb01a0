import { interactionPolicy } from 'oidc-provider'
import type { Log, User } from '../ports/index.ts'
import { refuseWeak } from '../production.ts'
import type { Settings } from '../settings/table.ts'

/** A policy of oidc-provider, such as `interactionPolicy.base()`. */
export type InteractionPolicy = interactionPolicy.DefaultPolicy

type ReadAccount = (accountId: string) => Promise<User | undefined>

/** The provider does not tell which policy it was given, so what is judged is whether ours was ever made. */
export function createAccountPolicy(readAccount: ReadAccount, settings: () => Settings, log: Log) {
  let isMade = false
  return {
    add(base: InteractionPolicy): InteractionPolicy {
      isMade = true
      return addAccountChecks(base, readAccount, settings)
    },
    /** Warns where it was not, and refuses it in production. */
    expectMade() {
      if (!isMade) refuseWeak(log)('interactions.policy of the provider must be flows.policy(…)')
    },
  }
}

/**
 * Adds two checks to the login prompt, so that no path leads to a code around section 4.8. They stop an older session from
 * before the setting, `prompt=none`, and a host that forgot `finishLogin`. The session of a disabled or deleted account leads
 * to the login page, not to an error.
 */
function addAccountChecks(
  policy: InteractionPolicy,
  readAccount: ReadAccount,
  settings: () => Settings,
): InteractionPolicy {
  const login = policy.get('login')
  if (!login) throw new TypeError('policy must have a prompt with the name "login"')
  const { Check } = interactionPolicy
  const ask = (wanted: boolean) => (wanted ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT)

  login.checks.add(
    new Check('account_gone', 'the account is disabled or deleted', 'login_required', ({ oidc }) =>
      ask(oidc.session?.accountId !== undefined && oidc.account === undefined),
    ),
  )
  login.checks.add(
    new Check(
      'email_unverified',
      'the e-mail address is not verified',
      'login_required',
      async ({ oidc }) => {
        const accountId = oidc.session?.accountId
        if (accountId === undefined || !settings().requireEmailVerification) return ask(false)
        return ask((await readAccount(accountId))?.emailVerified !== true)
      },
    ),
  )
  return policy
}
