import type { AuditEvent } from '../src/admin/client.ts'

/** One event in one line. */
export function eventText({ at, type, ...event }: AuditEvent): string {
  const { account_id, username, client_id, address, reason, user_agent, details = {} } = event
  // No detail can pass for what the event is about.
  const prefixed = Object.entries(details).map(([name, value]) => [`details.${name}`, value])
  const known = {
    account: account_id,
    username,
    client: client_id,
    address,
    reason,
    ...Object.fromEntries(prefixed),
    user_agent,
  }
  const told = Object.entries(known).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${valueText(value)}`],
  )
  return [at, type, ...told].join('  ')
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
}
