import type { Context } from 'koa'
import type { CarriedParameters, Requester } from '../ports/index.ts'
import type { ShownClient } from '../views/index.ts'
import type { HttpParts } from './parts.ts'
import { PASSWORD_PAGES, showInvalidLink, type PasswordPage } from './reset-password.ts'

interface Renewed {
  carried: CarriedParameters
  client: ShownClient | undefined
  isRenewed: true
  waitMs: number | undefined
  uiLocales: string | undefined
}

/**
 * A new link in the place of one that expired. Its token says whose it is, and nothing is typed. `undefined`: the link is not good for
 * that, and the page that says so is shown.
 */
export async function renewLink(
  parts: HttpParts,
  ctx: Context,
  page: PasswordPage,
  { token, requester, form }: { token: string; requester: Requester; form: string | undefined },
  waited: () => Promise<void>,
): Promise<Renewed | undefined> {
  const { flow, kind } = PASSWORD_PAGES[page]
  const outcome = await parts[flow].renew(token, requester, form)
  const { carried, locale } = outcome
  const uiLocales = requester.uiLocales ?? locale
  if ('fault' in outcome) {
    await waited()
    await showInvalidLink(parts, ctx, page, outcome, token, uiLocales)
    return undefined
  }
  const waitMs = await parts.cooldown.count({ kind, typed: token, requester })
  await waited()
  const { client } = await parts.clients.identify(carried)
  return { carried, client, isRenewed: true, waitMs, uiLocales }
}
