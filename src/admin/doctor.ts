import type * as z from 'zod'
import { timeout, type Clock } from '../clock.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { CheckedOptions } from '../check-options.ts'
import { MIN_KEY_BYTES } from '../options.ts'
import { isInRange, RangeServiceError } from '../passwords/range-service.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import { isSmtpConfigured, type Settings } from '../settings/table.ts'
import { recordAction } from './audit.ts'
import {
  CheckReport,
  codeOf,
  databaseChecks,
  failed,
  ok,
  reportOf,
  warning,
  type Check,
  type Finding,
} from './checks.ts'
import { inTime } from './in-time.ts'
import { notAnAddress, operation, type AdminCaller, type AdminParts } from './operation.ts'
import { MIN_ADMIN_TOKEN_LENGTH } from './options.ts'
import { given, object, optional } from './schema.ts'

const REACH_MS = 5_000

export type DoctorRequest = z.infer<typeof DoctorRequest>
export const DoctorRequest = object('What to check beyond the server itself.', {
  to: optional(given, 'Also checks that the mail server accepts this address. No mail is sent.'),
})

export const doctorOperations = {
  runDoctor: operation({
    route: 'POST /doctor',
    scope: 'account-flows:support',
    summary: 'Checks keys, database, clock, base URL and mail server, from the server itself.',
    body: DoctorRequest,
    answer: CheckReport,
    async run(request, parts) {
      const { to } = request.body
      if (to !== undefined && !isMailAddress(to)) return notAnAddress(to, 'checked')
      if (to !== undefined) await recordWherePossible(parts, request)
      return { answer: reportOf(await examine(parts, to)) }
    },
  }),
}

// It is asked above all while something does not work.
async function recordWherePossible(parts: AdminParts, caller: AdminCaller): Promise<void> {
  try {
    await recordAction(parts, caller, 'doctor')
  } catch (error) {
    if (!isStoreUnavailable(error)) throw error
    parts.log('error', 'a check was not recorded', { code: 'ERR_STORE_UNAVAILABLE' })
  }
}

/**
 * Checks, from the server itself, what keys, database, clock, base URL and mail server say of themselves. Nothing is changed; with
 * `to`, the mail server is asked whether it takes mails to that address.
 */
async function examine(parts: AdminParts, to: string | undefined): Promise<Check[]> {
  const { settings, options, clock } = parts
  const [[keys, ...database], range, baseUrl, mail] = await Promise.all([
    databaseChecks(parts),
    rangeCheck(settings.current(), clock),
    baseUrlCheck(parts.oauthUrl, clock),
    mailChecks(parts, to),
  ])
  const hashes = storedHashesCheck(parts.dearestCost(), options.bcryptCost)
  const isInDevelopment = options.transport?.isStandIn && !isSmtpConfigured(settings.current())
  return [
    { step: 'keys', ...(weakKeyCheck(options) ?? keys) },
    ...database,
    ...(range ? [{ step: 'range_service', ...range }] : []),
    ...(hashes ? [{ step: 'stored_hashes', ...hashes }] : []),
    { step: 'base_url', ...baseUrl },
    ...(isInDevelopment ? mail.map(inDevelopment) : mail),
  ]
}

// As they are stored: another process may have changed them just now.
async function mailChecks({ settings, clock, checkMail }: AdminParts, to: string | undefined) {
  await inTime(clock, settings.refresh()).catch(() => {})
  return checkMail(settings.current(), { ...(to !== undefined && { to }) })
}

/** @param cost - of the dearest stored hash that this process compared, where it can be told by time. `undefined`: none. */
function storedHashesCheck(cost: number | undefined, bcryptCost: number): Finding | undefined {
  if (cost === undefined) return undefined
  const message = `A stored hash has the cost ${cost}, and bcryptCost is ${bcryptCost}: logins of its account can be told by their time.`
  const advice = `Hash that password again when its owner signs in, or set bcryptCost to ${cost - 2} or more.`
  return warning(message, advice)
}

/** Asks the service of `password_blocklist` once, about a password that it must know. `undefined`: none is used. */
async function rangeCheck(settings: Settings, clock: Clock): Promise<Finding | undefined> {
  if (settings.passwordBlocklist !== 'pwned') return undefined
  const advice =
    'Check password_range_url, and whether this server may connect to it. Until then the list of the package judges alone.'
  try {
    const isKnown = await isInRange('password', settings.passwordRangeUrl, clock)
    if (isKnown) return ok('The range service answers, and knows a leaked password.')
    return warning('The range service does not know the most common password.', advice)
  } catch (error) {
    if (!(error instanceof RangeServiceError)) throw error
    return warning(`The range service cannot be asked (${error.message}).`, advice)
  }
}

/** Fetched from here: whether the world reaches it is another question. */
async function baseUrlCheck(oauthUrl: string, clock: Clock): Promise<Finding> {
  const url = `${oauthUrl}/.well-known/openid-configuration`
  const advice = 'Check baseUrl and oauthPath, the proxy in front, and its certificate.'
  const { signal, cancel } = timeout(clock, REACH_MS)
  try {
    const response = await fetch(url, { redirect: 'manual', signal })
    const found: unknown = await response.json().catch(unlessLate)
    const issuer: unknown = Reflect.get(Object(found), 'issuer')
    if (response.status !== 200) return failed(`${url} answers ${response.status}.`, advice)
    if (issuer === oauthUrl) return ok(`${oauthUrl} answers, and is the issuer.`)
    return failed(`Another service answers at ${url}, not this issuer.`, advice)
  } catch (error) {
    return failed(`${url} cannot be reached from this server (${codeOf(error)}).`, advice)
  } finally {
    cancel()
  }
}

function unlessLate(error: unknown): undefined {
  if (error instanceof Error && error.name === 'TimeoutError') throw error
}

function inDevelopment(check: Check): Check {
  if (check.step !== 'configuration' || check.status !== 'failed') return check
  const message = 'SMTP is not configured: mails go into the development mailbox.'
  return { ...check, status: 'warning', message }
}

/** `undefined`: each is long enough. */
function weakKeyCheck({ secrets, adminTokens }: CheckedOptions): Finding | undefined {
  const isShort = secrets.some((key) => key.length < MIN_KEY_BYTES)
  const isGuessable = adminTokens.some(({ token }) => token.length < MIN_ADMIN_TOKEN_LENGTH)
  if (!isShort && !isGuessable) return undefined
  return failed(
    isShort
      ? `A key of the ring has fewer than ${MIN_KEY_BYTES} bytes.`
      : `An admin token has fewer than ${MIN_ADMIN_TOKEN_LENGTH} characters.`,
    'Make a new one from 32 random bytes. Put a new key at the end of the ring first.',
  )
}
