import type { Context } from 'koa'

/** Answers a program: RFC 9457. `code` is stable; the title is a sentence. */
export function showProblem(
  ctx: Context,
  status: number,
  code: string,
  title: string,
  more: object = {},
): void {
  ctx.status = status
  ctx.set('Cache-Control', 'no-store')
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.body = JSON.stringify({ title, status, code, ...more })
  ctx.type = 'application/problem+json'
}
