import type { Catalog } from './catalog.ts'
import { renderMail } from './mails.ts'
import type { LinkReason, PageLocals, PageName, ResetFormMode } from './page-locals.ts'
import { renderPage, type PageFrame } from './pages.ts'
import { APPS as apps, SAMPLE_MAILS } from './sample-mails.ts'
import { failureOf, type Templates } from './templates.ts'
import {
  carried,
  client,
  sent,
  VERIFICATION_REASONS,
  VERIFY_EMAIL_PAGES,
} from './verify-email-samples.ts'

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

const REASONS: LinkReason[] = [...VERIFICATION_REASONS, 'superseded']

const limits = { token: 'token', minLength: 8, maxLength: 64 }

const resetForm = (mode: Exclude<ResetFormMode, 'password_mismatch'>) => [
  { ...limits, mode },
  { ...limits, mode, client, excess: 3, hostReason: { en: 'No names of pets.' } },
]

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
  'verify-email': VERIFY_EMAIL_PAGES,
  'not-me': {
    confirm: [
      { mode: 'confirm', token: 'token' },
      { mode: 'confirm', token: 'token', isNotYet: true },
    ],
    stopped: [{ mode: 'stopped' }],
    secured: [{ mode: 'secured' }, { mode: 'secured', carried: {} }],
    later: [{ mode: 'later' }, { mode: 'later', carried: {} }],
    unverified: [{ mode: 'unverified' }],
    signed_out: [{ mode: 'signed_out' }],
    done: [{ mode: 'done' }],
    invalid: [{ mode: 'invalid', reason: 'unknown' }],
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
