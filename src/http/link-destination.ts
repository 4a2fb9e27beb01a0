import type { Context, Next } from 'koa'
import type { OpenedLink } from '../flows/email-verification.ts'
import type { HttpParts } from './parts.ts'

/** Where a confirmed link leads; decided before anything is consumed. */
interface Destination {
  /** `false`: the login was ended meanwhile, and nothing is answered. */
  go(ctx: Context, next: Next): Promise<boolean>
  /** The login that waits in a window of this browser goes on here instead. */
  takesTurn: boolean
}

/**
 * `undefined`: the link verifies, and the login is finished elsewhere or not at all.
 *
 * @param asked - `arrivedAt`: the second in which the request came.
 */
export async function destinationOf(
  { settings, clients, resume, seenByLogin }: HttpParts,
  asked: { ctx: Context; opened: OpenedLink; arrivedAt: number },
): Promise<Destination | undefined> {
  const { opened, arrivedAt } = asked
  const { accountId, captured, loginEnded, token, isFirstBrowser } = opened
  const isElsewhere = settings().emailLinkConfirmation !== 'off' && !isFirstBrowser
  if (loginEnded || isElsewhere) return undefined
  const byEmail = async () => {
    const seen = await seenByLogin(accountId, arrivedAt, token.passwordDigest)
    return { accountId, second: arrivedAt, seen }
  }
  if (captured === undefined) {
    const { carried } = await clients.identify(token.carried)
    if (carried.clientId === undefined) return undefined
    const go = async (ctx: Context, next: Next) => {
      await resume.carried(ctx, next, await byEmail(), carried)
      return true
    }
    return { go, takesTurn: false }
  }
  if (!(await clients.mayFinish(asked.ctx, captured))) return undefined
  const go = async (ctx: Context, next: Next) =>
    resume.captured(ctx, next, captured, isFirstBrowser ? undefined : await byEmail())
  return { go, takesTurn: true }
}
