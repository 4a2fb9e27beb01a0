import { eventSections } from './events.ts'
import { functionsOf, typesOf } from './exports.ts'
import { ERRORS, METHODS, OPTIONS, type Section } from './sections.ts'
import { example, list, membersOf, type } from './source.ts'

/** docs/reference.md: what a host calls and is told, out of what the types say of themselves. */
export function referencePage(): string {
  return `# Reference

<!-- Made by \`npm run docs\` out of the types; not to be edited. -->

What you give to the flows, what you call, and what you hear from them. Types are TypeScript's; \`?\` means that it may be left out. [Getting started](start.md) shows most of it in use. To write a
store for another database, read [its own reference](reference-stores.md).

- [Options](#options) · [Methods](#methods) · [Errors](#errors) · [Events](#events) · [Users of your own](#users-of-your-own) · [A transport of your own](#a-transport-of-your-own) · [All exports](#all-exports)

## Options

What \`createAccountFlows\` takes. A bad option throws a \`TypeError\` that names it.

${sections('AccountFlowsOptions', OPTIONS)}

## Methods

What \`createAccountFlows\` returns.

${sections('AccountFlows', METHODS)}

## Errors

Expected outcomes are returned. A failure is an \`AccountFlowsError\` with one of these codes. The codes stay; messages may change.

${errors()}

With the first three, a later try may succeed. Answer 503, for example in Express:

${example(ANSWER_503)}

## Events

Something happened, such as a reset. [Events](events.md) shows what to build on them. An event is recorded, and then your listeners hear it. It never has a token or a password.

- \`flows.events.on('audit', (event) => …)\` hears all events. A \`switch\` on \`event.type\` narrows the rest.
- \`flows.events.on('password_reset_completed', (event) => …)\` hears one type. So it is for each type below.

All events have, beside their \`type\`:

${list('EventBase')}

A field with \`?\` is \`undefined\` if its value is not known. So is a field that its type does not have.

${eventSections()}

### What details have

How much was ended:

${type('EndedSessions', 'contract/')}

Of a mail that was reported:

${type('ReportOutcome')}

Of a mail that failed (\`MailFault\`):

${list('MailFault')}

\`mail\` is there if the mail is a notice: \`password_changed\` or \`email_changed\`. \`identifier_hash\` is a keyed hash of a name that no account has.

### What reasons mean

Why there was no mail, and what ended a link:

${type('NoMail')}

${type('TokenEnd')}

${type('LinkEnd')}

## Users of your own

The option \`users\` takes a \`UserStore\`. [Questions](questions.md#users-in-sql-with-knex-prisma-or-drizzle) has its writes in SQL. Tests say when yours is done:

${example(TEST_OF_USERS)}

It has:

${list('UserStore')}

A user is:

${list('User')}

## A transport of your own

The option \`transport\` sends mails in place of SMTP ([examples](mail.md#send-through-a-service)). It has:

${list('MailTransport')}

It gets:

${list('TransportMail')}

It answers:

${type('TransportAnswer')}

## All exports

### \`oidc-account-flows\`

${functionsOf('index.ts')}

For example, with everything in memory:

${example(IN_MEMORY)}

${typesOf('index.ts')}

### \`oidc-account-flows/contract\`

The suites that say when what you implement is done. They need mocha and chai. The types are in \`oidc-account-flows\`.

${functionsOf('contract/suites/index.ts')}

### \`oidc-account-flows/store\`

For a store of your own: [its reference](reference-stores.md).

### \`oidc-account-flows/admin-client\`

\`createAdminClient\` and \`AdminApiError\` without the rest of the package ([the admin API](admin-api.md)), and a type for each schema of [openapi.json](openapi.json).
`
}

/** Options and methods by their use. Each member has its place in one section. */
function sections(name: string, all: Section[]): string {
  const members = new Map(
    name === 'AccountFlows'
      ? [...membersOf(name), ...membersOf('Login'), ...membersOf('LoginPassword')]
      : membersOf(name),
  )
  const take = (member: string) => {
    const text = members.get(member)
    if (text === undefined) throw new Error(`${name} has no ${member}, or it has two places`)
    members.delete(member)
    return text
  }
  const texts = all.map(({ title, members: own = [...members.keys()], more = {}, code }) => {
    const parts = Object.entries(more).map(([lead, text]) => `${lead}\n\n${text}`)
    const listed = own.map(take).join('\n')
    return [`### ${title}`, listed, ...parts, code && example(code)].filter(Boolean).join('\n\n')
  })
  if (members.size > 0) throw new Error(`${[...members.keys()].join(', ')} of ${name} has no place`)
  return texts.join('\n\n')
}

function errors(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, [happened, advice]]) => `| \`${code}\` | ${happened} | ${advice} |`,
  )
  return `| code | what happened | what to do |\n| --- | --- | --- |\n${rows.join('\n')}`
}

const ANSWER_503 = `
import type { ErrorRequestHandler } from 'express'

const PASSING = ['ERR_STORE_UNAVAILABLE', 'ERR_OVERLOADED', 'ERR_VALIDATOR_FAILED']

const answer503: ErrorRequestHandler = (error, _req, res, next) => {
  if (!PASSING.includes(error?.code)) return next(error)
  res.status(503).set('Retry-After', '60').send('Please try again in a minute.')
}
app.use(answer503) // after your login page`

const TEST_OF_USERS = `
import { itIsAUserStore } from 'oidc-account-flows/contract'

itIsAUserStore('my users', async (users) => ({
  users: await myUsersWith(users),
  close: async () => {},
}))`

const IN_MEMORY = `
import { memoryMailbox, memoryStore, memoryUsers } from 'oidc-account-flows'

const mailbox = memoryMailbox()
const flows = createAccountFlows({
  ...options,
  store: memoryStore(),
  users: memoryUsers(),
  transport: mailbox,
})`
