/** From what a mail says to its subject, its text and its HTML. */
import { MAIL_KINDS, type MailKind, type MailTemplate } from '../contract/mail-kinds.ts'
import type { ShownBrand } from './brand.ts'
import { deviceText } from './device.ts'
import { ofFirstPassword } from './first-password.ts'
import { fill, type Catalog, type Values } from './locales.ts'
import { SAMPLE_APPS, SAMPLE_CODE, type SignedOutApps } from './page-locals.ts'
import type { Templates } from './templates.ts'
import {
  appsText,
  factsOf,
  isolated,
  lifetimeText,
  nameText,
  timeText,
  unlinkable,
} from './formats.ts'

export type MailName = MailTemplate | 'test'

/** `undefined`: the mail has no kind of its own. */
const kindOf = (name: MailName) =>
  Object.values(MAIL_KINDS).find(({ template }) => template === name)

/** Whether the mail is about something that was done. The user or an admin asked for the other mails. */
function isNotice(name: MailName): boolean {
  const kind = kindOf(name)
  return kind !== undefined && !kind.link
}

export interface MailLocals {
  username: string
  /** An http or https address. Empty: the mail has no link. */
  link: string
  /** The address of "This wasn't me". */
  notMe?: string
  /** The code of the login that waits, and when that began. */
  login?: { code: string; at: Date } | undefined
  /** When the mail was asked for, or when the account was changed. */
  at: Date
  /** `undefined`: the link does not expire. */
  lifetimeMs?: number
  clientName?: string | undefined
  /** The user agent that asked for the mail or changed the password. The mail shows it only if it is of a well-known browser. */
  userAgent?: string | undefined
  /** The apps that the reader was signed in to. `undefined`: they are not known. */
  apps?: SignedOutApps | undefined
  /** An admin asked for the mail, not the reader. */
  isByAdmin?: boolean
  /** The host changed the password, not a mailed link. */
  isByHost?: boolean
  /** The address was entered for an account. No login waits for it. */
  isEntered?: boolean
  /** A reset link sets the first password, or any link did. Not of an invitation. */
  isFirst?: boolean
  /** Where the reader signs in, without a password. */
  signsInElsewhere?: string | undefined
}

/** The token of a `link` is once in the text, on a line of its own, and once in the HTML, behind the button. */
export function renderMail(
  { render, read }: Templates,
  given: Catalog,
  name: MailName,
  locals: MailLocals,
  brand: ShownBrand = {},
) {
  const catalog = { ...(locals.isFirst ? ofFirstPassword(given) : given), isOfMail: true }
  const { t, lang, dir } = catalog
  const kind = kindOf(name)
  // A notice to a mailbox that the account has left says only when. A username can be the new address, which the reader must not learn.
  const isPlain = kind && kind.page === undefined
  const told = isPlain ? { username: '', link: '', at: locals.at } : locals
  const values = valuesOf(catalog, name, told, brand)
  const byName = new Map(Object.entries(values))
  // Parts stand between blank lines. The HTML shows each by what the template has there.
  const parts = read(`mails/${name}.txt`)
    .split(/\n\s*\n/)
    .map((part) => part.trim())
    .map((template) => ({ template, text: fill(template, (key) => byName.get(key) ?? t(key)) }))
    .filter((part) => part.text.trim() !== '')
  const all = [...parts.map((part) => part.text), ...signature(catalog, brand)]
  const text = all.join('\n\n').replace(/\n{3,}/g, '\n\n')
  const shown = { ...values, mail: name, parts, isNotice: isNotice(name) }
  return {
    subject: values.title,
    text: `${text.split('\n').map(wrapped).join('\n')}\n`,
    html: render('mails/layout', { ...shown, t, lang, dir, brand }),
  }
}

function signature({ t }: Catalog, { name, homeUrl, supportUrl }: ShownBrand): string[] {
  const help = supportUrl && t('mail.help', { address: addressOf(supportUrl) })
  const lines = [name, homeUrl, help].filter((line) => line !== undefined)
  return lines.length > 0 ? [lines.join('\n')] : []
}

function addressOf(supportUrl: string): string {
  const { protocol, pathname } = new URL(supportUrl)
  return protocol === 'mailto:' ? pathname : supportUrl
}

