import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Middleware } from 'koa'
import { pathOf } from './mount.ts'

const PATH = '/.well-known/change-password'

export interface WellKnown {
  /**
   * Koa middleware that redirects `/.well-known/change-password`, at the root of the origin, to the forgot-password form. It
   * passes other requests on. Password managers use this path ("A Well-Known URL for Changing Passwords", W3C).
   */
  wellKnownChangePassword(): Middleware
  /** The same for Express, Fastify and `node:http`. */
  wellKnownChangePasswordHandler(
    this: void,
    req: IncomingMessage,
    res: ServerResponse,
    next: (error?: unknown) => void,
  ): void
}

/** @param formUrl - of the form that asks for a reset link. */
export function createWellKnown(formUrl: string): WellKnown {
  const headers = { Location: formUrl, 'Cache-Control': 'no-store', 'Content-Length': '0' }

  const isAsked = (req: IncomingMessage, url?: string) =>
    (req.method === 'GET' || req.method === 'HEAD') && pathOf(req, url) === PATH

  return {
    wellKnownChangePassword: () => (ctx, next) => {
      if (!isAsked(ctx.req, ctx.originalUrl)) return next()
      ctx.status = 302
      ctx.set(headers)
      ctx.body = ''
      return undefined
    },

    wellKnownChangePasswordHandler(req, res, next) {
      if (isAsked(req)) res.writeHead(302, headers).end()
      else next()
    },
  }
}
