/** Values for every page in every mode and for every mail. The start tries a host's templates with them. */
import type { LinkReason } from '../contract/requests.ts'
import { MAIL_KINDS, mailKinds, type MailKind } from '../contract/mail-kinds.ts'
import type { Catalog } from './locales.ts'
import { renderMail, type MailLocals, type MailName } from './mails.ts'
import {
  ERROR_STATUS,
  type CodeFault,
  type PageLocals,
  type PageName,
  type ResetFormMode,
} from './page-locals.ts'
import { renderPage, type PageFrame } from './pages.ts'
import { failureOf, type Templates } from './templates.ts'

/** Renders every page and mail once, so that mistakes are found at the start. `templates` are strict. */
export function tryAll(templates: Templates, catalog: Catalog, frame: PageFrame): string[] {
  const problems = new Set<string>()

  function attempt(name: string, work: () => unknown) {
    try {
      work()
    } catch (error) {
      const { where, message } = failureOf(error)
      problems.add(`${where ?? name}: ${message}`)
    }
  }

  for (const { name, locals } of samplePages) {
    const render = () => renderPage(templates, catalog, frame, name, locals, 'en', 'form')
    attempt(`pages/${name}`, render)
  }
  for (const [name, locals] of SAMPLE_MAILS) {
    attempt(`mails/${name}`, () => renderMail(templates, catalog, name, locals, frame.brand))
  }
  return [...problems]
}

const HOUR_MS = 3_600_000
const code = { code: '042917', at: new Date(0) }
const apps = {
  notified: { names: ['Shop'], more: 0 },
  notNotified: { names: ['Mail', 'Wiki'], more: 3 },
}

const little = { username: '', link: 'https://id.example/', at: new Date(0) }
const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const much = { ...little, username: 'ann', clientName: 'The App', apps, userAgent }

/** Each mail, with little and with much to say. */
export const SAMPLE_MAILS: [MailName, MailLocals][] = [
  ...mailKinds.flatMap((kind) => samplesOf(MAIL_KINDS[kind])),
  ['test', little],
]

function samplesOf({ template, link, isNotice }: (typeof MAIL_KINDS)[MailKind]) {
  const wanted = [little, much, { ...little, [isNotice ? 'isByHost' : 'isByAdmin']: true }]
  return wanted.map((locals): [MailName, MailLocals] => [
    template,
    {
      ...locals,
      notMe: 'https://id.example/not-me',
      ...(link && { lifetimeMs: HOUR_MS }),
      ...(locals === much && link?.isSigned && { login: code }),
    },
  ])
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
const VERIFICATION_REASONS = ['unknown', 'expired', 'used', 'changed'] as const
const CAUSE_OF_REASON: LinkReason[] = [...VERIFICATION_REASONS, 'superseded']
const link = { token: 'token', parameters, authorizeSig: 'signature' }
const waiting = 'login'
const limits = { token: 'token', minLength: 8, maxLength: 64 }

/** Two samples: with little and with much to say. */
const both = <const Little extends object, const Much extends object>(
  little: Little,
  much: Much,
): (Little | (Little & Much))[] => [little, { ...little, ...much }]

const resetForm = (mode: Exclude<ResetFormMode, 'password_mismatch'>) =>
  both({ ...limits, mode }, { client, excess: 3, hostReason: { en: 'No names of pets.' } })

const PASSWORD_PAGES: PageSamples['reset-password'] = {
  form: resetForm('form'),
  password_mismatch: [{ ...limits, mode: 'password_mismatch', also: 'password_too_short' }],
  password_too_short: resetForm('password_too_short'),
  password_too_long: resetForm('password_too_long'),
  password_invalid: resetForm('password_invalid'),
  password_common: resetForm('password_common'),
  password_personal: resetForm('password_personal'),
  password_current: resetForm('password_current'),
  password_host: resetForm('password_host'),
  invalid: CAUSE_OF_REASON.flatMap((reason) =>
    both({ mode: 'invalid', reason, parameters: {} }, { parameters, client, renew: 'token' }),
  ),
  done: both({ mode: 'done' }, { client, apps }),
}

const blocked = {
  mode: 'blocked',
  username: 'ann',
  lifetimeMs: 24 * HOUR_MS,
  parameters: {},
} as const
const waits = { sentTo: 'ann@example.com', parameters, client, waiting, waitMs: 30_000 }
const blockedBy = (fault?: CodeFault) => ({ ...blocked, ...waits, fault })
const FAULTS: (CodeFault | undefined)[] = [
  undefined,
  { reason: 'not_yet' },
  { reason: 'unread' },
  { reason: 'wrong' },
  { reason: 'too_many', waitMs: HOUR_MS },
]

/** Each page in each mode, with little and with much to say. */
export const SAMPLE_PAGES: PageSamples = {
  'forgot-password': {
    form: both({ mode: 'form', parameters: {} }, { parameters, client }),
    invalid: both({ mode: 'invalid', parameters: {} }, { parameters, client }),
    sent: both({ mode: 'sent', parameters: {} }, { parameters, ...sent }),
  },
  'reset-password': PASSWORD_PAGES,
  'accept-invitation': { ...PASSWORD_PAGES, sent: both({ mode: 'sent' }, { client }) },
  'verify-email': {
    blocked: [blocked, ...FAULTS.map(blockedBy)],
    expired: VERIFICATION_REASONS.flatMap((reason) =>
      both({ mode: 'expired', reason, parameters: {} }, { parameters, client, renew: link }),
    ),
    sent: both({ mode: 'sent' }, { waiting, ...sent }),
    invalid: both({ mode: 'invalid', parameters: {} }, { parameters, client, waiting }),
    verified: both({ mode: 'verified' }, { client }),
    confirm: both({ mode: 'confirm', link }, { client }),
    elsewhere: [
      ...both({ mode: 'elsewhere', username: 'ann' }, { client, ...code }),
      { mode: 'elsewhere', username: 'ann', ...code, waitMs: HOUR_MS },
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

/** Every page in every mode. */
export const samplePages: { name: PageName; locals: PageLocals[PageName] }[] = PAGE_NAMES.flatMap(
  (name) =>
    Object.values<PageLocals[PageName][]>(SAMPLE_PAGES[name])
      .flat()
      .map((locals) => ({ name, locals })),
)
