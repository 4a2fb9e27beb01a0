/** Which new passwords are refused: for their length, or because they are easy to guess. Hashing is in `crypto/hashing.ts`. */
import { within, type Clock } from '../clock.ts'
import { createHashing, type Hashing } from '../crypto/hashing.ts'
import { isPlain, isShortEnough } from '../crypto/password.ts'
import { AccountFlowsError, errorName, isJsonObject } from '../errors.ts'
import type {
  Log,
  PasswordRefusal,
  ReasonWords,
  RefusedNewPassword,
  User,
  ValidatePassword,
} from '../contract/index.ts'
import { hashOf } from '../contract/users.ts'
import type { Settings } from '../settings/table.ts'
import { expectCommonPasswords, isCommon, loadCommonPasswords } from './common.ts'
import { isMadeOf, namesOf } from './personal.ts'
import { createIsLeaked } from './range-service.ts'

export type PasswordRules = ReturnType<typeof createPasswords>['passwordRules']

interface PasswordOptions {
  hashing?: Hashing | undefined
  bcryptCost: number
  brand: { name?: string | undefined }
  baseUrl: URL
  validatePassword?: ValidatePassword | undefined
  clock: Clock
  log: Log
}

export function createPasswords(options: PasswordOptions, settings: () => Settings) {
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
    isAsked: () => isOn() || validatePassword !== undefined,
    validate,

    /** Checks the length, then `validate`, then the current password. The last costs a hash, and may throw `ERR_OVERLOADED`. */
    async validateAll(password: string, user: User): Promise<RefusedNewPassword | undefined> {
      const refused = refuseLength(password, settings())
      if (refused) return refused
      const validated = await validate(password, user)
      if (validated || !isOn() || hashOf(user) === undefined) return validated
      const isCurrent = await hashes.verifyPassword(user, password)
      return isCurrent ? { refusal: 'password_current' } : undefined
    },

    /** Loads the list, or checks that it is there, so that the first user neither waits for it nor misses it. */
    async load() {
      await (isOn() ? loadCommonPasswords() : expectCommonPasswords())
    },
  }
  return { ...hashes, passwordRules, dearestCost: () => dearestCost }
}

interface RefusedPassword extends Omit<RefusedNewPassword, 'refusal'> {
  refusal: PasswordRefusal
  /** What is also wrong, in the other field. */
  also?: RefusedNewPassword['refusal'] | undefined
}

type Limits = Pick<Settings, 'minPasswordLength' | 'maxPasswordLength'>

/** What is wrong with the two fields of a form. `undefined`: the password is good. */
export function refusePassword(
  password: string,
  confirmation: string,
  limits: Limits,
): RefusedPassword | undefined {
  const fault = refuseLength(password, limits)
  if (password === confirmation) return fault
  return { refusal: 'password_mismatch', also: fault?.refusal, excess: fault?.excess ?? 0 }
}

/** What is wrong with a new password by itself (8). Lengths count code points; nothing is trimmed or folded. */
function refuseLength(password: string, limits: Limits): RefusedNewPassword | undefined {
  const characters = Array.from(password)
  let fitting = Math.min(characters.length, limits.maxPasswordLength)
  while (!isShortEnough(characters.slice(0, fitting).join(''))) fitting--
  const excess = characters.length - fitting
  if (!isPlain(password)) return { refusal: 'password_invalid', ...(excess > 0 && { excess }) }
  if (excess > 0) return { refusal: 'password_too_long', excess }
  const isTooShort = characters.length < limits.minPasswordLength
  return isTooShort ? { refusal: 'password_too_short' } : undefined
}

const HOST_MS = 2_000
const MAX_REASON = 300

/** Fails closed. It keeps only the name of a host's error, because the message may quote the password. */
async function askHost(validate: ValidatePassword, password: string, user: User, clock: Clock) {
  let why = 'its answer has no reason'
  try {
    const answer: unknown = await within(clock, HOST_MS, validate(password, { ...user }))
    if (answer === undefined) return undefined
    const reason = answer === 'late' ? undefined : wordsOf(Reflect.get(Object(answer), 'reason'))
    if (reason !== undefined) return { refusal: 'password_host', reason } as const
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
