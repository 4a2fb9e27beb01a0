/**
 * How passwords are hashed and compared, and which new ones are refused for more than their length. The folder knows neither where a user
 * typed a password, nor what it is for.
 */
import type { CheckedOptions } from '../options.ts'
import { within, type Clock } from '../clock.ts'
import { createHashing } from '../crypto/hashing.ts'
import { refuseLength } from '../crypto/password.ts'
import { AccountFlowsError, errorName, isJsonObject } from '../errors.ts'
import type { ValidatePassword, ReasonWords, RefusedNewPassword, User } from '../contract/index.ts'
import type { Settings } from '../settings/table.ts'
import { expectCommonPasswords, isCommon, loadCommonPasswords } from './common.ts'
import { isMadeOf, namesOf } from './personal.ts'
import { createIsLeaked } from './range-service.ts'

export type PasswordRules = ReturnType<typeof createPasswords>['passwordRules']

/** Hashes and compares passwords. `passwordRules` checks new ones, beyond their length. */
export function createPasswords(options: CheckedOptions, settings: () => Settings) {
  const { hashing, bcryptCost, brand, baseUrl, validatePassword, clock, log } = options
  const service = [brand.name, baseUrl.hostname]
  const isLeaked = createIsLeaked(clock, log)
  const isOn = () => settings().passwordBlocklist !== 'off'
  let dearestCost: number | undefined

  function warnOfCost(cost: number) {
    const message =
      'the stored hash of an account costs much more than bcryptCost: its logins can be told by their time'
    if (dearestCost === undefined) log('warn', message, { cost, bcryptCost })
    dearestCost = Math.max(cost, dearestCost ?? 0)
  }

  const hashes = createHashing(hashing, bcryptCost, warnOfCost)

  /**
   * @returns `undefined`: the password is good. It answers neither `excess`, a refusal of the length, nor `password_current`.
   * @throws `ERR_VALIDATOR_FAILED` if the host's check failed.
   */
  async function validate(password: string, user: User): Promise<RefusedNewPassword | undefined> {
    const { passwordBlocklist, passwordRangeUrl } = settings()
    if (isOn()) {
      if (isMadeOf(password, namesOf(user, service))) return { refusal: 'password_personal' }
      if (await isCommon(password)) return { refusal: 'password_common' }
      if (passwordBlocklist === 'pwned' && (await isLeaked(password, passwordRangeUrl)))
        return { refusal: 'password_common' }
    }
    return validatePassword && askHost(validatePassword, password, user, clock)
  }

  const passwordRules = {
    /** Whether the current settings check anything. */
    isAsked: () => isOn() || validatePassword !== undefined,
    validate,

    /** Checks the length, then `validate`, then the current password. The last costs a hash, and may throw `ERR_OVERLOADED`. */
    async validateAll(password: string, user: User): Promise<RefusedNewPassword | undefined> {
      const refused = refuseLength(password, settings())
      if (refused) return refused
      const validated = await validate(password, user)
      if (validated || !isOn() || user.passwordHash === undefined) return validated
      const isCurrent = await hashes.verifyPassword(user, password)
      return isCurrent ? { refusal: 'password_current' } : undefined
    },

    /** Loads the list, or checks that it is there while no setting uses it. So the first user neither waits for it nor misses it. */
    async load() {
      await (isOn() ? loadCommonPasswords() : expectCommonPasswords())
    },
  }
  return { ...hashes, passwordRules, dearestCost: () => dearestCost }
}

const HOST_MS = 2_000
const MAX_REASON = 300

/** Fails closed. It keeps only the name of a host's error, because the message may quote the password. */
async function askHost(
  validate: ValidatePassword,
  password: string,
  user: User,
  clock: Clock,
): Promise<RefusedNewPassword | undefined> {
  let why = 'its answer has no reason'
  try {
    const answer: unknown = await within(clock, HOST_MS, validate(password, { ...user }))
    if (answer === undefined) return undefined
    const reason = answer === 'late' ? undefined : wordsOf(Reflect.get(Object(answer), 'reason'))
    if (reason !== undefined) return { refusal: 'password_host', reason }
    if (answer === 'late') why = 'no answer in 2 seconds'
  } catch (error) {
    why = `it threw ${errorName(error)}`
  }
  throw new AccountFlowsError('ERR_VALIDATOR_FAILED', `validatePassword failed: ${why}`)
}

function wordsOf(reason: unknown): ReasonWords | undefined {
  if (typeof reason === 'string') return shortened(reason)
  if (!isJsonObject(reason)) return undefined
  const words = Object.entries(reason).flatMap(([tag, text]) =>
    typeof text === 'string' ? [[tag, shortened(text)] as const] : [],
  )
  return words.length > 0 ? Object.fromEntries(words) : undefined
}

function shortened(text: string): string {
  return Array.from(text).slice(0, MAX_REASON).join('')
}
