import type { PageLocals } from './page-locals.ts'

type VerifyEmail = PageLocals['verify-email']

export const carried = {
  clientId: 'app',
  redirectUri: 'https://app.example/cb',
  scope: 'openid',
  state: '',
}
export const client = { clientName: 'The App', logo: '/logo.svg', href: 'https://app.example/' }
export const sent = { client, typed: 'ann@gmail.com', isRenewed: true, waitMs: 30_000 }
export const VERIFICATION_REASONS = ['unknown', 'expired', 'used', 'changed'] as const
const link = { token: 'token', carried, authorizeSig: 'signature' }
const waiting = 'login'
const lifetimeMs = 86_400_000
export const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** The page about a verification, in each mode. */
export const VERIFY_EMAIL_PAGES: Record<VerifyEmail['mode'], VerifyEmail[]> = {
  blocked: [
    { mode: 'blocked', username: 'ann', lifetimeMs, carried: {} },
    ...[
      undefined,
      ...(['not_yet', 'unread', 'wrong'] as const).map((reason) => ({ reason })),
      { reason: 'too_many', waitMs: 3_600_000 } as const,
    ].map((fault) => ({
      mode: 'blocked' as const,
      username: 'ann',
      sentTo: 'ann@example.com',
      lifetimeMs,
      carried,
      client,
      waiting,
      waitMs: 30_000,
      fault,
    })),
  ],
  expired: VERIFICATION_REASONS.flatMap((reason) => [
    { mode: 'expired', reason, carried: {} },
    { mode: 'expired', reason, carried, client, renew: link },
  ]),
  sent: [{ mode: 'sent' }, { mode: 'sent', waiting, ...sent }],
  invalid: [
    { mode: 'invalid', carried: {} },
    { mode: 'invalid', carried, client, waiting },
  ],
  verified: [{ mode: 'verified' }, { mode: 'verified', client }],
  confirm: [
    { mode: 'confirm', link },
    { mode: 'confirm', link, client },
  ],
  elsewhere: [
    { mode: 'elsewhere', username: 'ann' },
    { mode: 'elsewhere', username: 'ann', client, code: '042917', at: new Date(0) },
    { mode: 'elsewhere', username: 'ann', code: '042917', at: new Date(0), waitMs: 3_600_000 },
  ],
  other_account: [{ mode: 'other_account' }, { mode: 'other_account', client }],
  signed_in: [{ mode: 'signed_in' }, { mode: 'signed_in', client }],
  continued: [{ mode: 'continued' }, { mode: 'continued', client }],
  ended: [{ mode: 'ended' }, { mode: 'ended', client }],
}
