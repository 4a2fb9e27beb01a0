import type * as z from 'zod'
import { timeout } from '../clock.ts'
import { jsonOf } from '../errors.ts'
import { finding } from '../mail/sending.ts'
import { isInRange } from '../passwords/range-service.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { defined } from '../store/kind.ts'
import { isRecorded } from './audit.ts'
import { CheckReport, codeOf, databaseChecks, reportOf, type Check } from './checks.ts'
import { isDelivering } from './diagnosis.ts'
import { inTime, notAnAddress, operation, type AdminParts } from './operation.ts'
import { given, object, optional } from './schema.ts'

const REACH_MS = 5_000

export type DoctorRequest = z.infer<typeof DoctorRequest>
export const DoctorRequest = object('What to check beyond the server itself.', {
  to: optional(given, 'Also checks that the mail server accepts this address. No mail is sent.'),
})

export const runDoctor = operation('POST /doctor', 'account-flows:support', {
  summary: 'Checks keys, database, clock, base URL and mail server, from the server itself.',
  body: DoctorRequest,
  answer: CheckReport,
  async run({ body: { to }, record }, parts) {
    if (to !== undefined && !isMailAddress(to)) return notAnAddress(to, 'checked')
    // Admins ask above all while something does not work, so the check goes on without the record.
    if (to !== undefined) await isRecorded(parts.log, record('doctor'), 'a check')
    const checks = await Promise.all([
      databaseChecks(parts),
      rangeCheck(parts),
      storedHashesCheck(parts),
      baseUrlCheck(parts),
      mailChecks(parts, to),
    ])
    return reportOf(checks.flat())
  },
})

async function mailChecks(parts: AdminParts, to: string | undefined): Promise<Check[]> {
  const { settings, settingsKeeper, mail, clock } = parts
  // Reads the stored settings: another process may have changed them just now.
  await inTime(clock, settingsKeeper.refresh()).catch(() => {})
  const checks = await mail.check(settings(), defined({ to }))
  return isDelivering(parts) ? checks : checks.map(inDevelopment)
}

function inDevelopment(check: Check): Check {
  if (check.step !== 'configuration' || check.status !== 'failed') return check
  const message = 'SMTP is not configured: mails go into the development mailbox.'
  return { ...check, status: 'warning', message }
}

async function storedHashesCheck({ processes, options }: AdminParts): Promise<Check[]> {
  const cost = processes.dearestCost()
  if (cost === undefined) return []
  const message = `A stored hash has the cost ${cost}, and bcryptCost is ${options.bcryptCost}: logins of its account can be told by their time.`
  const advice = `Hash that password again when its owner signs in, or set bcryptCost to ${cost - 2} or more.`
  return [{ step: 'stored_hashes', ...finding('warning', message, advice) }]
}

/** If `password_blocklist` uses a service, asks it about a password that it must know. */
async function rangeCheck({ settings, clock }: AdminParts): Promise<Check[]> {
  const { passwordBlocklist, passwordRangeUrl } = settings()
  if (passwordBlocklist !== 'pwned') return []
  const step = 'range_service'
  const answer = await isInRange('password', passwordRangeUrl, clock)
  if (answer === true)
    return [{ step, ...finding('ok', 'The range service answers, and knows a leaked password.') }]
  const message = answer
    ? `The range service cannot be asked (${answer.fault}).`
    : 'The range service does not know the most common password.'
  const advice =
    'Check password_range_url, and whether this server may connect to it. Until then the list of the package decides alone.'
  return [{ step, ...finding('warning', message, advice) }]
}

/** Fetches from here. This does not show whether others can reach it. */
async function baseUrlCheck({ options, clock }: AdminParts): Promise<Check> {
  const { oauthUrl } = options
  const step = 'base_url'
  const url = `${oauthUrl}/.well-known/openid-configuration`
  const advice = 'Check baseUrl and oauthPath, the proxy in front, and its certificate.'
  const failed = (message: string) => ({ step, ...finding('failed', message, advice) })
  const { signal, cancel } = timeout(clock, REACH_MS)
  try {
    const response = await fetch(url, { redirect: 'manual', signal })
    const found = jsonOf(await response.text())
    const issuer: unknown = Reflect.get(Object(found), 'issuer')
    if (response.status !== 200) return failed(`${url} answers ${response.status}.`)
    if (issuer !== oauthUrl) return failed(`Another service answers at ${url}, not this issuer.`)
    return { step, ...finding('ok', `${oauthUrl} answers, and is the issuer.`) }
  } catch (error) {
    return failed(`${url} cannot be reached from this server (${codeOf(error)}).`)
  } finally {
    cancel()
  }
}
