import type { PageLocals, PageName } from './page-locals.ts'

/** What became of it, as a picture. `undefined`: nothing yet, there is a form to fill in. */
export function stateIcon(name: PageName, locals: PageLocals[PageName]): string | undefined {
  const what = 'reason' in locals ? locals.reason : locals.mode
  const icon = Object.entries(ICONS).find(
    ([, all]) => all.includes(`${name} ${what}`) || all.includes(what),
  )
  return icon?.[0] ?? ('reason' in locals || name === 'error' ? 'bad' : undefined)
}

/** By mode, or by the reason of a page that has one. */
const ICONS: Record<string, string[]> = {
  mail: ['sent', 'confirm', 'elsewhere', 'superseded'],
  good: [
    'done',
    'stopped',
    'secured',
    'unverified',
    'signed_out',
    'verified',
    'signed_in',
    'verify-email used',
  ],
  late: ['later', 'ended', 'expired'],
  who: ['other_account'],
}
