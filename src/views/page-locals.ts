/** The table of pages: what each page gets in each mode, its status and its samples. */
import type { LinkReason, VerificationReason } from '../contract/parameters.ts'
import type {
  RequestParameters,
  ReportOutcome,
  PasswordRefusal,
  ReasonWords,
} from '../contract/index.ts'
import type { VerificationLink } from '../crypto/verification-link.ts'

/** A client that a page names: registered, and genuine for the request that the page is part of. */
export interface ShownClient {
  clientName: string
  /** An image that the client registered, if it is on our own origin. */
  logo?: string | undefined
  /** Where a login to it starts again. Pages show only http, https, and private-use schemes such as `com.example.app:`. */
  href?: string | undefined
}

/** Names of apps, and how many more there are. */
export type ShownApps = { names: string[]; more: number }

/** The apps that the user was signed in to. Those in `notified` are notified, and sign the user out. The others are not. */
export type SignedOutApps = Record<'notified' | 'notNotified', ShownApps>

/**
 * What is wrong with a typed code or address. `not_yet`: no code, and the address is not verified. `unread`: not six digits. `too_many`: no
 * code counts for `waitMs`. `invalid`: not one plain address. `same`: the mail went there. `too_often`: no address is taken for `waitMs`. `taken`:
 * another account has it, and the right code was typed.
 */
export interface WaitingFault {
  reason: (typeof FAULTS)[number]
  waitMs?: number
  /** The refused address, shown again. */
  typed?: string
}

const OF_CODES = ['not_yet', 'unread', 'wrong', 'too_many'] as const
export const OF_ADDRESSES = ['invalid', 'same', 'too_often', 'taken'] as const
const FAULTS = [...OF_CODES, ...OF_ADDRESSES]

/** Its forms carry the request on. */
interface Carries {
  parameters: RequestParameters
}

export interface Sent {
  mode: 'sent'
  /** What the user typed. The page does not show it. */
  typed?: string | undefined
  /** The user asked by one click, in place of an expired link. */
  isRenewed?: boolean
  /** Milliseconds until the user may ask for another mail. */
  waitMs?: number | undefined
}

type ForgotPassword = Carries & ({ mode: 'form' | 'invalid' } | Sent)

export type ResetFormMode = 'form' | PasswordRefusal

export interface ResetFaults {
  /** What else is wrong: passwords that differ can also be too short or too long. */
  also?: PasswordRefusal | undefined
  /** By how many characters the password is too long. */
  excess?: number | undefined
  /** The words of the host's own check. */
  hostReason?: ReasonWords | undefined
}

/** `isFirst`: the link sets the first password. */
type ResetPassword = { isFirst?: boolean | undefined } & (
  | (ResetFaults & { mode: ResetFormMode; token: string; minLength: number; maxLength: number })
  /** `renew`: the token, if one click sends a new link. */
  | (Carries & { mode: 'invalid'; reason: LinkReason; renew?: string | undefined })
  /** `apps`: the apps that the user was signed in to, if they are known. */
  | { mode: 'done'; apps?: SignedOutApps | undefined }
)

/** `sent`: the user asked by one click, in place of an expired invitation. */
type AcceptInvitation = ResetPassword | Sent

/** The page of a login that waits. */
export interface Blocked extends Carries {
  mode: 'blocked'
  username: string
  /** Where the mail goes; the page shows it masked. `undefined`: the account has no address. */
  sentTo?: string | undefined
  lifetimeMs: number
  /** The id of the login, which is of no use without the cookie of this browser. `undefined`: no code can be typed. */
  waiting?: string | undefined
  /** Milliseconds until the user may ask for another mail. */
  waitMs?: number | undefined
  /** Whether the user may type another address. */
  mayReplaceEmail?: boolean
  /** The user has just typed the address. */
  isReplaced?: boolean
  fault?: WaitingFault | undefined
}

/** The link was opened in a browser where no login of its account waits. Nothing is verified. */
interface Elsewhere {
  mode: 'elsewhere'
  username: string
  /** The link was mailed for no login. */
  hasNoLogin?: boolean
  /** The code for the page that waits. `undefined`: its login does not wait any more. */
  code?: string | undefined
  /** When that login began. */
  at?: Date | undefined
  /** For how many milliseconds no code is compared. */
  waitMs?: number | undefined
}

