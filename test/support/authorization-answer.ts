import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import * as client from 'openid-client'
import type { User } from '../../src/index.ts'
import { decodeEntities, type Answer } from './user-agent.ts'

/** What reached the client, in whichever mode it came. */
export interface AuthorizationAnswer {
  mode: 'query' | 'fragment' | 'form_post'
  /** Inside a JWT of the provider (JARM). */
  isSigned: boolean
  redirectUri: string
  parameters: Record<string, string>
}

export interface Redemption {
  config: client.Configuration
  isHybrid: boolean
  checks: client.AuthorizationCodeGrantChecks
  /** The resource that the access token is for. `undefined`: the provider's own userinfo. */
  resource: string | undefined
}

type Json = Record<string, unknown>

/** Reads an answer as the client would, and checks the signature of a signed one. */
export async function readAnswer(
  answer: Answer,
  config: client.Configuration,
): Promise<AuthorizationAnswer> {
  const read = answer.location === undefined ? fromForm(answer.text, answer) : fromUrl(answer)
  const { response, ...others } = read.parameters
  if (response === undefined) return { ...read, isSigned: false }
  if (Object.keys(others).length > 0) throw new Error('there is more than the signed response')
  const { issuer, jwks_uri: jwks = '' } = config.serverMetadata()
  const { payload } = await jwtVerify(response, createRemoteJWKSet(new URL(jwks)), {
    issuer,
    audience: config.clientMetadata().client_id,
    requiredClaims: ['exp'],
  })
  const { aud: _aud, exp: _exp, iat: _iat, ...signed } = payload
  return { ...read, isSigned: true, parameters: signed as Record<string, string> }
}

function fromUrl({ location = '' }: Answer): Omit<AuthorizationAnswer, 'isSigned'> {
  const url = new URL(location)
  if (url.search !== '' && url.hash !== '') throw new Error(`two modes in one: ${location}`)
  const parameters = new URLSearchParams(url.search || url.hash.slice(1))
  return {
    mode: url.hash === '' ? 'query' : 'fragment',
    redirectUri: url.origin + url.pathname,
    parameters: Object.fromEntries(parameters),
  }
}

function fromForm(html: string, { hidden }: Answer): Omit<AuthorizationAnswer, 'isSigned'> {
  const action = /<form method="post" action="([^"]*)"/.exec(html)?.[1]
  if (action === undefined) throw new Error(`neither a redirect nor a form: ${html}`)
  return { mode: 'form_post', redirectUri: decodeEntities(action), parameters: hidden }
}

/** Redeems the code with `openid-client`; answers all that the client learns, without codes, times and ids. */
export async function redeem(
  { redirectUri, parameters }: AuthorizationAnswer,
  { config, isHybrid, checks, resource }: Redemption,
  user: User,
): Promise<Json> {
  const url = new URL(redirectUri)
  url[isHybrid ? 'hash' : 'search'] = new URLSearchParams(parameters).toString()
  const tokens = await client.authorizationCodeGrant(config, url, checks, {
    ...(resource !== undefined && { resource }),
  })
  const { access_token: accessToken, id_token: idToken, ...others } = tokens
  const isOpenId = idToken !== undefined
  const known = (claims: object) => withoutIds(claims, user)
  return {
    answer: known({
      ...parameters,
      ...(parameters['id_token'] && { id_token: known(decodeJwt(parameters['id_token'])) }),
    }),
    tokens: known(others),
    idToken: isOpenId && known(decodeJwt(idToken)),
    accessToken: known(
      resource === undefined
        ? await client.tokenIntrospection(config, accessToken)
        : decodeJwt(accessToken),
    ),
    userinfo:
      isOpenId &&
      resource === undefined &&
      known(await client.fetchUserInfo(config, accessToken, user.id)),
  }
}

const NEVER_TWICE = new Set(['code', 'iat', 'exp', 'auth_time', 'jti', 'sid', 'at_hash', 'c_hash'])

/** Of what differs between any two logins only the type is kept, and the user is one person like another. */
function withoutIds(claims: object, { id, email }: User): Json {
  const isKept = ([, value]: [string, unknown]) => typeof value !== 'function'
  const entries = Object.entries(claims).filter(isKept)
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (NEVER_TWICE.has(name) || name.endsWith('_token')) {
        return [name, typeof value === 'object' ? value : typeof value]
      }
      if (name === 'sub' && value === id) return [name, 'the user']
      if (name === 'email' && value === email) return [name, 'of the user']
      return [name, value]
    }),
  )
}
