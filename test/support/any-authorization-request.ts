import * as fc from 'fast-check'

/** A legal authorization request, and how it reaches the provider. */
export interface AnyRequest {
  isConfidential: boolean
  isPushed: boolean
  isSigned: boolean
  redirectUri: string
  resources: string[]
  /** The other parameters; those of `undefined` are left out. */
  parameters: Record<string, string | undefined>
}

/** Response type and mode; without a mode, the provider's own choice. */
export interface ResponseKind {
  type: 'code' | 'code id_token'
  mode: string | undefined
}

export const responseKinds: ResponseKind[] = [
  ...[undefined, 'query', 'fragment', 'form_post'].map((mode) => ({ type: 'code', mode }) as const),
  ...['jwt', 'query.jwt', 'fragment.jwt', 'form_post.jwt'].map(
    (mode) => ({ type: 'code', mode }) as const,
  ),
  ...[undefined, 'fragment', 'form_post', 'jwt', 'fragment.jwt', 'form_post.jwt'].map(
    (mode) => ({ type: 'code id_token', mode }) as const,
  ),
]

/** The level that every login of the tests reaches. */
export const ACR = 'silver'
export const redirectUris = ['https://any.example/cb', 'https://any.example/tenants/a%20b/cb']
export const resourceServers = ['https://one.example/api', 'urn:example:two?of=2']

export const apiScopes = ['api:read', 'api:write']

/** How an answer of this kind comes to the client. */
export function deliveryOf({ type, mode = 'default' }: ResponseKind) {
  const [base = ''] = mode.split('.')
  const byDefault = type === 'code' ? 'query' : 'fragment'
  return {
    mode: ['default', 'jwt'].includes(base) ? byDefault : base,
    isSigned: mode.endsWith('jwt'),
  }
}

const openIdScopes = ['email', 'offline_access', ...apiScopes]
const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

const askedClaim = fc.constantFrom(null, { essential: true })
const askedLevel = fc.constantFrom(
  null,
  { essential: true },
  { value: ACR },
  { essential: true, values: ['gold', ACR] },
)
const inIdToken = fc.record(
  { email: askedClaim, email_verified: askedClaim, auth_time: askedClaim, acr: askedLevel },
  { requiredKeys: [] },
)
const inUserinfo = fc.record(
  { email: askedClaim, email_verified: askedClaim },
  { requiredKeys: [] },
)
const claims = fc.oneof(
  fc.record({ id_token: inIdToken }),
  fc.record({ userinfo: inUserinfo }),
  fc.record({ id_token: inIdToken, userinfo: inUserinfo }),
)

/** Any request that OpenID Connect or plain OAuth allows for this kind of response. */
export function anyRequest({ type, mode }: ResponseKind): fc.Arbitrary<AnyRequest> {
  const isHybrid = type === 'code id_token'
  const isOpenId = isHybrid ? fc.constant(true) : fc.nat(4).map((n) => n > 0)
  return isOpenId.chain((openId) => {
    const ofOpenId = <T>(arbitrary: fc.Arbitrary<T>) =>
      openId ? arbitrary : fc.constant(undefined)
    return fc.record({
      isConfidential: fc.boolean(),
      isPushed: fc.boolean(),
      isSigned: fc.boolean(),
      redirectUri: fc.constantFrom(...redirectUris),
      resources: fc.subarray(resourceServers, { minLength: openId ? 0 : 1 }),
      parameters: fc.record({
        response_type: fc.constant<string>(type),
        response_mode: fc.constant(mode),
        scope: fc
          .subarray(openId ? openIdScopes : apiScopes, { minLength: 1 })
          .map((scopes) => [...(openId ? ['openid'] : []), ...scopes].join(' ')),
        state: maybe(fc.oneof({ weight: 5, arbitrary: text }, fc.constant(''))),
        nonce: ofOpenId(isHybrid ? text : maybe(text)),
        claims: ofOpenId(maybe(claims.map((asked) => JSON.stringify(asked)))),
        max_age: ofOpenId(maybe(fc.integer({ min: 600, max: 100_000 }).map(String))),
        acr_values: ofOpenId(maybe(fc.constantFrom(ACR, `gold ${ACR}`, 'gold'))),
        ui_locales: maybe(fc.constantFrom('de', 'ar fr', 'x-none en')),
        prompt: maybe(fc.constantFrom('login', 'consent', 'login consent', 'consent login')),
        display: maybe(fc.constantFrom('page', 'popup')),
        login_hint: maybe(text),
      }),
    })
  })
}
