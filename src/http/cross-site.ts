/** Whether another site sent a form. Such a form is refused, so that no stranger's page acts in the name of its visitor. */
import type { IncomingMessage } from 'node:http'

// Our own pages send no referrer, and so `Origin: null`, which counts only with `Sec-Fetch-Site: same-origin`. A client that sends neither
// header is no browser.
export function isCrossSite({ headers }: IncomingMessage, origin: string): boolean {
  const site = headers['sec-fetch-site'] ?? ''
  if (typeof site !== 'string' || !['', 'same-origin', 'none'].includes(site)) return true
  const from = headers.origin ?? ''
  if (from === '' || from === origin) return false
  return !(from === 'null' && site === 'same-origin')
}
