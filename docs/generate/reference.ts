import { readFileSync } from 'node:fs'
import { exportsOf } from './exports.ts'

/** docs/reference.md: what the types that hosts write against say of themselves. */
export function referencePage(): string {
  return `# Reference

<!-- Made by \`npm run docs\` out of the types; not to be edited. -->

The options, what \`createAccountFlows\` answers, the users that you may bring yourself, and the events. Types are TypeScript's; \`?\` means that it may be left out.
[Getting started](start.md) shows most of it in use.

- [Options](#options) · [Methods](#methods) · [Users of your own](#users-of-your-own) · [A transport of your own](#a-transport-of-your-own) · [Events](#events) · [Errors](#errors) · [All exports](#all-exports)

## Options

What \`createAccountFlows\` takes. A bad option throws a \`TypeError\` that names it.

${list('options.ts', 'AccountFlowsOptions')}

${optionTypes()}

## Methods

What \`createAccountFlows\` answers.

${list('account-flows.ts', 'AccountFlows')}
${list('http/login.ts', 'Login')}
${list('http/login-password.ts', 'LoginPassword')}

A login is told to these methods so:

${list('http/login.ts', 'CheckedLogin')}

## Users of your own

${list('contract/users.ts', 'UserStore')}

A user is:

${list('contract/users.ts', 'User')}

## A store of your own

Its types and helpers are in \`oidc-account-flows/store\`. \`itIsARecordStore\` of \`oidc-account-flows/contract\` says when it is done. It has:

${list('store/record-store.ts', 'RecordStore')}

A kind is a table, or a collection:

${list('store/record-store.ts', 'Kind')}

What is looked for:

${list('store/record-store.ts', 'Query')}

What is written:

${list('store/record-store.ts', 'Change')}

What is read:

${block('store/record-store.ts', 'export type Stored =')}

## A transport of your own

The option \`transport\` sends mails in the place of SMTP ([examples](mail.md#send-through-a-service)). It has:

${list('contract/transport.ts', 'MailTransport')}

It is handed:

${list('contract/transport.ts', 'TransportMail')}

It answers:

${block('contract/transport.ts', 'export type TransportAnswer =')}

## Events

Something happened, such as a reset. [Events](events.md) shows what to build on them. An event is recorded, and then your listeners hear it. It has never a token or a password.

- \`flows.events.on('audit', (event) => …)\` hears all events. A \`switch\` on \`event.type\` narrows the rest.
- \`flows.events.on('password_reset_completed', (event) => …)\` hears one type. So for each type below.

All events have, beside their \`type\`:

${list('contract/audit.ts', 'EventBase')}

\`?\` means: where it is known. What a type does not tell is \`undefined\`.

${eventSections()}

### What details have

How much was ended:

${block('contract/audit.ts', 'export type EndedSessions =')}

Of a mail that was reported:

${block('contract/audit.ts', 'export type ReportOutcome =')}

Of a mail that failed (\`MailFault\`):

${list('errors.ts', 'MailFault')}

\`mail\` is there where the mail is a notice: \`password_changed\`. \`identifier_hash\` is a keyed hash of a name that nobody has.

### What reasons mean

Why there was no mail, and what ended a link:

${block('contract/audit.ts', 'export type NoMail =')}

${block('contract/audit.ts', 'export type TokenEnd =')}

${block('contract/audit.ts', 'export type LinkEnd =')}

## Errors

What goes wrong inside is an \`AccountFlowsError\` with one of these codes. They are also the \`reason\` of a mail that failed.

${block('errors.ts', 'export type ErrorCode =')}

## All exports

### \`oidc-account-flows\`

${exportsOf('index.ts')}

### \`oidc-account-flows/store\`

What a [store of your own](stores.md#your-own) is written with.

${exportsOf('store/published.ts')}

### \`oidc-account-flows/contract\`

The suites that say when what you implement is done. They need mocha and chai. The types are in \`oidc-account-flows\`.

${exportsOf('contract/suites/index.ts')}

### \`oidc-account-flows/admin-client\`

\`createAdminClient\` and \`AdminApiError\` alone, without the rest of the package, and a type for each schema of [openapi.json](openapi.json).
`
}

/** What some options hold. */
function optionTypes(): string {
  return [
    ['brand', list('views/brand.ts', 'Brand')],
    ['captcha', list('http/captcha.ts', 'Captcha')],
    ['hashing', list('crypto/hashing.ts', 'Hashing')],
    ['adminJwt', list('admin/options.ts', 'AdminJwtOptions')],
    ['clientLogout', list('oidc/post-form.ts', 'ClientLogoutOptions')],
    ['responseDelay', list('http/mail-forms.ts', 'ResponseDelay')],
    [
      'beforeForgotPassword` is called with `request',
      list('contract/parameters.ts', 'ForgotPasswordRequest'),
    ],
  ]
    .map(([option, members]) => `### \`${option}\`\n\n${members}`)
    .join('\n\n')
}

function source(file: string): string {
  return readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8')
}

/** A declaration as it stands in the source, up to the next empty line. */
function block(file: string, start: string): string {
  const text = source(file)
  const from = text.indexOf(start)
  if (from < 0) throw new Error(`${file} has no "${start}"`)
  return `\`\`\`ts\n${text.slice(from, text.indexOf('\n\n', from))}\n\`\`\``
}

