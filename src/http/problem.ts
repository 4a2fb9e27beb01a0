import type { Context } from 'koa'

/** Answers a program: RFC 9457. */
export function showProblem(
  ctx: Context,
  status: number,
  title: string,
  more: Record<string, unknown> = {},
): void {
  ctx.status = status
  ctx.set('Cache-Control', 'no-store')
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.body = JSON.stringify({ title, status, ...more })
  ctx.type = 'application/problem+json'
}