function valuesOf(catalog: Catalog, name: MailName, locals: MailLocals, brand: ShownBrand) {
  const { t, lang, dir } = catalog
  const { username, link, notMe = '', lifetimeMs, apps, isByAdmin, isByHost, isEntered } = locals
  const isDone = isNotice(name)
  const word = (key: string, values?: Values) => t(`mail.${name}.${key}`, values)
  const user = nameText(catalog, username)
  const client = nameText(catalog, locals.clientName ?? '')
  const elsewhere = nameText(catalog, locals.signsInElsewhere ?? '')
  const lifetime = lifetimeMs === undefined ? '' : lifetimeText(lifetimeMs, lang)
  const host = isByHost ? '_host' : ''
  const entered = isEntered ? '_entered' : ''
  const form = isByAdmin ? '_admin' : host || entered + (client && '_client')
  const service = brand.name === undefined ? '' : isolated(brand.name, dir)
  const title = word('subject')
  return {
    title,
    // Who writes and why: many programs show the first line beside the subject.
    headline: service ? `${service} · ${title}` : title,
    preheader: word('preheader', { lifetime }),
    greeting: user ? t('mail.greeting', { user }) : t('mail.greeting_nameless'),
    lead:
      name === 'signs-in-elsewhere'
        ? word(service ? 'lead_service' : 'lead', { service, elsewhere })
        : word(`lead${form}`, { client }),
    first: locals.isFirst && !isDone ? word('first') : '',
    link,
    leads_to: URL.canParse(link)
      ? t('mail.leads_to', { host: unlinkable(new URL(link).host) })
      : '',
    lifetime: lifetime && word('lifetime', { lifetime }),
    when: whenText(catalog, name, locals),
    ...codeTexts(catalog, locals),
    not_you: isDone ? word(`not_you${host}`) : '',
    not_me: notMe,
    // No sign-in can end where none waits.
    not_me_why: notMe && (isEntered ? t('mail.password-reset.not_me') : word('not_me')),
    ...appsText(catalog, apps),
    ...(isDone && !apps && { notNotified: t('apps.unknown') }),
  }
}

function codeTexts(catalog: Catalog, { login, username, clientName }: MailLocals) {
  const facts = login ? factsOf(catalog, { username, clientName, at: login.at }) : []
  return {
    code_lead: login ? catalog.t('mail.email-verification.code') : '',
    code: login?.code ?? '',
    code_facts: facts.join('\n'),
    code_never: login ? catalog.t('login.never') : '',
  }
}

/** When, and in which browser if that is sure. The browser of an admin is left out: it means nothing to the reader. */
function whenText(catalog: Catalog, name: MailName, { at, userAgent, isByAdmin }: MailLocals) {
  const { t, lang } = catalog
  const key = isNotice(name) ? 'mail.changed' : 'mail.asked'
  const device = isByAdmin ? undefined : deviceText(catalog, userAgent)
  const values = { at: timeText(at, lang) }
  return device === undefined ? t(key, values) : t(`${key}_device`, { ...values, device })
}

const WIDE = /[\u3000-\u30FF\u3400-\u9FFF\uF900-\uFAFF\uFF00-\uFF60]/g
/** A word, or one wide character with the characters after it that must not begin a line. And the spaces that follow. */
const PIECE =
  /(?:[\u3000-\u30FF\u3400-\u9FFF\uF900-\uFAFF\uFF00-\uFF60]|[^ \u3000-\u30FF\u3400-\u9FFF\uF900-\uFAFF\uFF00-\uFF60]+)[、。」』ァィゥェォッャュョぁぃぅぇぉっゃゅょー！），：；？]* *| +/gu

/** Lines of at most 76 columns, broken at spaces, and between Chinese and Japanese characters, which are two columns wide. */
function wrapped(line: string): string {
  const lines: string[] = []
  let last = ''
  let columns = 0
  for (const [piece] of line.matchAll(PIECE)) {
    if (last && columns + columnsOf(piece.trimEnd()) > 76) {
      lines.push(last.trimEnd())
      last = ''
      columns = 0
    }
    last += piece
    columns += columnsOf(piece)
  }
  return [...lines, last.trimEnd()].join('\n')
}

function columnsOf(text: string): number {
  return Array.from(text.replace(WIDE, '  ')).length
}

const little = { username: '', link: 'https://id.example/', at: new Date(0) }
const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const much = { ...little, username: 'ann', clientName: 'The App', apps: SAMPLE_APPS, userAgent }
const firstLittle = { ...little, isFirst: true }
const firstMuch = { ...much, isFirst: true }

/** Each mail, with little and with much to say. */
export const SAMPLE_MAILS: [MailName, MailLocals][] = [
  ...Object.values(MAIL_KINDS).flatMap(samplesOf),
  ...[little, much].map((locals): [MailName, MailLocals] => [
    'signs-in-elsewhere',
    { ...locals, link: '', signsInElsewhere: 'Google' },
  ]),
  ['test', little],
]

function samplesOf({ template, flow, link, page }: (typeof MAIL_KINDS)[MailKind]) {
  const by = { ...little, [link ? 'isByAdmin' : 'isByHost']: true }
  const entered = { ...little, isEntered: true }
  const isVerification = template === 'email-verification'
  const outside = isVerification ? [entered, { ...entered, clientName: 'The App' }] : []
  const first = flow === 'password_reset' ? [firstLittle, firstMuch] : []
  const wanted = [little, much, by, ...outside, ...first]
  return wanted.map((locals): [MailName, MailLocals] => [
    template,
    {
      ...locals,
      ...(page !== undefined && { notMe: 'https://not-me.example/' }),
      ...(link && { lifetimeMs: 3_600_000 }),
      ...(locals === much && isVerification && { login: SAMPLE_CODE }),
    },
  ])
}
