import type { IncomingMessage, ServerResponse } from 'node:http'
import { Counter, Registry } from 'prom-client'
import type { AccountFlows } from '../../src/index.ts'

/**
 * Counts events by type and reason. Both come from closed lists, so the number of series is bounded.
 *
 * @returns what answers `/metrics`. Mount it where only your own network can reach it.
 */
export function metricsOf(flows: Pick<AccountFlows, 'events'>, register = new Registry()) {
  const counter = new Counter({
    name: 'account_flows_events_total',
    help: 'Audit events of password reset and e-mail verification',
    labelNames: ['type', 'reason'],
    registers: [register],
  })
  flows.events.on('audit', ({ type, reason = '' }) => counter.inc({ type, reason }))

  return async (_req: IncomingMessage, res: ServerResponse): Promise<void> => {
    res.setHeader('content-type', register.contentType)
    res.end(await register.metrics())
  }
}
