import type { Context } from 'koa'

/** Adds a cookie to the request, signed as the provider expects. That saves a redirect to ourselves. */
export function injectCookie(ctx: Context, name: string, value: string): void {
  const kept = withoutCookie(ctx.req.headers.cookie, name)
  const pairs = [...kept, `${name}=${value}`]
  // The types lack `keys`.
  const { keys }: { keys?: { sign(data: string): string } } = Object(ctx.cookies)
  if (keys) pairs.push(`${name}.sig=${keys.sign(`${name}=${value}`)}`)
  ctx.req.headers.cookie = pairs.join('; ')
}

export function dropCookie(ctx: Context, name: string): void {
  ctx.req.headers.cookie = withoutCookie(ctx.req.headers.cookie, name).join('; ')
}

function withoutCookie(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  return pairs.filter(
    (pair) => pair !== '' && !pair.startsWith(`${name}=`) && !pair.startsWith(`${name}.sig=`),
  )
}