/**
 * `invalid`: the user typed no name. `confirm`: the link was fetched ahead, and the button opens it. `other_account`: another account is
 * signed in here, and nothing is verified. `signed_in`: the login went on in another window of this browser. `ended`: the login is over. Or
 * it is no login of this browser, and then there is no client.
 */
type VerifyEmail =
  | Blocked
  | Elsewhere
  /** `renew`: the link, if one click sends a new one. */
  | (Carries & {
      mode: 'expired'
      reason: VerificationReason
      renew?: VerificationLink | undefined
    })
  | (Sent & { waiting?: string | undefined })
  | (Carries & { mode: 'invalid'; waiting?: string | undefined })
  | { mode: 'confirm'; link: VerificationLink }
  | { mode: 'verified' | 'other_account' | 'signed_in' | 'ended' }

/** The same for all mails and accounts. `isNotYet`: a script sent the form, so the user has to press its button. */
type NotMe =
  | { mode: 'confirm'; token: string; isNotYet?: boolean }
  /** What was done. With `parameters`, a new password can be the next step. Without them, support has to help. */
  | { mode: ReportOutcome; parameters?: RequestParameters }
  | { mode: 'invalid'; reason: 'unknown' }

/** Pages for requests that have no other answer, and their status. */
export const ERROR_STATUS = {
  refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  unsupported_media_type: 415,
  body_too_large: 413,
  bad_request: 400,
  request_too_long: 400,
  too_many_requests: 429,
  unavailable: 503,
  error: 500,
}

export type ErrorMode = keyof typeof ERROR_STATUS

interface Needed {
  'forgot-password': ForgotPassword
  'reset-password': ResetPassword
  'accept-invitation': AcceptInvitation
  'verify-email': VerifyEmail
  'not-me': NotMe
  error: { mode: ErrorMode }
}

/** What each page needs, by its `data-page`; `mode` is its `data-mode`. It may name the client of its request. */
export type PageLocals = {
  [N in keyof Needed]: Needed[N] & { client?: ShownClient | undefined }
}

export type PageName = keyof PageLocals

type Mode = PageLocals[PageName]['mode']

/** Modes with the status 400, besides the refusals of a password. */
export const REFUSING: readonly Mode[] = ['invalid', 'expired', 'ended']

const HOUR_MS = 3_600_000
export const SAMPLE_CODE = { code: '042917', at: new Date(0) }
export const SAMPLE_APPS = {
  notified: { names: ['Shop'], more: 0 },
  notNotified: { names: ['Mail', 'Wiki'], more: 3 },
}

type PageSamples = { [N in PageName]: Record<PageLocals[N]['mode'], PageLocals[N][]> }

const parameters = {
  clientId: 'app',
  redirectUri: 'https://app.example/cb',
  scope: 'openid',
  state: '',
}
const client = { clientName: 'The App', logo: '/logo.svg', href: 'https://app.example/' }
const sent = { client, typed: 'ann@gmail.com', isRenewed: true, waitMs: 30_000 }
const REASONS = ['unknown', 'expired', 'used', 'changed'] as const
const CAUSE_OF_REASON: LinkReason[] = [...REASONS, 'superseded']
const VERIFICATION_REASONS = [...REASONS, 'taken'] as const
const link = { token: 'token', parameters, authorizeSig: 'signature' }
const waiting = 'login'
const limits = { token: 'token', minLength: 8, maxLength: 64 }
const first = { ...limits, isFirst: true }

/** Two samples: with little and with much to say. */
const both = <const Little extends object, const Much extends object>(
  little: Little,
  much: Much,
): (Little | (Little & Much))[] => [little, { ...little, ...much }]

const resetForm = (mode: Exclude<ResetFormMode, 'password_mismatch'>) =>
  both({ ...limits, mode }, { client, excess: 3, hostReason: { en: 'No names of pets.' } })

