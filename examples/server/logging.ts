/**
 * Everything on standard error is a JSON line, whoever says it: the flows, the provider, Koa, Node itself. The exception is the
 * sentence of a refused start, for the operator.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import { format } from 'node:util'
import { framesOf, logJsonLines } from '../../src/log.ts'

/** Where it happened and in which code; nothing of the request but method and path, as a query may hold a token. */
export function logFailure(message: string, error: unknown, ctx?: { req: IncomingMessage }): void {
  const { method = '', url = '' } = ctx?.req ?? {}
  const request: Record<string, string> = ctx ? { method, path: url.replace(/[?#].*/s, '') } : {}
  logJsonLines('error', message, { ...request, error: String(error), at: framesOf(error) })
}

console.error = (...said: unknown[]) => logJsonLines('error', format(...said))
console.warn = (...said: unknown[]) => {
  const words = format(...said)
  // The provider says it of Node 20, with which the tests pass.
  if (!words.includes('oidc-provider WARNING: Unsupported runtime')) logJsonLines('warn', words)
}
console.info = (...said: unknown[]) => logJsonLines('info', format(...said))

process.removeAllListeners('warning')
process.on('warning', (warning) => logJsonLines('warn', String(warning)))
process.on('uncaughtException', (error) => {
  logFailure('the process ends: nobody caught an error', error)
  process.exit(1)
})

// Whoever read the lines is gone; that is no reason to answer nobody any more.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
