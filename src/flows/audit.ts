/** Events are recorded once, then handed to the listeners of the host. */
import { EventEmitter } from 'node:events'
import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import { framesOf } from '../log.ts'
import type { AuditEvent, AuditEventOf, AuditEventType, Log, Requester } from '../contract/index.ts'
import type { AuditLog, Token } from '../store/index.ts'

/** Listeners of `audit` get all events. Listeners of a type get the events of that type. */
export type AuditEvents = EventEmitter<
  { audit: [AuditEvent] } & { [Type in AuditEventType]: [AuditEventOf<Type>] }
>

type Listener = ReturnType<AuditEvents['rawListeners']>[number]

const LOG_EVERY_MS = 60_000

export function createAudit(store: AuditLog, keepMs: () => number, clock: Clock, log: Log) {
  const events: AuditEvents = new EventEmitter()
  const known = new WeakMap<Listener, { failures: number; saidAt: number }>()

  /** Logs at most once a minute for each listener, because a broken one may fail at every event. */
  function logFailure(listener: Listener, { type }: AuditEvent, error: unknown) {
    const at = clock.now().getTime()
    const { failures: before = 0, saidAt = -Infinity } = known.get(listener) ?? {}
    const failures = before + 1
    const isSaid = Math.abs(at - saidAt) < LOG_EVERY_MS
    known.set(listener, { failures, saidAt: isSaid ? saidAt : at })
    if (isSaid) return
    log('error', 'a listener of the audit events failed', { type, failures, ...detailsOf(error) })
  }

  // Not by `emit`: it stops at the first listener that throws.
  async function call(listener: Listener, event: AuditEvent) {
    try {
      // A copy, as a listener may change it.
      await Reflect.apply(listener, events, [structuredClone(event)])
    } catch (error) {
      logFailure(listener, event, error)
    }
  }

  return {
    events,

    /** Records an event once, then calls the listeners of the host. Their time and their errors do not matter to the caller. */
    async record(given: AuditEvent & Partial<Requester>) {
      // These are only for the mail of the requester.
      const { uiLocales: _locales, acceptLanguage: _accepted, isAdmin: _isAdmin, ...event } = given
      if (!(await store.record(event, keepMs()))) return
      for (const name of ['audit', event.type] as const)
        for (const listener of events.rawListeners(name)) void call(listener, event)
    },
  }
}

function detailsOf(error: unknown) {
  try {
    const { code }: { code?: unknown } = Object(error)
    return {
      error: error instanceof Error || typeof error === 'string' ? String(error) : typeof error,
      ...(typeof code === 'string' && { code }),
      at: framesOf(error),
    }
  } catch {
    // Reading what was thrown may throw too.
    return { error: typeof error }
  }
}

/** What each event of a link says. */
export const eventBy = (
  { now }: Clock,
  { userId: accountId, parameters: { clientId } }: Pick<Token, 'userId' | 'parameters'>,
  { address, userAgent }: Requester,
  id = newId(),
) => ({ id, at: now(), accountId, clientId, address, userAgent })
