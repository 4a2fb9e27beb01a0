/** What was sent to us: the fields of a form, the link in an address, the body of a request. */
import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import { parametersFrom, type RequestParameters, type Requester } from '../contract/parameters.ts'
import { isId, isToken } from '../crypto/token.ts'
import {
  SIGNED,
  decode,
  isBracketed,
  readingsOf,
  type VerificationLink,
} from '../crypto/verification-link.ts'

/** Names and values, each name exactly once. */
export type Fields = ReadonlyMap<string, string>

export interface SentForm {
  fields: Fields
  /** The parameters of the request that the form belongs to. A stranger may have changed them. */
  parameters: RequestParameters
  uiLocales: string | undefined
  /** The id of the form: if the form is sent again, it is the same request. `undefined`: the form is not from our pages. */
  formId: string | undefined
  requester: Requester
}

const MAX_UI_LOCALES = 100

export function uiLocalesIn(fields: Fields | undefined): string | undefined {
  return fields?.get('ui_locales')?.slice(0, MAX_UI_LOCALES)
}

/** The same of an address. `undefined` also if the address repeats it. */
export function uiLocalesInUrl(url = ''): string | undefined {
  const query = url.split('?', 2)[1] ?? ''
  return uiLocalesIn(parseFields(query, (name) => name === 'ui_locales'))
}

export function idIn(fields: Fields, name: 'form_id' | 'login'): string | undefined {
  const id = fields.get(name) ?? ''
  return isId(id) ? id : undefined
}

/** Reads only `application/x-www-form-urlencoded`, with each field exactly once. */
export async function readForm(ctx: Context): Promise<Fields | BodyRefusal> {
  const body = await readBody(ctx, 'application/x-www-form-urlencoded')
  if (typeof body === 'string') return body
  const fields = 'text' in body ? parseFields(body.text) : checkFields(body.parsed)
  return fields ?? 'bad_request'
}

/**
 * Parses a form or a query. It ignores fields that are not wanted, whatever they hold.
 *
 * @returns `undefined` if a name is repeated, or if a name or value is not percent-encoded UTF-8.
 */
export function parseFields(
  text: string,
  isWanted: (name: string) => boolean = () => true,
): Fields | undefined {
  const fields = new Map<string, string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = decode(at < 0 ? pair : pair.slice(0, at))
    if (name !== undefined && !isWanted(name)) continue
    const value = decode(at < 0 ? '' : pair.slice(at + 1))
    if (name === undefined || value === undefined || fields.has(name)) return undefined
    fields.set(name, value)
  }
  return fields
}

// A host's parser turns operators and repeated fields into values that are not strings. Such forms are refused.
function checkFields(parsed: unknown): Fields | undefined {
  if (typeof parsed !== 'object' || parsed === null) return undefined
  const fields = new Map<string, string>()
  for (const [name, value] of Object.entries(parsed)) {
    if (typeof value !== 'string' || !value.isWellFormed()) return undefined
    fields.set(name, value)
  }
  return fields
}

/** The link in the address that was opened. If the address has several readings: the one that we mailed, or else the first. */
export function linkInQuery(
  query: string,
  isGenuine: (link: VerificationLink) => boolean,
): VerificationLink | undefined {
  const links = readingsOf(query).flatMap((each) => linkInForm(parseFields(each, isSigned)) ?? [])
  return links.find(isGenuine) ?? links[0]
}

/** The token of any other link, read in the same way. Other parameters are ignored. */
export function tokenInQuery(query: string): string | undefined {
  const isOurs = (name: string) => name === 'token'
  const tokens = readingsOf(query).flatMap((each) => parseFields(each, isOurs)?.get('token') ?? [])
  return tokens.find(isToken) ?? tokens[0]
}

export function linkInForm(fields: Fields | undefined): VerificationLink | undefined {
  const token = fields?.get('token')
  const authorizeSig = fields?.get('authorize_sig')
  if (!fields || token === undefined || authorizeSig === undefined) return undefined
  // The parser has refused repeated parameters, but `state[]` is another name.
  if ([...fields.keys()].some(isBracketed)) return undefined
  return { token, parameters: parametersFrom(fields), authorizeSig }
}

// Other parameters are ignored, because mail programs and campaigns add their own.
function isSigned(name: string): boolean {
  return SIGNED.includes(name) || isBracketed(name)
}

export type BodyRefusal = 'unsupported_media_type' | 'body_too_large' | 'bad_request'

/** Either the text as it was sent, or what the host's own parser made of it. */
export type Body = { text: string } | { parsed: unknown }

/** koa-body would make up a third of the time to import the package. So `flows.start()` loads it. */
export const loadBodyReader = (): Promise<unknown> => import('koa-body')

// At most 64 KiB of well-formed UTF-8. It refuses compressed bodies unread: no browser compresses a form, and no code would catch the error
// of the decompressor at a broken body.
export async function readBody(ctx: Context, mediaType: string): Promise<Body | BodyRefusal> {
  const encoding = ctx.get('Content-Encoding')
  if (!ctx.is(mediaType) || !/^(identity)?$/i.test(encoding)) return 'unsupported_media_type'
  // Imports before it looks at the request: between the look and the read, the client may break the request off.
  const { koaBody } = await import('koa-body')
  // Takes the host's object only if the body was read: some parsers set an empty object for a body that they did not read.
  if (!ctx.req.readable) return { parsed: Reflect.get(ctx.req, 'body') ?? ctx.request.body }
  try {
    // As text, because the form parser of koa-body makes objects of `token[$gt]=`. As Latin-1, because UTF-8 would replace invalid bytes.
    const read = koaBody({
      json: false,
      urlencoded: false,
      text: true,
      textTypes: [mediaType],
      textLimit: '64kb',
      encoding: 'latin1',
      patchNode: false,
    })
    await read(ctx, async () => {})
  } catch (error) {
    return refusalOf(error)
  }
  const sent: unknown = ctx.request.body
  const bytes = Buffer.from(typeof sent === 'string' ? sent : '', 'latin1')
  return isUtf8(bytes) ? { text: bytes.toString() } : 'bad_request'
}

function refusalOf(error: unknown): BodyRefusal {
  const status: unknown = error instanceof Error ? Reflect.get(error, 'status') : undefined
  if (status === 413) return 'body_too_large'
  if (typeof status === 'number' && status < 500) return 'bad_request'
  throw error
}
