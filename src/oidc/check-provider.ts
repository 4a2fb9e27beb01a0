import type { Provider } from 'oidc-provider'
import type { Log } from '../ports/index.ts'
import { refuseWeak } from '../production.ts'

/** @throws TypeError where it is something else, such as its `callback()`, or an app around it. */
export function sessionAdapterOf(provider: unknown): object {
  const { Session }: { Session?: { adapter?: object } } = Object(provider)
  if (Session?.adapter) return Session.adapter
  throw new TypeError('flows.attach takes the provider itself: flows.attach(new Provider(…))')
}

/**
 * What can be told of a provider that is handed to `attach`.
 *
 * @param oauthUrl - `baseUrl` and `oauthPath`.
 * @throws TypeError with a sentence that says what to do.
 */
export function checkProvider(provider: Provider, oauthUrl: string, log: Log): void {
  const { issuer } = provider
  const [given, wanted] = [new URL(issuer), new URL(oauthUrl)]
  if (given.origin !== wanted.origin) {
    refuseWeak(log)(
      `baseUrl must be at the address of the issuer: links in mails lead to ${oauthUrl}, and the issuer is ${issuer}`,
    )
  } else if (given.href !== wanted.href) {
    // Not refused: an issuer without a path may have its endpoints below one.
    const message = 'the issuer of the provider should be baseUrl and oauthPath together'
    log('warn', message, { issuer, links: oauthUrl })
  }
  // Koa adds this listener in callback().
  if (provider.listeners('error').includes(provider.onerror)) throw new TypeError(TOO_LATE)
}

const TOO_LATE =
  'Call flows.attach(provider) before provider.callback(), and before the provider is mounted: later, our pages are not found'

/** Logs the same of what was mounted without a call of callback(), with its first login. */
export function tellWhereTooLate(provider: Provider, log: Log): void {
  let isReached = false
  provider.use((_ctx, next) => {
    isReached = true
    return next()
  })
  provider.once('interaction.started', () => {
    if (!isReached) log('error', TOO_LATE)
  })
}
