import type * as z from 'zod'
import { jsonOf } from '../errors.ts'
import { timeout, type Clock } from '../clock.ts'
import { isInRange } from '../passwords/range-service.ts'
import { defined } from '../store/kind.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { isSmtpConfigured, type Settings } from '../settings/table.ts'
import { isRecorded, recordAction } from './audit.ts'
import { CheckReport, codeOf, finding, reportOf, type Check, type Finding } from './checks.ts'
import { databaseChecks } from './database-checks.ts'
import { inTime } from './in-time.ts'
import { notAnAddress, operation, type AdminParts } from './operation.ts'
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
      // It is asked above all while something does not work.
      if (to !== undefined)
        await isRecorded(parts, recordAction(parts, request, 'doctor'), 'a check')
      return reportOf(await examine(parts, to))
    },
  }),
}

/** Nothing is changed, and no mail is sent. */
async function examine(parts: AdminParts, to: string | undefined): Promise<Check[]> {
  const [database, range, baseUrl, mail] = await Promise.all([
    databaseChecks(parts),
    rangeCheck(parts.settings(), parts.clock),
    baseUrlCheck(parts.oauthUrl, parts.clock),
    mailChecks(parts, to),
  ])
  const hashes = storedHashesCheck(parts.dearestCost(), parts.options.bcryptCost)
  return [
    ...database,
    ...(range ? [{ step: 'range_service', ...range }] : []),
    ...(hashes ? [{ step: 'stored_hashes', ...hashes }] : []),
    { step: 'base_url', ...baseUrl },
    ...mail,
  ]
}

async function mailChecks(
  { settings, settingsKeeper, options, clock, checkMail }: AdminParts,
  to: string | undefined,
): Promise<Check[]> {
  // As they are stored: another process may have changed them just now.
  await inTime(clock, settingsKeeper.refresh()).catch(() => {})
  const checks = await checkMail(settings(), defined({ to }))
  const isInDevelopment = options.transport?.isStandIn && !isSmtpConfigured(settings())
  return isInDevelopment ? checks.map(inDevelopment) : checks
}

/** @param cost - of the dearest stored hash that this process compared, where it can be told by time. `undefined`: none. */
function storedHashesCheck(cost: number | undefined, bcryptCost: number): Finding | undefined {
  if (cost === undefined) return undefined
  const message = `A stored hash has the cost ${cost}, and bcryptCost is ${bcryptCost}: logins of its account can be told by their time.`
  const advice = `Hash that password again when its owner signs in, or set bcryptCost to ${cost - 2} or more.`
  return finding('warning', message, advice)
}

/** Asks the service of `password_blocklist` once, about a password that it must know. `undefined`: none is used. */
async function rangeCheck(settings: Settings, clock: Clock): Promise<Finding | undefined> {
  if (settings.passwordBlocklist !== 'pwned') return undefined
  const advice =
    'Check password_range_url, and whether this server may connect to it. Until then the list of the package judges alone.'
  const answer = await isInRange('password', settings.passwordRangeUrl, clock)
  if (typeof answer !== 'boolean')
    return finding('warning', `The range service cannot be asked (${answer.fault}).`, advice)
  if (answer) return finding('ok', 'The range service answers, and knows a leaked password.')
  return finding('warning', 'The range service does not know the most common password.', advice)
}

/** Fetched from here: whether the world reaches it is another question. */
async function baseUrlCheck(oauthUrl: string, clock: Clock): Promise<Finding> {
  const url = `${oauthUrl}/.well-known/openid-configuration`
  const advice = 'Check baseUrl and oauthPath, the proxy in front, and its certificate.'
  const failed = (message: string) => finding('failed', message, advice)
  const { signal, cancel } = timeout(clock, REACH_MS)
  try {
    const response = await fetch(url, { redirect: 'manual', signal })
    const found = jsonOf(await response.text())
    const issuer: unknown = Reflect.get(Object(found), 'issuer')
    if (response.status !== 200) return failed(`${url} answers ${response.status}.`)
    if (issuer === oauthUrl) return finding('ok', `${oauthUrl} answers, and is the issuer.`)
    return failed(`Another service answers at ${url}, not this issuer.`)
  } catch (error) {
    return failed(`${url} cannot be reached from this server (${codeOf(error)}).`)
  } finally {
    cancel()
  }
}

function inDevelopment(check: Check): Check {
  if (check.step !== 'configuration' || check.status !== 'failed') return check
  const message = 'SMTP is not configured: mails go into the development mailbox.'
  return { ...check, status: 'warning', message }
}
