import type { Mutant } from './mutant.ts'

const FORGOT_FORM = 'test/http/forgot-password-form.test.ts'
const FORGOT_REQUEST = 'test/http/forgot-password-request.test.ts'
const REFUSALS = 'test/http/admin-settings-refusals.test.ts'
const VALUES = 'test/http/admin-settings-values.test.ts'
const SECRET = 'test/http/admin-settings-secret.test.ts'
const KEEPER = 'src/settings/settings.ts'
const SEALING = 'src/settings/sealing.ts'

/** What requests may hold, and the admin API (4.5, 5, D27, D31). */
export const requestMutants: Mutant[] = [
  {
    name: 'of a repeated field the last one counts',
    breaks: 'Every field is exactly one string (D31).',
    edits: [
      { file: 'src/http/form.ts', find: ' || fields.has(name)) return', replace: ') return' },
    ],
    caughtBy: { file: FORGOT_FORM, words: ': 400, and no mail' },
  },
  {
    name: 'a form with Origin null is believed',
    breaks: 'Forms that another site posts are refused (D31).',
    edits: [
      {
        file: 'src/http/cross-site.ts',
        find: "if (from === '' || from === origin) return false",
        replace: "if (from === '' || from === 'null' || from === origin) return false",
      },
    ],
    caughtBy: { file: FORGOT_REQUEST, words: ': 403, and no mail' },
  },
  {
    name: 'forms of other sites are taken',
    breaks: 'Forms that another site posts are refused (D31).',
    edits: [
      {
        file: 'src/http/routes.ts',
        find: 'if (isCrossSite(ctx, origin)) {',
        replace: 'if (!origin && isCrossSite(ctx, origin)) {',
      },
    ],
    caughtBy: {
      file: 'test/http/reset-password-refusals.test.ts',
      words: 'a form that another site posts: 403',
    },
  },
  {
    name: 'the beginning of the admin token is enough',
    breaks: 'The admin API takes the whole admin token (5.1).',
    edits: [
      {
        file: 'src/crypto/bearer-token.ts',
        find: 'expected.filter((one) => timingSafeEqual(given, one)).length > 0',
        replace:
          'expected.filter((one) => tokens.some((token) => token.startsWith(presented)) || timingSafeEqual(given, one)).length > 0',
      },
    ],
    caughtBy: { file: REFUSALS, words: 'a part of it' },
  },
  {
    name: 'a refused admin request goes on',
    breaks: 'Without the admin token nothing changes (5.1, ADM-07).',
    edits: [
      {
        file: 'src/http/admin-api.ts',
        find: 'if (admin) await route(ctx, path, admin.actor)',
        replace: "await route(ctx, path, admin?.actor ?? 'nobody')",
      },
    ],
    caughtBy: { file: REFUSALS, words: 'no header' },
  },
  {
    name: 'a refused admin token is recorded',
    breaks: 'Presented tokens are in no event (ADM-11).',
    edits: [
      {
        file: 'src/http/admin-auth.ts',
        find: 'await refuse(ctx, REASONS[verdict])',
        replace: "await refuse(ctx, String(token ?? verdict) as 'no_token')",
      },
    ],
    caughtBy: { file: REFUSALS, words: 'it in upper case' },
  },
  {
    name: 'GET settings shows the SMTP password',
    breaks: 'Secrets are shown as *** (D27).',
    edits: [{ file: KEEPER, find: 'secret ? MASK : value', replace: 'secret ? value : value' }],
    caughtBy: { file: SECRET, words: 'shown as *** by GET and by PUT, and in no dump' },
  },
  {
    name: 'the SMTP password is stored as it is',
    breaks: 'The SMTP password is encrypted at rest (D27).',
    edits: [
      {
        file: SEALING,
        find: '? await box.seal(value, purposeOf(name, values))',
        replace: '? value',
      },
      {
        file: SEALING,
        find: '? await box.open(value, purposeOf(name, values))',
        replace: '? value',
      },
    ],
    caughtBy: { file: SECRET, words: 'shown as *** by GET and by PUT, and in no dump' },
  },
  {
    name: 'the SMTP password goes to a new host',
    breaks: 'A password is sent to the server that it was given for (D23).',
    edits: [
      {
        file: 'src/settings/change.ts',
        find: 'if (moved.length === 0 || isGiven || !held.values[password]) return []',
        replace: 'if (moved.length > 0 || isGiven || !held.values[password]) return []',
      },
    ],
    caughtBy: { file: SECRET, words: 'forgotten when smtp_host changes' },
  },
  {
    name: 'some settings of a refused body are applied',
    breaks: 'All settings of a body are applied, or none (D27).',
    edits: [
      {
        file: KEEPER,
        find: "if ('problems' in next) return { outcome: next.problems }",
        replace: `if ('problems' in next) {
        for (const [key, value] of Object.entries(wanted)) {
          if ('problems' in applied(held, { [key]: value })) continue
          await store.write({ ...held.values, [key]: String(value) }, held.version)
        }
        await takeOver()
        return { outcome: next.problems }
      }`,
      },
    ],
    caughtBy: { file: VALUES, words: 'a minimum above the maximum' },
  },
  {
    name: '"false" is true',
    breaks: 'Booleans are the strings "true" and "false" (2.5).',
    edits: [
      {
        file: 'src/settings/kinds.ts',
        find: "value === 'true' ? true : value === 'false' ? false : undefined",
        replace: "value === 'true' ? true : value === 'false' ? Boolean(value) : undefined",
      },
    ],
    caughtBy: {
      file: 'test/http/admin-settings.test.ts',
      words: 'require_email_verification: "true" blocks, "false" really does not (SET-04)',
    },
  },
  {
    name: 'a port may be written as any number',
    breaks: 'Ports are decimal numbers and nothing else (SET-03).',
    edits: [
      {
        file: 'src/settings/kinds.ts',
        find: 'if (!/^[1-9]\\d{0,4}$/.test(value)) return undefined',
        replace: '',
      },
    ],
    caughtBy: { file: VALUES, words: '0x19', suite: 'test/support/settings-values.ts' },
  },
]
