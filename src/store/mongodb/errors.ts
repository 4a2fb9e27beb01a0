/** What the errors of the driver mean. */
import { z } from 'zod'
import { AccountFlowsError } from '../../errors.ts'

const DUPLICATE_KEY = 11000

/** Not `instanceof`: the host's driver may be another copy of the package. */
export function serverErrorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

export function isDuplicateKey(error: unknown): error is Error {
  return serverErrorCode(error) === DUPLICATE_KEY
}

/** The places of the writes whose key was taken, in an unordered command with many writes. The others are done. Other failures are thrown, such as the write concern: the driver then names no failed writes. */
export async function duplicatesIn(command: Promise<unknown>): Promise<Set<number>> {
  try {
    await command
    return new Set()
  } catch (error) {
    const failures = [error instanceof Error && Reflect.get(error, 'writeErrors')].flat()
    const { data: duplicates } = Duplicates.safeParse(failures)
    if (!duplicates) throw error
    return new Set(duplicates.map(({ index }) => index))
  }
}

const Duplicates = z
  .array(z.object({ code: z.literal(DUPLICATE_KEY), index: z.number() }))
  .nonempty()

const NAMES = new Set([
  'MongoClientClosedError',
  'MongoExpiredSessionError',
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoNotConnectedError',
  'MongoOperationTimeoutError',
  'MongoPoolClearedError',
  'MongoPoolClosedError',
  'MongoServerClosedError',
  'MongoServerSelectionError',
  'MongoTopologyClosedError',
  'MongoWaitQueueTimeoutError',
  'PoolClearedOnNetworkError',
])

/** The driver has tried again by then, where it may. */
const LABELS = ['RetryableWriteError', 'SystemOverloadedError']

/** The server is no primary, is shutting down, cannot reach the others, or ran out of time. */
const CODES = new Set<unknown>([
  6, 7, 50, 64, 89, 91, 133, 134, 189, 262, 9001, 10058, 10107, 11600, 11602, 13435, 13436,
])

/** Of a socket that breaks while the driver writes to it: the driver passes them on as they are. */
const SOCKET_CODES = /^(EPIPE|ECONN(RESET|ABORTED)|ETIMEDOUT|E(HOST|NET)UNREACH|ERR_STREAM_\w+)$/

/**
 * The same object, whose methods throw `ERR_STORE_UNAVAILABLE` where MongoDB cannot be reached, or does not answer in time. A write that
 * failed so may have been done all the same. All methods must answer promises.
 */
export function withUnavailable<T extends object>(port: T): T {
  const members = Object.entries(port).map(([name, member]: [string, unknown]) => {
    if (typeof member !== 'function') return [name, member]
    const translated = async (...args: unknown[]): Promise<unknown> => {
      try {
        return await Reflect.apply(member, undefined, args)
      } catch (error) {
        if (!isUnavailable(error)) throw error
        // Without the driver's message, which tells the address of the database.
        const message = `MongoDB cannot be reached, or does not answer in time (${error.name})`
        throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', message, { cause: error })
      }
    }
    return [name, translated]
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same members
  return Object.fromEntries(members) as T
}

// By name, not `instanceof`: the host's driver may be another copy of the package.
function isUnavailable(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  const code = serverErrorCode(error)
  const labels: unknown = Reflect.get(error, 'errorLabels')
  return (
    NAMES.has(error.name) ||
    CODES.has(code) ||
    (typeof code === 'string' && SOCKET_CODES.test(code)) ||
    (Array.isArray(labels) && LABELS.some((label) => labels.includes(label))) ||
    // A command with many writes wraps what the driver threw.
    isUnavailable(Reflect.get(error, 'errorResponse'))
  )
}
