import { within, type Clock } from '../clock.ts'
import type { VerifyPassword } from '../crypto/hashing.ts'
import { refusePassword } from '../crypto/password.ts'
import { AccountFlowsError } from '../errors.ts'
import type { JudgePassword, ReasonWords, RefusedNewPassword, User } from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import { isCommon, loadCommonPasswords } from './common.ts'
import { isMadeOf, namesOf } from './personal.ts'
import type { IsLeaked } from './range-service.ts'

export type PasswordJudge = ReturnType<typeof createPasswordJudge>

interface JudgeParts {
  settings(): Settings
  /** Names of the service: of the brand, and its host. */
  service: readonly (string | undefined)[]
  verifyPassword: VerifyPassword
  isLeaked: IsLeaked
  judgePassword: JudgePassword | undefined
  clock: Clock
}

/** What judges new passwords beyond their length. */
export function createPasswordJudge(parts: JudgeParts) {
  const { settings, service, verifyPassword, isLeaked, judgePassword } = parts
  const isOn = () => settings().passwordBlocklist !== 'off'

  async function isKnown(password: string): Promise<boolean> {
    const { passwordBlocklist, passwordRangeUrl } = settings()
    if (await isCommon(password)) return true
    return passwordBlocklist === 'pwned' && isLeaked(password, passwordRangeUrl)
  }

  /**
   * @returns `undefined` when the password is good. `excess`, the refusals of the length and `password_current` are never in it.
   * @throws `ERR_JUDGE_FAILED` if the host's judgement failed.
   */
  async function judge(password: string, user: User): Promise<RefusedNewPassword | undefined> {
    if (isOn()) {
      if (isMadeOf(password, namesOf(user, service))) return { refusal: 'password_personal' }
      if (await isKnown(password)) return { refusal: 'password_common' }
    }
    return judgePassword && askHost(judgePassword, password, user, parts.clock)
  }

  return {
    /** Whether anything is judged at all, by the settings as they are. */
    isAsked: () => isOn() || judgePassword !== undefined,
    judge,

    /** The same, between the limits of the length and the current password. That costs a hash: `ERR_OVERLOADED`. */
    async judgeAll(password: string, user: User): Promise<RefusedNewPassword | undefined> {
      const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
      const refused = refusePassword(password, password, { minLength, maxLength })
      if (refused && refused.refusal !== 'password_mismatch') {
        const { refusal, excess } = refused
        return { refusal, ...(excess && { excess }) }
      }
      const judged = await judge(password, user)
      if (judged || !isOn() || user.passwordHash === undefined) return judged
      return (await verifyPassword(user, password)) ? { refusal: 'password_current' } : undefined
    },

    /** Loads what the settings ask for, so that the first person need not wait for it. */
    async load() {
      if (isOn()) await loadCommonPasswords()
    },
  }
}

const HOST_MS = 2_000
const MAX_REASON = 300

/** Fails closed, and says nothing of what the host threw but its name: its message may quote the password. */
async function askHost(
  judge: JudgePassword,
  password: string,
  user: User,
  clock: Clock,
): Promise<RefusedNewPassword | undefined> {
  let why = 'its answer has no reason'
  try {
    const answer: unknown = await within(clock, HOST_MS, judge(password, { ...user }))
    if (answer === undefined) return undefined
    const reason = answer === 'late' ? undefined : wordsOf(Reflect.get(Object(answer), 'reason'))
    if (reason !== undefined) return { refusal: 'password_host', reason }
    if (answer === 'late') why = 'no answer in 2 seconds'
  } catch (error) {
    why = `it threw ${error instanceof Error ? error.name : typeof error}`
  }
  throw new AccountFlowsError('ERR_JUDGE_FAILED', `judgePassword failed: ${why}`)
}

/** `undefined`: there are none. */
function wordsOf(reason: unknown): ReasonWords | undefined {
  if (typeof reason === 'string') return shortened(reason)
  if (typeof reason !== 'object' || reason === null) return undefined
  const words = Object.entries<unknown>({ ...reason }).flatMap(([tag, text]) =>
    typeof text === 'string' ? [[tag, shortened(text)] as const] : [],
  )
  return words.length > 0 ? Object.fromEntries(words) : undefined
}

function shortened(text: string): string {
  return Array.from(text).slice(0, MAX_REASON).join('')
}
