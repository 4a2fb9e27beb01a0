import type { Mutant } from './mutant.ts'

const FORGOT = 'test/http/forgot-password.test.ts'
const FORGOT_REQUEST = 'test/http/forgot-password-request.test.ts'
const AUDIT = 'test/http/audit.test.ts'
const LOGS = 'test/attacks/logs.test.ts'

/** Who has an account stays secret; so do tokens, and what was typed (4.2, 4.7, 5.5, D33). */
export const secrecyMutants: Mutant[] = [
  {
    name: 'the answer waits for the mail',
    breaks: 'The mail is sent asynchronously (4.2.4).',
    edits: [
      {
        file: 'src/create-account-flows.ts',
        find: 'mail.wake(job.notBefore)',
        replace: `mail.wake(job.notBefore)
      await new Promise<void>((resolve) => {
        events.on('audit', ({ type, reason }) => {
          if (type.endsWith('_mail_sent') || reason === 'unknown') resolve()
        })
      })`,
      },
    ],
    caughtBy: {
      file: FORGOT,
      words: 'while SMTP is not configured too; the mail leaves once it is (SET-11)',
    },
  },
  {
    name: 'a request for nobody is answered early',
    breaks: 'The request does the same for everybody, without a look-up (D19).',
    edits: [
      {
        file: 'src/flows/password-reset.ts',
        find: `request: (identifier, carried, requester) =>
      requestMail(`,
        replace: `request: async (identifier, carried, requester) =>
      (await users.findByVerifiedEmail(identifier)).length === 0 &&
      (await users.findByUsername(identifier)) === undefined
        ? undefined
        : requestMail(`,
      },
    ],
    caughtBy: {
      file: 'test/flows/password-reset.test.ts',
      words: 'does the same one thing for every identifier, and looks nobody up',
    },
  },
  {
    name: 'the delay counts from the arrival of the request',
    breaks: 'A slow body does not use the delay up (4.2.2, D19).',
    edits: [
      {
        file: 'src/http/forgot-password.ts',
        find: `const form = await readForm(ctx)
      const waited = startDelay(delay)`,
        replace: `const waited = startDelay(delay)
      const form = await readForm(ctx)`,
      },
    ],
    caughtBy: {
      file: 'test/http/response-delay.test.ts',
      words: 'counts from the end of the body, however slowly that came',
    },
  },
  {
    name: 'there is no delay',
    breaks: 'A random delay is added to the response (4.2.2).',
    edits: [
      {
        file: 'src/http/forgot-password.ts',
        find: `await waited()
      if (verdict === 'failed') {`,
        replace: "if (verdict === 'failed') {",
      },
    ],
    caughtBy: {
      file: 'test/http/response-delay.test.ts',
      words: 'counts from the end of the body, however slowly that came',
    },
  },
  {
    name: 'links are built from the Host header',
    breaks: 'Links start with the configured address (LINK-01).',
    edits: [
      {
        file: 'src/http/routes.ts',
        find: 'const { path } = ctx',
        replace: "const { path } = ctx\n    process.env['MUTANT_HOST'] = ctx.host",
      },
      {
        file: 'src/flows/reset-mail.ts',
        find: '`${ports.oauthUrl}/reset-password?token=${token}`',
        replace:
          "`http://${process.env['MUTANT_HOST']}${new URL(ports.oauthUrl).pathname}/reset-password?token=${token}`",
      },
    ],
    caughtBy: { file: FORGOT_REQUEST, words: 'when a request spoofs' },
  },
  {
    name: 'the mail goes to the typed address',
    breaks: 'The mail goes to the stored address, byte for byte (D22).',
    edits: [
      {
        file: 'src/stores/memory-outbox.ts',
        find: 'entry.job.accountId = accountId',
        replace: `entry.job.accountId = accountId
        if (entry.job.identifier?.includes('@')) entry.job.sendTo = entry.job.identifier`,
      },
    ],
    caughtBy: {
      file: FORGOT,
      words: 'matches a verified address in either case of ASCII letters, and mails the stored one',
    },
  },
  {
    name: 'addresses are folded as all of Unicode is',
    breaks: 'Only ASCII letters are the same in both cases (D22).',
    edits: [
      {
        file: 'src/stores/ascii-case.ts',
        find: 'return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())',
        replace: 'return text.toLowerCase()',
      },
    ],
    caughtBy: { file: FORGOT, words: 'takes no other letter for an ASCII one' },
  },
  {
    name: 'an unverified address matches',
    breaks: 'An address matches only when it is verified (4.2.3).',
    edits: [
      {
        file: 'src/stores/memory-users.ts',
        find: '(user) => user.emailVerified && user.email &&',
        replace: '(user) => user.email &&',
      },
    ],
    caughtBy: {
      file: FORGOT,
      words: 'matches nobody by an unverified address, and that user by the username',
    },
  },
  {
    name: 'a username takes the place of an address',
    breaks: 'The owner of a verified address wins over a username (D22).',
    edits: [
      {
        file: 'src/flows/find-user.ts',
        find: 'const matches = await users.findByVerifiedEmail(identifier)',
        replace: `const named = await users.findByUsername(identifier)
  if (named) return named
  const matches = await users.findByVerifiedEmail(identifier)`,
      },
    ],
    caughtBy: { file: FORGOT, words: 'prefers the user whose verified address it is' },
  },
  {
    name: 'the audit log holds what a stranger typed',
    breaks: 'Of what strangers typed, a keyed hash is kept (D33).',
    edits: [
      {
        file: 'src/mail-pipeline.ts',
        find: 'const hash = (text: string) => keyedHash(keys, text)',
        replace: 'const hash = (text: string) => (keyedHash(keys, text) ? text : text)',
      },
    ],
    caughtBy: { file: AUDIT, words: 'keeps a hash of what a stranger typed, and no token' },
  },
  {
    name: 'what errors quote is logged',
    breaks: 'No token and no typed identifier is in a log line (LINK-09, LOG-01).',
    edits: [{ file: 'src/options.ts', find: 'log: withoutValues(log)', replace: 'log' }],
    caughtBy: { file: LOGS, words: 'holds no token when a request with one fails' },
  },
  {
    name: 'a log line is plain JSON',
    breaks: 'Nothing in a log line acts on a terminal, or on whoever splits lines (LOG-04).',
    edits: [
      {
        file: 'src/log.ts',
        find: 'const line = escaped(written(record))',
        replace: 'const line = written(record)',
      },
    ],
    caughtBy: { file: LOGS, words: 'line and paragraph separators' },
  },
  {
    name: 'the reset page may be stored',
    breaks: 'A page with a token is in no cache (LINK-08).',
    edits: [
      {
        file: 'src/http/pages.ts',
        find: "'Cache-Control': 'no-store',",
        replace: "'Cache-Control': 'no-cache',",
      },
    ],
    caughtBy: {
      file: 'test/http/reset-password.test.ts',
      words: 'is neither stored nor leaked: no-store, no-referrer',
    },
  },
]
