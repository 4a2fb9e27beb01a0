import { EventEmitter } from 'node:events'
import type { Clock } from '../clock.ts'
import { framesOf } from '../log.ts'
import type { AuditEvent, AuditEventOf, AuditEventType, Log, Requester } from '../ports/index.ts'
import type { AuditLog } from '../records/index.ts'

/** `audit` hears all events; the name of a type hears those of that type. */
export type AuditEvents = EventEmitter<
  { audit: [AuditEvent] } & { [Type in AuditEventType]: [AuditEventOf<Type>] }
>

/** @param keepMs - how long an event is kept that is recorded now. */
export function createAudit(store: AuditLog, keepMs: () => number, clock: Clock, log: Log) {
  const events: AuditEvents = new EventEmitter()
  const failed = failureLog(log, clock)

  // Not by `emit`: there, a listener that throws keeps the others from hearing.
  async function tell(listener: Listener, event: AuditEvent) {
    try {
      // A copy, as a listener may change it.
      await Reflect.apply(listener, events, [structuredClone(event)])
    } catch (error) {
      failed(listener, event, error)
    }
  }

  return {
    events,

    /** Records an event once, and then tells the host's listeners. Nothing waits for them, and what they do cannot break what is audited. */
    async record(given: AuditEvent) {
      const event = withoutLanguages(given)
      if (!(await store.record(event, keepMs()))) return
      for (const name of ['audit', event.type] as const)
        for (const listener of events.rawListeners(name)) void tell(listener, event)
    },
  }
}

type Listener = ReturnType<AuditEvents['rawListeners']>[number]

const AGAIN_MS = 60_000

/** Once a minute for each listener: one that is broken may fail at every event. */
function failureLog(log: Log, { now }: Clock) {
  const known = new WeakMap<Listener, { failures: number; saidAt: number }>()
  return (listener: Listener, { type }: AuditEvent, error: unknown) => {
    const at = now().getTime()
    const { failures: before = 0, saidAt = -Infinity } = known.get(listener) ?? {}
    const failures = before + 1
    const isSaid = Math.abs(at - saidAt) < AGAIN_MS
    known.set(listener, { failures, saidAt: isSaid ? saidAt : at })
    if (isSaid) return
    log('error', 'a listener of the audit events failed', { type, failures, ...told(error) })
  }
}

function told(error: unknown) {
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

/** Many events hold the requester as a whole; its languages are for its mail alone. */
function withoutLanguages({
  uiLocales: _uiLocales,
  acceptLanguage: _acceptLanguage,
  isAdmin: _isAdmin,
  ...event
}: AuditEvent & Partial<Requester>): AuditEvent {
  return event
}
