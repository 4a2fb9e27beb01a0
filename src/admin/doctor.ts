import { ringsCheck } from '../crypto/key-rings.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { CheckedOptions } from '../check-options.ts'
import { MIN_KEY_BYTES } from '../options.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import { isSmtpConfigured } from '../settings/table.ts'
import { recordAction } from './audit.ts'
import {
  baseUrlCheck,
  clockCheck,
  codeOf,
  failed,
  indexCheck,
  ok,
  outboxCheck,
  recommendedCheck,
  secretsCheck,
  settingsCheck,
  skipped,
  rangeCheck,
  storedHashesCheck,
} from './checks.ts'
import type { Check } from './description.ts'
import { inTime } from './in-time.ts'
import { MIN_ADMIN_TOKEN_LENGTH } from './options.ts'
import { notAnAddress, reportOf } from './mails.ts'
import type { AdminEndpoints, AdminParts, AdminRequest } from './parts.ts'

export function doctorOperations(parts: AdminParts) {
  const examine = createDoctor(parts)

  // It is asked above all while something does not work.
  async function auditWherePossible(request: AdminRequest<'runDoctor'>) {
    try {
      await recordAction(parts, request, 'doctor')
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error
      parts.log('error', 'a check was not recorded', { code: 'ERR_STORE_UNAVAILABLE' })
    }
  }

  return {
    async runDoctor(request) {
      const { to } = request.body
      if (to !== undefined && !isMailAddress(to)) {
        return notAnAddress(to, 'checked')
      }
      if (to !== undefined) await auditWherePossible(request)
      return { answer: reportOf(await examine(to)) }
    },
  } satisfies Partial<AdminEndpoints>
}

/**
 * Checks, from the server itself, what keys, database, clock, base URL and mail server say of themselves. Nothing is changed; with
 * `to`, the mail server is asked whether it takes mails to that address.
 */
function createDoctor(parts: AdminParts) {
  const { store, settings, options, clock } = parts
  const now = () => clock.now().getTime()

  async function databaseChecks(): Promise<[keys: Check, ...Check[]]> {
    const askedAt = now()
    let storeTime: Date
    try {
      storeTime = await inTime(clock, store.now())
    } catch (error) {
      const message = `The database cannot be reached (${codeOf(error)}).`
      const advice = 'Check that it runs, and that this server can connect to it.'
      const unseen = ['indexes', 'clock', 'secrets', 'settings', 'recommended', 'outbox']
      return [skipped('keys'), failed('database', message, advice), ...unseen.map(skipped)]
    }
    const answeredAt = now()
    const between = (askedAt + answeredAt) / 2
    return [
      await orFailed('keys', async () => ringsCheck(await parts.keyRing.all())),
      ok('database', `The database answers in ${answeredAt - askedAt} ms.`),
      await orFailed('indexes', () => indexCheck(store)),
      clockCheck(between - storeTime.getTime()),
      await orFailed('secrets', () => secretsCheck(settings)),
      await orFailed('settings', () => settingsCheck(settings)),
      recommendedCheck(settings),
      await orFailed('outbox', () => outboxCheck(store, clock.now())),
    ]
  }

  // As they are stored: another process may have changed them just now.
  async function mailChecks(to: string | undefined): Promise<Check[]> {
    await inTime(clock, settings.refresh()).catch(() => {})
    return parts.checkMail(settings.current(), { ...(to !== undefined && { to }) })
  }

  /** The report is complete whatever happens meanwhile. */
  async function orFailed(step: string, look: () => Promise<Check>): Promise<Check> {
    try {
      return await inTime(clock, look())
    } catch (error) {
      const advice = 'Check the rights of this server in the database, and try again.'
      return failed(step, `This could not be checked (${codeOf(error)}).`, advice)
    }
  }

  return async (to: string | undefined): Promise<Check[]> => {
    const [[keys, ...database], range, baseUrl, mail] = await Promise.all([
      databaseChecks(),
      rangeCheck(settings.current(), clock),
      baseUrlCheck(parts.oauthUrl, clock),
      mailChecks(to),
    ])
    const hashes = storedHashesCheck(parts.dearestCost(), options.bcryptCost)
    const isInDevelopment = options.transport?.isStandIn && !isSmtpConfigured(settings.current())
    return [
      weakKeyCheck(options) ?? keys,
      ...database,
      ...[range, hashes].filter((check) => check !== undefined),
      baseUrl,
      ...(isInDevelopment ? mail.map(inDevelopment) : mail),
    ]
  }
}

function inDevelopment(check: Check): Check {
  if (check.step !== 'configuration' || check.status !== 'failed') return check
  const message = 'SMTP is not configured: mails go into the development mailbox.'
  return { ...check, status: 'warning', message }
}

/** `undefined`: each is long enough. */
function weakKeyCheck({ secrets, adminTokens }: CheckedOptions): Check | undefined {
  const isShort = secrets.some((key) => key.length < MIN_KEY_BYTES)
  const isGuessable = adminTokens.some(({ token }) => token.length < MIN_ADMIN_TOKEN_LENGTH)
  if (!isShort && !isGuessable) return undefined
  return failed(
    'keys',
    isShort
      ? `A key of the ring has fewer than ${MIN_KEY_BYTES} bytes.`
      : `An admin token has fewer than ${MIN_ADMIN_TOKEN_LENGTH} characters.`,
    'Make a new one from 32 random bytes. Put a new key at the end of the ring first.',
  )
}
