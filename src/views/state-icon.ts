import type { PageLocals, PageName } from './page-locals.ts'

/** What became of it, as a picture. `undefined`: nothing yet, there is a form to fill in. */
export function stateIcon(name: PageName, locals: PageLocals[PageName]): string | undefined {
  if ('reason' in locals) return ICONS_OF_REASONS[`${name} ${locals.reason}`] ?? 'bad'
  return name === 'error' ? 'bad' : ICONS[locals.mode]
}

const ICONS: Record<string, string> = {
  sent: 'mail',
  confirm: 'mail',
  done: 'good',
  stopped: 'good',
  secured: 'good',
  later: 'late',
  unverified: 'good',
  signed_out: 'good',
  verified: 'good',
  signed_in: 'good',
  continued: 'late',
  ended: 'late',
  elsewhere: 'mail',
  other_account: 'who',
}
const ICONS_OF_REASONS: Record<string, string> = {
  'reset-password expired': 'late',
  'reset-password superseded': 'mail',
  'accept-invitation expired': 'late',
  'accept-invitation superseded': 'mail',
  'verify-email expired': 'late',
  'verify-email used': 'good',
}
