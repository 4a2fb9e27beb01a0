/**
 * A session that stays while everything else of its account is ended.
 *
 * @module
 */
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Adapter, AdapterPayload, Provider } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import { isEnded, loginSecond, seenAll } from '../ports/login-end.ts'
import type { Log, MovedCutoffs } from '../ports/index.ts'
import type { StartableAdapterFactory } from './account-adapter.ts'
import { accountStamp, withLogin } from './account-stamp.ts'

/** The `uid` of the live session of this account that a request comes with. `undefined`: there is none. */
export async function sessionOf(
  provider: Provider,
  req: IncomingMessage,
  accountId: string,
): Promise<string | undefined> {
  const ctx = provider.createContext(req, new ServerResponse(req))
  const session = await provider.Session.get(ctx)
  return session.accountId === accountId ? session.uid : undefined
}

interface KeepParts {
  factories: StartableAdapterFactory[]
  box: SecretBox
  clock: Clock
  log: Log
}

/**
 * Lets a session and what was consented to in it outlive an end that has just moved the cut-off. What the cut-offs before had ended
 * stays dead, also where another process ends the account at the same time. A request in flight that saves the session again ends it.
 */
export async function keepSession(
  parts: KeepParts,
  ...of: [accountId: string, uid: string, kind: 'idp' | 'oauth', moved: MovedCutoffs]
): Promise<void> {
  try {
    await keep(parts, ...of)
  } catch (error) {
    const message = 'the session that was to stay could not be kept; it is ended like the others'
    parts.log('error', message, { error: String(error) })
  }
}

async function keep(
  { factories, box, clock }: KeepParts,
  accountId: string,
  uid: string,
  kind: 'idp' | 'oauth',
  { before, ...ends }: MovedCutoffs,
): Promise<void> {
  const adaptersOf = (model: string) => factories.map((factory) => factory(model, box))
  const former = { ...ends, [`${kind}At`]: before }

  async function stays(adapter: Adapter, model: string, payload: AdapterPayload | void) {
    if (!payload) return false
    const stamp = accountStamp(model, payload)
    if (stamp?.accountId !== accountId || isEnded(stamp.kind, stamp, former)) return false
    const { jti, exp = 0 } = payload
    const secondsLeft = exp - loginSecond(clock.now())
    if (jti === undefined || secondsLeft <= 0) return false
    const kept = withLogin(payload, { second: stamp.second, seen: seenAll(ends) })
    await adapter.upsert(jti, kept, secondsLeft)
    return true
  }

  for (const adapter of adaptersOf('Session')) {
    const session = await adapter.findByUid(uid)
    if (!(await stays(adapter, 'Session', session)) || kind === 'idp') continue
    for (const { grantId = '' } of Object.values(session?.authorizations ?? {}))
      for (const grants of adaptersOf('Grant'))
        await stays(grants, 'Grant', await grants.find(grantId))
  }
}