const PASSWORD_SAMPLES: PageSamples['reset-password'] = {
  form: [...resetForm('form'), { ...first, mode: 'form' }],
  password_mismatch: [{ ...limits, mode: 'password_mismatch', also: 'password_too_short' }],
  password_too_short: resetForm('password_too_short'),
  password_too_long: resetForm('password_too_long'),
  password_invalid: resetForm('password_invalid'),
  password_common: [...resetForm('password_common'), { ...first, mode: 'password_common' }],
  password_personal: resetForm('password_personal'),
  password_current: resetForm('password_current'),
  password_host: resetForm('password_host'),
  invalid: [false, true].flatMap((isFirst) =>
    CAUSE_OF_REASON.flatMap((reason) => {
      const little = { mode: 'invalid', reason, parameters: {}, isFirst } as const
      return both(little, { parameters, client, renew: 'token' })
    }),
  ),
  done: [...both({ mode: 'done' }, { client, apps: SAMPLE_APPS }), { mode: 'done', isFirst: true }],
}

const blocked: Blocked = { mode: 'blocked', username: 'ann', lifetimeMs: HOUR_MS, parameters: {} }
const waits = { sentTo: 'ann@example.com', parameters, client, waiting, waitMs: 30_000 }
const replaceable: Blocked = { ...blocked, ...waits, mayReplaceEmail: true }
const blockedBy = (fault: WaitingFault): Blocked => ({ ...replaceable, fault })
const refused = FAULTS.map((reason) => ({ reason, waitMs: HOUR_MS, typed: 'ann@exmaple.com' }))

/** Each page in each mode, with little and with much to say. */
export const SAMPLE_PAGES: PageSamples = {
  'forgot-password': {
    form: both({ mode: 'form', parameters: {} }, { parameters, client }),
    invalid: both({ mode: 'invalid', parameters: {} }, { parameters, client }),
    sent: both({ mode: 'sent', parameters: {} }, { parameters, ...sent }),
  },
  'reset-password': PASSWORD_SAMPLES,
  'accept-invitation': { ...PASSWORD_SAMPLES, sent: both({ mode: 'sent' }, { client }) },
  'verify-email': {
    blocked: [
      ...both(blocked, waits),
      replaceable,
      { ...replaceable, isReplaced: true },
      ...refused.map(blockedBy),
    ],
    expired: VERIFICATION_REASONS.flatMap((reason) =>
      both({ mode: 'expired', reason, parameters: {} }, { parameters, client, renew: link }),
    ),
    sent: both({ mode: 'sent' }, { waiting, ...sent }),
    invalid: both({ mode: 'invalid', parameters: {} }, { parameters, client, waiting }),
    verified: both({ mode: 'verified' }, { client }),
    confirm: both({ mode: 'confirm', link }, { client }),
    elsewhere: [
      ...both({ mode: 'elsewhere', username: 'ann' }, { client, ...SAMPLE_CODE }),
      { mode: 'elsewhere', username: 'ann', ...SAMPLE_CODE, waitMs: HOUR_MS },
      { mode: 'elsewhere', username: 'ann', hasNoLogin: true },
    ],
    other_account: both({ mode: 'other_account' }, { client }),
    signed_in: both({ mode: 'signed_in' }, { client }),
    ended: both({ mode: 'ended' }, { client }),
  },
  'not-me': {
    confirm: both({ mode: 'confirm', token: 'token' }, { isNotYet: true }),
    stopped: [{ mode: 'stopped' }],
    secured: both({ mode: 'secured' }, { parameters: {} }),
    later: both({ mode: 'later' }, { parameters: {} }),
    unverified: [{ mode: 'unverified' }],
    signed_out: [{ mode: 'signed_out' }],
    done: both({ mode: 'done' }, { parameters: {} }),
    invalid: [{ mode: 'invalid', reason: 'unknown' }],
  },
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made of the table that the type is made of
  error: Object.fromEntries(
    Object.keys(ERROR_STATUS).map((mode) => [mode, [{ mode }]]),
  ) as PageSamples['error'],
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type is made of it
export const PAGE_NAMES = Object.keys(SAMPLE_PAGES) as PageName[]

/** The pages that people type a new password into. */
export const PAGES_WITH_PASSWORD: readonly PageName[] = ['reset-password', 'accept-invitation']

export const samplePages: { name: PageName; locals: PageLocals[PageName] }[] = PAGE_NAMES.flatMap(
  (name) =>
    Object.values<PageLocals[PageName][]>(SAMPLE_PAGES[name])
      .flat()
      .map((locals) => ({ name, locals })),
)
