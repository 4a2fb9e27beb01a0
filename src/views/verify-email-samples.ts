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
const waiting = { pendingLoginId: 'login', forMs: 86_400_000, number: 42 }
const elsewhere = { username: 'ann', at: new Date(0) }
export const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** The page about a verification, in each mode. */
export const VERIFY_EMAIL_PAGES: Record<VerifyEmail['mode'], VerifyEmail[]> = {
  blocked: [
    { mode: 'blocked', username: 'ann', lifetimeMs: 86_400_000, carried: {} },
    {
      mode: 'blocked',
      username: 'ann',
      sentTo: 'ann@example.com',
      lifetimeMs: 86_400_000,
      carried,
      client,
      waiting,
      waitMs: 30_000,
      isNotYet: true,
    },
    {
      mode: 'blocked',
      username: 'ann',
      sentTo: 'ann@example.com',
      lifetimeMs: 86_400_000,
      carried,
      waiting: { ...waiting, isStill: true },
    },
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
  verified: [
    { mode: 'verified' },
    { mode: 'verified', client },
    { mode: 'verified', goesOnElsewhere: true, client },
  ],
  confirm: [
    { mode: 'confirm', link },
    { mode: 'confirm', link, client, isNotYet: true },
    { mode: 'confirm', link, waiting: elsewhere },
    { mode: 'confirm', link, waiting: { ...elsewhere, userAgent, fault: 'unread' } },
    { mode: 'confirm', link, client, waiting: { ...elsewhere, fault: 'wrong' } },
    { mode: 'confirm', link, client, waiting: { ...elsewhere, isOver: true, fault: 'ended' } },
  ],
  disowned: [{ mode: 'disowned' }],
  other_account: [
    { mode: 'other_account', link, session: 'session', client },
    { mode: 'other_account', pendingLoginId: 'login', session: 'session' },
  ],
  signed_in: [{ mode: 'signed_in' }, { mode: 'signed_in', client }],
  continued: [{ mode: 'continued' }, { mode: 'continued', client }],
  ended: [{ mode: 'ended' }, { mode: 'ended', client }],
}