/** Each type by itself: when it happens, what it tells, its reasons, and a listener. */
function eventSections(): string {
  const table = /^const AUDIT_EVENTS = \{\n([^]*?)^\}$/m.exec(source('contract/audit.ts'))?.[1]
  if (table === undefined) throw new Error('contract/audit.ts has no table of events')
  const rows =
    /(?: {2}\/\*\*(?<doc>[^]*?)\*\/\n)? {2}(?<type>\w+): \{\} as Holds<(?<fields>[^]*?)>,\n/g
  return [...table.matchAll(rows)]
    .map(({ groups: { doc = '', type = '', fields = '' } = {} }) => {
      const held = onOneLine(fields)
      const forms = formsOf(held).map((form) => form.replaceAll(' | undefined', ''))
      const reasons = [...new Set(forms.flatMap(reasonsOf))]
      return [
        `### ${type}`,
        [...new Set([doc, ...commentsOf(held)])].map((each) => said(each).trim()).join(' '),
        `It tells ${forms.map((form) => `\`${form}\``).join(', or ')}.`,
        reasons.length > 0 &&
          `Its reasons: ${reasons.map((reason) => `\`${reason}\``).join(' · ')}`,
        `\`\`\`ts\n${listenerOf(type, forms)}\n\`\`\``,
      ]
        .filter(Boolean)
        .join('\n\n')
    })
    .join('\n\n')
}

/** An example that uses the fields that are texts. */
function listenerOf(type: string, forms: string[]): string {
  const texts = ['accountId', 'clientId', 'reason'].filter((name) =>
    forms.some((form) => new RegExp(String.raw`[{;] ${name}\??:`).test(form)),
  )
  const names = (texts.length > 0 ? texts : ['id']).join(', ')
  return `flows.events.on('${type}', ({ ${names} }) => note(${names}))`
}

/** The forms of what an event holds, each as one `{ … }` with the members of the types that it names. */
function formsOf(fields: string): string[] {
  const [form = '', ...others] = apart(fields, '|')
  if (others.length > 0) return [form, ...others].flatMap(formsOf)
  if (form.startsWith('(')) return formsOf(form.slice(1, -1))
  if (/^\w+$/.test(form)) return formsOf(declared(form))
  const parts = apart(form, '&')
  if (parts.length < 2) return [form]
  const members = parts.flatMap(formsOf).map((part) => part.replace(/^\{ (?<members>.*) \}$/, '$1'))
  return [`{ ${members.join('; ')} }`]
}

/** The comments on the types that an event is made of. */
function commentsOf(fields: string): string[] {
  return apart(fields, '|&').flatMap((part) => {
    if (part.startsWith('(')) return commentsOf(part.slice(1, -1))
    if (!/^\w+$/.test(part)) return []
    const [before = ''] = source('contract/audit.ts').split(
      new RegExp(`^(?:type|interface) ${part}\\b`, 'm'),
    )
    const { comment = '' } =
      /\n\/\*\*(?<comment>(?:(?!\*\/)[^])*)\*\/\n$/.exec(before)?.groups ?? {}
    return [comment, ...commentsOf(declared(part))]
  })
}

/** Splits a text at these signs where no bracket is open. */
function apart(text: string, signs: string): string[] {
  const parts = ['']
  let depth = 0
  for (const sign of text) {
    if ('({<'.includes(sign)) depth += 1
    if (')}>'.includes(sign)) depth -= 1
    if (depth === 0 && signs.includes(sign)) parts.push('')
    else parts.push(`${parts.pop()}${sign}`)
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

function reasonsOf(fields: string): string[] {
  const { reasons = '' } = /reason\??: (?<reasons>[^;}]*)/.exec(fields)?.groups ?? {}
  return reasonsIn(reasons)
}

/** All literals of a union, and of those that it names. */
function reasonsIn(union: string): string[] {
  return [...union.matchAll(/'(?<literal>\w+)'|(?<name>\b[A-Z]\w*)/g)].flatMap(
    ({ groups = {} }) => groups['literal'] ?? reasonsIn(declared(groups['name'] ?? '')),
  )
}

/** What stands behind the name of a type. */
function declared(name: string): string {
  const start = new RegExp(String.raw`^(?:export )?(?:type|interface) ${name}(?: =| (?=\{))`, 'm')
  const file = ['contract/audit.ts', 'errors.ts'].find((each) => start.test(source(each)))
  if (file === undefined) throw new Error(`there is no type ${name}`)
  const [, text = ''] = source(file).split(start)
  return onOneLine(text.split('\n\n')[0] ?? '')
}

/** Types without comments, with a semicolon between members. */
function onOneLine(types: string): string {
  return types
    .replaceAll(/\/\*\*.*\*\/|\/\/.*/g, '')
    .replaceAll(/(?<=[\w'}])\n\s*(?=\w+\??:)/g, '; ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

const MEMBER =
  /^ {2}(?:\/\*\*(?<doc>[\s\S]*?)\*\/\n {2})?(?<name>\w+)(?<rest>\??[(:][\s\S]*?)(?=\n {2}(?:\/\*\*|\w)|\n$)/gm

/** The members of an interface: each with its type, and what its comment says. */
function list(file: string, name: string): string {
  const declared = new RegExp(
    String.raw`^(?:export )?interface ${name}\b[^{]*\{\n(?<members>[\s\S]*?\n)\}`,
    'm',
  )
  const members = declared.exec(source(file))?.groups?.['members']
  if (members === undefined) throw new Error(`${file} has no interface ${name}`)
  return [...members.matchAll(MEMBER)]
    .map(({ groups = {} }) => {
      const signature = `${groups['name']}${groups['rest']}`.replaceAll(/\s+/g, ' ')
      return `- **\`${signature}\`**${said(groups['doc'] ?? '')}`
    })
    .join('\n')
}

function said(comment: string): string {
  const text = comment.replaceAll(/\s*\n\s*\*? ?/g, ' ').trim()
  return text === '' ? '' : `  \n  ${text.replace(/@returns /, 'It answers ')}`
}
