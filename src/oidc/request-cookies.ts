import type { Context } from 'koa'

interface Signer {
  sign(data: string): string
}

/**
 * Adds a cookie to the request that the browser did not send, signed as the provider expects. So one response does what would
 * otherwise need a redirect to ourselves.
 */
export function injectCookie(ctx: Context, name: string, value: string): void {
  const kept = withoutCookie(ctx.req.headers.cookie, name)
  const pairs = [...kept, `${name}=${value}`]
  const signature = signerOf(ctx)?.sign(`${name}=${value}`)
  if (signature !== undefined) pairs.push(`${name}.sig=${signature}`)
  ctx.req.headers.cookie = pairs.join('; ')
}

export function dropCookie(ctx: Context, name: string): void {
  ctx.req.headers.cookie = withoutCookie(ctx.req.headers.cookie, name).join('; ')
}

// The key ring of the cookies is there at run time, but not in the types.
function signerOf(ctx: Context): Signer | undefined {
  const keys: unknown = Reflect.get(ctx.cookies, 'keys')
  return isSigner(keys) ? keys : undefined
}

function isSigner(keys: unknown): keys is Signer {
  return typeof keys === 'object' && keys !== null && 'sign' in keys
}

function withoutCookie(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  return pairs.filter(
    (pair) => pair !== '' && !pair.startsWith(`${name}=`) && !pair.startsWith(`${name}.sig=`),
  )
}
