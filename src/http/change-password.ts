import type { IncomingMessage } from 'node:http'
import type { Middleware } from 'koa'
import { fullUrl, type NodeHandler } from './admin-api.ts'

const PATH = '/.well-known/change-password'

export interface ChangePassword {
  middleware: Middleware
  handler: NodeHandler
}

/**
 * Leads password managers from the well-known address at the root of the origin to the form ("A Well-Known URL for Changing
 * Passwords", W3C).
 */
export function createChangePassword(formUrl: string): ChangePassword {
  const headers = { Location: formUrl, 'Cache-Control': 'no-store', 'Content-Length': '0' }

  function isAsked(req: IncomingMessage, url = req.url ?? '') {
    const isRead = req.method === 'GET' || req.method === 'HEAD'
    return isRead && (fullUrl(req) ?? url).replace(/[?#].*$/s, '') === PATH
  }

  return {
    middleware(ctx, next) {
      if (!isAsked(ctx.req, ctx.originalUrl)) return next()
      ctx.status = 302
      ctx.set(headers)
      ctx.body = ''
      return undefined
    },

    handler(req, res, next) {
      if (isAsked(req)) res.writeHead(302, headers).end()
      else next()
    },
  }
}
