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

${list('create-account-flows.ts', 'AccountFlows')}
${list('http/login.ts', 'Login')}
${list('http/well-known.ts', 'WellKnown')}

A login is told to these methods so:

${list('http/login.ts', 'CheckedLogin')}

## Users of your own

${list('ports/users.ts', 'UserStore')}

A user is:

${list('ports/users.ts', 'User')}

## A transport of your own

The option \`transport\` sends mails in the place of SMTP ([examples](mail.md#send-through-a-service)). It has:

${list('ports/mails.ts', 'MailTransport')}

It is handed:

${list('ports/mails.ts', 'TransportMail')}

It answers:

${block('ports/mails.ts', 'export type TransportAnswer =')}

## Events

\`flows.events.on('audit', (event) => …)\` hears each event once it is recorded; so it comes once, from the process that recorded it. A listener that throws or rejects is logged, and stops nothing. An event
has never a token, a password, or what a stranger typed.

| \`type\` | what happened |
| --- | --- |
${eventRows()}

The type \`AuditEvent\` says which fields each of them has; a \`switch\` on \`type\` narrows it. \`accountId\` and \`clientId\` are there where they are known.

All events have:

${list('ports/audit.ts', 'EventBase')}

Why there was no mail, and what ended a link:

${block('ports/audit.ts', 'export type NoMail =')}

${block('ports/token-end.ts', 'export type TokenEnd =')}

## Errors

What goes wrong inside is an \`AccountFlowsError\` with one of these codes. They are also the \`reason\` of a mail that failed.

${block('errors.ts', 'export type ErrorCode =')}

## All exports

### \`oidc-account-flows\`

${exportsOf('index.ts')}

### \`oidc-account-flows/contract\`

Suites for a store, an adapter or users of your own. They need mocha and chai.

${exportsOf('contract/index.ts')}

### \`oidc-account-flows/admin-client\`

\`createAdminClient\` and \`AdminApiError\` alone, without the rest of the package, and a type for each schema of [openapi.json](openapi.json).
`
}

/** What some options hold. */
function optionTypes(): string {
  return [
    ['brand', list('views/brand.ts', 'Brand')],
    ['hashing', list('crypto/hashing.ts', 'Hashing')],
    ['adminJwt', list('admin/jwt.ts', 'AdminJwtOptions')],
    ['responseDelay', list('http/response-delay.ts', 'ResponseDelay')],
    [
      'beforeForgotPassword` is called with `request',
      list('http/forgot-password.ts', 'ForgotPasswordRequest'),
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

function eventRows(): string {
  const types = block('ports/audit.ts', 'export const AUDIT_EVENT_TYPES')
  return [...types.matchAll(/\/\*\* (?<said>.*) \*\/\n {2}'(?<type>\w+)'/g)]
    .map(({ groups = {} }) => `| \`${groups['type']}\` | ${groups['said']} |`)
    .join('\n')
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
