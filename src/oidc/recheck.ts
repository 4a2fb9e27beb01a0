import { type IncomingMessage, ServerResponse } from 'node:http'
import { UnsecuredJWT } from 'jose'
import type { Context } from 'koa'
import type { Provider } from 'oidc-provider'
import { AccountFlowsError } from '../errors.ts'
import type { CapturedRequest } from '../store/index.ts'
import { outcomeOf } from './provider-answers.ts'

export type Client = NonNullable<Awaited<ReturnType<Provider['Client']['find']>>>

/** The pushed request outlives the check only if the process dies. */
const QUESTION_SECONDS = 60

// Whether the provider would take a captured request today: it does not check again what it resumes. So this sends the request once more,
// without cookies. Only a request that passes all checks begins an interaction. It throws if the provider cannot answer.
export function createRecheck(provider: () => Provider) {
  async function startsInteraction(ctx: Context, query: URLSearchParams): Promise<boolean> {
    const path = provider().pathFor('authorization', { mountPath: '' })
    const req = anonymousRequest(ctx, `${path}?${query.toString()}`)
    const res = new ServerResponse(req)
    await provider().callback()(req, res)
    const { interaction, failure } = outcomeOf(req)
    await interaction?.destroy()
    if (failure) throw failure
    if (interaction) return true
    // A status of 429, or of 500 and more, says nothing about the request.
    const { statusCode } = res
    if (statusCode < 500 && statusCode !== 429) return false
    const message = `The provider answered ${statusCode} when it was asked about a captured request`
    throw statusCode === 503
      ? new AccountFlowsError('ERR_STORE_UNAVAILABLE', message)
      : new Error(message)
  }

  async function startsPushed(ctx: Context, { params, trusted }: CapturedRequest) {
    const { PushedAuthorizationRequest, issuer } = provider()
    const clientId = String(params['client_id'])
    // With FAPI the provider requires both times.
    const request = new UnsecuredJWT(params)
      .setIssuer(clientId)
      .setAudience(issuer)
      .setNotBefore('0s')
      .setExpirationTime(`${QUESTION_SECONDS}s`)
      .encode()
    const standIn = new PushedAuthorizationRequest({ request, ...(trusted && { trusted }) })
    const uri = `urn:ietf:params:oauth:request_uri:${await standIn.save(QUESTION_SECONDS)}`
    const query = new URLSearchParams({ client_id: clientId, request_uri: uri })
    try {
      return await startsInteraction(ctx, query)
    } finally {
      await standIn.destroy()
    }
  }

  return async (ctx: Context, captured: CapturedRequest, client: Client): Promise<boolean> => {
    const { params, parJti, trusted } = captured
    const mustPush = client.requirePushedAuthorizationRequests === true
    const mustSign = client.requireSignedRequestObject === true
    if ((mustPush && parJti === undefined) || (mustSign && !trusted?.length)) return false
    if (!mustPush && !mustSign) return startsInteraction(ctx, queryOf(params))
    // Only the client can sign. So its earlier signature counts, and the rest is checked like a request that the client pushed.
    return takesPushed(provider()) ? startsPushed(ctx, captured) : isRegistered(captured, client)
  }
}

function isRegistered({ params }: CapturedRequest, client: Client): boolean {
  const { redirect_uri: redirectUri, response_type: responseType } = params
  return (
    typeof redirectUri === 'string' &&
    client.redirectUriAllowed(redirectUri) &&
    client.responseTypes?.some((allowed) => allowed === responseType) === true
  )
}

function takesPushed(provider: Provider): boolean {
  try {
    provider.pathFor('pushed_authorization_request')
    return true
  } catch {
    return false
  }
}

function queryOf(params: CapturedRequest['params']): URLSearchParams {
  const pairs = Object.entries(params).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value]
    const given = values.filter((each) => each !== undefined && each !== null)
    return given.map((each): [string, string] => [name, String(each)])
  })
  return new URLSearchParams(pairs)
}

/** The same connection, without the cookies and the body. */
function anonymousRequest({ req, secure }: Context, url: string): IncomingMessage {
  const kept = Object.entries(req.headers).filter(
    ([name]) => name !== 'cookie' && name !== 'transfer-encoding' && !name.startsWith('content-'),
  )
  const own = (value: unknown) => ({ value, writable: true })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `Object.create` makes has no type
  return Object.create(req, {
    url: own(url),
    originalUrl: own(url),
    method: own('GET'),
    headers: own(Object.fromEntries(kept)),
    // Perhaps only the framework of the host knows that this is https.
    socket: own(Object.create(req.socket, { encrypted: own(secure) })),
  }) as IncomingMessage
}
