import { metrics } from '@opentelemetry/api'
import type { AccountFlows } from '../../src/index.ts'

/** Counts events by type and reason. Both come from closed lists, so the number of series is bounded. */
export function countEvents(
  flows: Pick<AccountFlows, 'events'>,
  meter = metrics.getMeter('oidc-account-flows'),
): void {
  const counter = meter.createCounter('account_flows.events', {
    description: 'Audit events of password reset and e-mail verification',
  })
  flows.events.on('audit', ({ type, reason }) =>
    counter.add(1, { type, ...(reason !== undefined && { reason }) }),
  )
}
