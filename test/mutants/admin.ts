import type { Mutant } from './mutant.ts'

const SETTINGS = 'src/settings/settings.ts'
const ETAG = 'test/http/admin-settings-etag.test.ts'
const JWT = 'test/http/admin-jwt.test.ts'
const ADMIN_JWT = 'src/crypto/admin-jwt.ts'
const LIMIT = 'test/http/admin-limit.test.ts'
const CLI_SETTINGS = 'test/cli/settings.test.ts'

/** What admins may do, and what they are told (D27, D28, D29). */
export const adminMutants: Mutant[] = [
  {
    name: 'If-Match is not looked at',
    breaks: 'Settings that somebody else changed are not overwritten (D27).',
    edits: [
      {
        file: SETTINGS,
        find: "ifMatch.some((etag) => etag === '*' || etag === etagOf(held))",
        replace: "ifMatch.some((etag) => etag !== '' || etag === etagOf(held))",
      },
    ],
    caughtBy: { file: ETAG, words: 'are refused with what was right before' },
  },
  {
    name: 'a dry run changes settings',
    breaks: 'A dry run applies nothing (D27).',
    edits: [
      {
        file: SETTINGS,
        find: 'if (changed.length === 0 || isDryRun) return { outcome }',
        replace: 'if (changed.length === 0) return { outcome }',
      },
    ],
    caughtBy: { file: CLI_SETTINGS, words: '--dry-run checks, shows, and changes nothing' },
  },
  {
    name: 'an id_token is an admin token',
    breaks: 'A JWT of an admin has the type that was agreed on (D28, ADM-08).',
    edits: [{ file: ADMIN_JWT, find: "typ: options.type ?? 'at+jwt',", replace: '' }],
    caughtBy: { file: JWT, words: 'is refused' },
  },
  {
    name: 'a token for another audience is an admin token',
    breaks: 'A JWT of an admin is for this API (D28, ADM-08).',
    edits: [{ file: ADMIN_JWT, find: '    issuer,\n    audience,\n', replace: '    issuer,\n' }],
    caughtBy: { file: JWT, words: 'is refused' },
  },
  {
    name: 'a JWT without the scope is an admin token',
    breaks: 'A JWT of an admin has the scope account-flows:admin (D28, ADM-09).',
    edits: [
      {
        file: ADMIN_JWT,
        find: 'scopes.includes(scope)',
        replace: '(scopes.includes(scope) || scope !== undefined)',
      },
    ],
    caughtBy: { file: JWT, words: '403' },
  },
  {
    name: 'failures at the admin API are not limited',
    breaks: 'Failures are limited by network (D28, ADM-11).',
    edits: [
      {
        file: 'src/http/admin-auth.ts',
        find: 'if (count <= FAILURES_PER_MINUTE) {',
        replace: 'if (count > 0) {',
      },
    ],
    caughtBy: { file: LIMIT, words: 'and then 429 with Retry-After' },
  },
  {
    name: 'the command line takes a secret as an argument',
    breaks: 'A secret is never an argument (D29, CLI-01).',
    edits: [
      {
        file: 'cli/setting-values.ts',
        find: 'if (meansSecret(key) && !isTold) {',
        replace: 'if (meansSecret(key) && !isTold && args.length === 0) {',
      },
    ],
    caughtBy: { file: CLI_SETTINGS, words: 'as an argument is refused with exit 2' },
  },
]
