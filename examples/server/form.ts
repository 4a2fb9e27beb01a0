import type { Context } from 'koa'
import { koaBody } from 'koa-body'

const parse = koaBody({
  json: false,
  text: false,
  urlencoded: true,
  formLimit: '64kb',
  patchNode: false,
})

/**
 * Whether a page of another site posted a form: somebody would sign the victim in to an account of theirs. Our own pages send
 * `Origin: null`, because they send no referrer; a client that sends neither header is no browser.
 */
export function isCrossSite(ctx: Context, baseUrl: string): boolean {
  const site = ctx.get('Sec-Fetch-Site')
  if (!['', 'same-origin', 'none'].includes(site)) return true
  const origin = ctx.get('Origin')
  if (origin === '' || origin === new URL(baseUrl).origin) return false
  return !(origin === 'null' && site === 'same-origin')
}

/** The fields of a posted form; what is repeated or nested counts as absent. */
export async function readForm(ctx: Context): Promise<(name: string) => string | undefined> {
  await parse(ctx, async () => {})
  const body: unknown = ctx.request.body
  const fields = new Map<string, unknown>(Object.entries(body ?? {}))
  return (name) => {
    const value = fields.get(name)
    return typeof value === 'string' ? value : undefined
  }
}
