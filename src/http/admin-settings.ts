import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { AuditEvent, Requester } from '../ports.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import { readBody, type BodyRefusal } from './body.ts'
import { showProblem } from './problem.ts'

export interface AdminSettingsParts {
  settings: SettingsKeeper
  isAdmin(token: string): boolean
  audit(event: AuditEvent): Promise<void>
  requesterOf(ctx: Context): Requester
}

const BODY_PROBLEMS: Record<BodyRefusal, [status: number, title: string]> = {
  unsupported_media_type: [415, 'Send the settings as application/json.'],
  body_too_large: [413, 'Send at most 64 KiB.'],
  bad_request: [400, 'The body could not be read. Send one JSON object.'],
}

/** 4.5. */
export function adminSettings({ settings, isAdmin, audit, requesterOf }: AdminSettingsParts) {
  async function isAllowed(ctx: Context): Promise<boolean> {
    const [, token] = /^Bearer +([\x21-\x7e]+)$/i.exec(ctx.get('Authorization')) ?? []
    if (token !== undefined && isAdmin(token)) return true
    const requester = requesterOf(ctx)
    const reason = token === undefined ? 'no_token' : 'wrong_token'
    await audit({ id: newId(), type: 'admin_auth_failed', at: new Date(), reason, ...requester })
    ctx.set('WWW-Authenticate', 'Bearer realm="account-flows"')
    showProblem(ctx, 401, 'Send the admin token: Authorization: Bearer <ADMIN_TOKEN>.')
    return false
  }

  function showSettings(ctx: Context, warnings: string[]) {
    ctx.status = 200
    ctx.set('Cache-Control', 'no-store')
    ctx.set('X-Content-Type-Options', 'nosniff')
    ctx.body = { ...settings.shown(), ...(warnings.length > 0 && { warnings }) }
  }

  async function put(ctx: Context) {
    const body = await readBody(ctx, 'application/json')
    if (typeof body === 'string') return showProblem(ctx, ...BODY_PROBLEMS[body])
    const wanted = 'text' in body ? parseJson(body.text) : body.parsed
    if (!isObject(wanted)) return showProblem(ctx, ...BODY_PROBLEMS.bad_request)
    const outcome = await settings.change(wanted)
    if (Array.isArray(outcome)) {
      return showProblem(ctx, 400, 'Nothing was changed: some settings are not acceptable.', {
        errors: outcome,
      })
    }
    if (outcome.changed.length > 0) {
      const details = { keys: outcome.changed }
      const at = new Date()
      await audit({ id: newId(), type: 'settings_changed', at, details, ...requesterOf(ctx) })
    }
    showSettings(ctx, outcome.warnings)
  }

  return async (ctx: Context) => {
    if (!(await isAllowed(ctx))) return
    if (ctx.method === 'GET' || ctx.method === 'HEAD') return showSettings(ctx, [])
    if (ctx.method === 'PUT') return put(ctx)
    ctx.set('Allow', 'GET, HEAD, PUT')
    showProblem(ctx, 405, 'Use GET to read the settings, PUT to change them.')
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
