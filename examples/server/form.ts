import type { Context } from 'koa'
import { koaBody } from 'koa-body'

const parse = koaBody({
  json: false,
  text: false,
  urlencoded: true,
  formLimit: '64kb',
  patchNode: false,
})

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
