import type { CarriedParameters } from '../../src/ports/index.ts'
import type { PageLocals, PageName } from '../../src/views/index.ts'

/** One page in one mode, as somebody could come to see it. */
export interface ShownPage<N extends PageName = PageName> {
  /** Names it in an address, and in a file name. */
  id: string
  name: N
  locals: PageLocals[N]
}

type InMode<L, M> = L extends { mode: infer K } ? (M extends K ? Omit<L, 'mode'> : never) : never

/** Each mode of each page, with the ways in which it can look; the compiler misses one that is left out. */
type EveryMode = {
  [N in PageName]: { [M in PageLocals[N]['mode']]: Record<string, InMode<PageLocals[N], M>> }
}

const carried: CarriedParameters = {
  clientId: 'shop',
  redirectUri: 'https://shop.example/callback',
  scope: 'openid email',
  state: 'rTq2vX0mWqDk1b3l',
}
const shown = { clientName: 'Petra’s Pottery Shop' }
const client = { ...shown, href: 'https://shop.example/sign-in' }
const withLogo = { ...shown, logo: '/oauth2/logo.svg' }
const longName = { clientName: 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbea' }

const none = { names: [], more: 0 }
const apps = { told: { names: ['Petra’s Pottery Shop', 'Webmail'], more: 0 }, untold: none }
const many = { names: [...'ABCDEFGHI'].map((one) => `Project ${one}`), more: 12 }
const manyApps = {
  told: { ...many, names: [longName.clientName, ...many.names] },
  untold: { names: ['متجر بترا', '<b>Notes</b>'], more: 0 },
}

const HOUR_MS = 3_600_000
const token = 'c2l4dHktZm91ci1yYW5kb20tYnl0ZXMtb2YtYS1saW5r'
const link = { token, carried, authorizeSig: 'X0xpbmtTaWduYXR1cmVPZkZvcnR5VGhyZWVDaGFyYWN0' }
const limits = { token, minLength: 8, maxLength: 64 }
const waiting = 'bG9naW4tdGhhdC13YWl0cy1pbi1hLXdpbmRvdy1vZi0x'
const elsewhere = { username: 'petra', code: '042917', at: new Date('2026-11-23T15:04:00Z') }
const blocked = {
  username: 'petra',
  sentTo: 'petra@example.com',
  lifetimeMs: 24 * HOUR_MS,
  carried,
}

const PASSWORD_MODES: EveryMode['reset-password'] = {
  form: { plain: limits, client: { ...limits, client: withLogo } },
  password_mismatch: { plain: limits, short: { ...limits, also: 'password_too_short' } },
  password_too_short: { plain: limits },
  password_too_long: { plain: { ...limits, excess: 4 } },
  password_invalid: { plain: limits },
  password_common: { plain: limits },
  password_personal: { plain: limits },
  password_current: { plain: limits },
  password_host: {
    plain: limits,
    reason: { ...limits, hostReason: 'Our rule: no names of pets.' },
  },
  invalid: {
    unknown: { reason: 'unknown', carried: {} },
    expired: { reason: 'expired', carried, renew: token, client: shown },
    used: { reason: 'used', carried },
    superseded: { reason: 'superseded', carried },
    changed: { reason: 'changed', carried },
  },
  done: {
    plain: {},
    client: { client, apps },
    long: { client: { ...client, ...longName }, apps: manyApps },
  },
}

const MODES: EveryMode = {
  'forgot-password': {
    form: { plain: { carried: {} }, client: { carried, client: withLogo } },
    invalid: { plain: { carried: {} }, client: { carried, client: shown } },
    sent: {
      plain: { carried: {} },
      client: { carried, client: withLogo, typed: 'petra@gmail.com' },
      cooldown: { carried, waitMs: 45_000 },
      renewed: { carried, client: shown, isRenewed: true },
    },
  },
  'reset-password': PASSWORD_MODES,
  'accept-invitation': {
    ...PASSWORD_MODES,
    sent: { plain: {}, client: { client: withLogo }, cooldown: { waitMs: 45_000 } },
  },
  'verify-email': {
    blocked: {
      plain: { ...blocked, waiting },
      client: { ...blocked, waiting, client: withLogo, sentTo: 'petra@gmail.com' },
      cooldown: { ...blocked, waiting, waitMs: 45_000 },
      'not-yet': { ...blocked, waiting, fault: { reason: 'not_yet' } },
      unread: { ...blocked, waiting, client: shown, fault: { reason: 'unread' } },
      wrong: { ...blocked, waiting, fault: { reason: 'wrong' } },
      'too-many': { ...blocked, waiting, fault: { reason: 'too_many', waitMs: HOUR_MS } },
      'no-address': { ...blocked, waiting, sentTo: undefined },
      'no-login': blocked,
    },
    expired: {
      unknown: { reason: 'unknown', carried: {} },
      expired: { reason: 'expired', carried, renew: link, client },
      used: { reason: 'used', carried, client },
      changed: { reason: 'changed', carried },
    },
    sent: {
      plain: {},
      client: { client: shown, typed: 'petra@outlook.com' },
      renewed: { isRenewed: true },
      waiting: { waiting },
      cooldown: { waiting, waitMs: 45_000 },
    },
    invalid: { plain: { carried: {} }, waiting: { carried, client: shown, waiting } },
    verified: { plain: {}, client: { client } },
    confirm: { plain: { link }, client: { link, client: withLogo } },
    elsewhere: {
      plain: elsewhere,
      client: { ...elsewhere, client: withLogo },
      'too-many': { ...elsewhere, client: longName, waitMs: HOUR_MS },
      over: { username: 'petra', client: shown },
    },
    other_account: { plain: {}, client: { client: shown } },
    signed_in: { plain: {}, client: { client } },
    ended: { plain: {}, client: { client } },
  },
  'not-me': {
    confirm: { plain: { token }, 'not-yet': { token, isNotYet: true } },
    stopped: { plain: {} },
    secured: { plain: { carried: {} }, moved: {} },
    later: { plain: { carried: {} }, moved: {} },
    unverified: { plain: {} },
    signed_out: { plain: {} },
    done: { plain: { carried: {} }, moved: {} },
    invalid: { plain: { reason: 'unknown' } },
  },
  error: {
    refused: { plain: {} },
    not_found: { plain: {} },
    method_not_allowed: { plain: {} },
    unsupported_media_type: { plain: {} },
    body_too_large: { plain: {} },
    bad_request: { plain: {} },
    request_too_long: { plain: {} },
    too_many_requests: { plain: {} },
    unavailable: { plain: {} },
    error: { plain: {} },
  },
}

/** Every page in every mode, in all the ways in which it can look. */
export const everyPage: ShownPage[] = Object.entries(MODES).flatMap(([name, modes]) =>
  Object.entries(modes).flatMap(([mode, ways]) =>
    Object.entries(ways).map(
      ([way, locals]) =>
        ({
          id: [name, mode, ...(way === 'plain' ? [] : [way])].join('.'),
          name,
          locals: { mode, ...(locals as object) },
        }) as ShownPage,
    ),
  ),
)
