import type { Catalog } from './catalog.ts'
import { MAIL_KINDS, mailKinds, type MailKind } from '../ports/mail-kinds.ts'
import { renderMail, type MailLocals, type MailName } from './mails.ts'
import type { LinkReason, PageLocals, PageName } from './page-locals.ts'
import { renderPage, type PageFrame } from './pages.ts'
import { failureOf, type Templates } from './templates.ts'

/** What goes wrong where every page and mail is rendered once, so that it is told at the start. `templates` are strict. */
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

  for (const name of PAGE_NAMES) {
    for (const locals of Object.values<PageLocals[PageName][]>(SAMPLE_PAGES[name]).flat()) {
      attempt(`pages/${name}`, () => renderPage(templates, catalog, frame, name, locals, REQUEST))
    }
  }
  for (const [name, locals] of SAMPLE_MAILS) {
    attempt(`mails/${name}`, () => renderMail(templates, catalog, name, locals, frame.brand))
  }
  return [...problems]
}

const REQUEST = { uiLocales: 'en', formId: 'form' }

type PageSamples = { [N in PageName]: Record<PageLocals[N]['mode'], PageLocals[N][]> }

const carried = {
  clientId: 'app',
  redirectUri: 'https://app.example/cb',
  scope: 'openid',
  state: '',
}
const client = { clientName: 'The App', logo: '/logo.svg', href: 'https://app.example/' }
const link = { token: 'token', carried, authorizeSig: 'signature' }
const waiting = { pendingLoginId: 'login', forMs: 86_400_000 }
const apps = { told: { names: ['Shop'], more: 0 }, untold: { names: ['Mail', 'Wiki'], more: 3 } }
const VERIFICATION_REASONS = ['unknown', 'expired', 'used', 'changed'] as const
const REASONS: LinkReason[] = [...VERIFICATION_REASONS, 'superseded']

const limits = { token: 'token', minLength: 8, maxLength: 64 }
const sent = { client, typed: 'ann@gmail.com', isRenewed: true, waitMs: 30_000 }

const resetForm = (mode: 'form' | `password_${'too_short' | 'too_long' | 'invalid'}`) => [
  { ...limits, mode },
  { ...limits, mode, client, excess: 3 },
]

const PASSWORD_PAGES: PageSamples['reset-password'] = {
  form: resetForm('form'),
  password_mismatch: [{ ...limits, mode: 'password_mismatch', also: 'password_too_short' }],
  password_too_short: resetForm('password_too_short'),
  password_too_long: resetForm('password_too_long'),
  password_invalid: resetForm('password_invalid'),
  invalid: REASONS.flatMap((reason) => [
    { mode: 'invalid', reason, carried: {} },
    { mode: 'invalid', reason, carried, client, renew: 'token' },
  ]),
  done: [{ mode: 'done' }, { mode: 'done', client, apps }],
}

/** Each page in each mode, with little and with much to say. */
export const SAMPLE_PAGES: PageSamples = {
  'forgot-password': {
    form: [
      { mode: 'form', carried: {} },
      { mode: 'form', carried, client },
    ],
    invalid: [
      { mode: 'invalid', carried: {} },
      { mode: 'invalid', carried, client },
    ],
    sent: [
      { mode: 'sent', carried: {} },
      { mode: 'sent', carried, ...sent },
    ],
  },
  'reset-password': PASSWORD_PAGES,
  'accept-invitation': { ...PASSWORD_PAGES, sent: [{ mode: 'sent' }, { mode: 'sent', client }] },
  'verify-email': {
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
    ],
    other_account: [
      { mode: 'other_account', link, session: 'session', client },
      { mode: 'other_account', pendingLoginId: 'login', session: 'session' },
    ],
    signed_in: [{ mode: 'signed_in' }, { mode: 'signed_in', client }],
    continued: [{ mode: 'continued' }, { mode: 'continued', client }],
    ended: [{ mode: 'ended' }, { mode: 'ended', client }],
  },
  error: {
    refused: [{ mode: 'refused' }],
    not_found: [{ mode: 'not_found' }],
    method_not_allowed: [{ mode: 'method_not_allowed' }],
    unsupported_media_type: [{ mode: 'unsupported_media_type' }],
    body_too_large: [{ mode: 'body_too_large' }],
    bad_request: [{ mode: 'bad_request' }],
    request_too_long: [{ mode: 'request_too_long' }],
    too_many_requests: [{ mode: 'too_many_requests' }],
    unavailable: [{ mode: 'unavailable' }],
    error: [{ mode: 'error' }],
  },
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type is made of it
export const PAGE_NAMES = Object.keys(SAMPLE_PAGES) as PageName[]

const little = { username: '', link: 'https://id.example/', at: new Date(0) }
const much = {
  ...little,
  username: 'ann',
  clientName: 'The App',
  apps,
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
}
const lifetimeMs = 3_600_000

const SAMPLE_MAILS: [MailName, MailLocals][] = [
  ...mailKinds.flatMap((kind) => samplesOf(MAIL_KINDS[kind])),
  ['test', little],
]

function samplesOf({ template, link, isNotice }: (typeof MAIL_KINDS)[MailKind]) {
  const wanted = [little, much, ...(isNotice ? [] : [{ ...little, isByAdmin: true }])]
  return wanted.map((locals): [MailName, MailLocals] => [
    template,
    { ...locals, ...(link && { lifetimeMs }) },
  ])
}
