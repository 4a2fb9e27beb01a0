import type { Mutant } from './mutant.ts'

/** What requests may hold, and the admin API (4.5, 5). */
export const requestMutants: Mutant[] = [
  {
    name: 'a code is redeemed by everybody who read it before it was consumed',
    breaks: 'A code is used once (RFC 6749, 4.1.2).',
    edits: { '{ ...withId(model, id), ...NOT_CONSUMED },': 'withId(model, id),' },
    caughtBy: 'RACE-12',
    store: 'mongodb',
  },
  {
    name: 'a hash that was read in the database is an id',
    breaks: 'Whoever reads the database can use nothing of it (TOK-24).',
    edits: { '{ _id: id, ...IN_CLEAR }': '{ _id: id }' },
    caughtBy: 'TOK-24',
    store: 'mongodb',
  },
  {
    name: 'what holds an id is kept in clear',
    breaks: 'Whoever reads the database can use nothing of it (TOK-24).',
    edits: { '[payload, lookedForBy(payload)]': '[payload, payload]' },
    caughtBy: 'TOK-24',
    store: 'mongodb',
  },
  {
    name: 'the sources of a captcha are on every page',
    breaks: 'Every other page keeps its policy (HDR-12).',
    edits: { 'hasCaptcha ? sources : undefined': 'sources' },
    caughtBy: 'HDR-12',
  },
  {
    name: 'whoever the host denies gets a mail',
    breaks: 'A denied form comes to nothing.',
    edits: {
      "if (verdict === 'allow') await request()": "if (verdict !== 'failed') await request()",
    },
    caughtBy: 'takes anything but allow for a denial',
  },
  {
    name: 'of a repeated field the last one counts',
    breaks: 'Every field is exactly one string.',
    edits: { '|| fields.has(name)) return': ') return' },
    caughtBy: 'INJ-13',
  },
  {
    name: 'a form with Origin null is believed',
    breaks: 'Forms that another site posts are refused.',
    edits: {
      "from === '' || from === origin": "from === '' || from === 'null' || from === origin",
    },
    caughtBy: 'for every pair of headers',
  },
  {
    name: 'forms of other sites are taken',
    breaks: 'Forms that another site posts are refused.',
    edits: { 'if (isCrossSite(ctx, origin))': 'if (!origin && isCrossSite(ctx, origin))' },
    caughtBy: 'for every pair of headers',
  },
  {
    name: 'the beginning of the admin token is enough',
    breaks: 'The admin API takes the whole admin token (5.1).',
    edits: {
      'timingSafeEqual(given, hash)':
        'tokens.some(([token]) => token.startsWith(presented)) || timingSafeEqual(given, hash)',
    },
    caughtBy: 'ADM-04',
  },
  {
    name: 'a refused admin request goes on',
    breaks: 'Without the admin token nothing changes (5.1, ADM-07).',
    edits: {
      'if (admin) await answer(admin.actor)': "await answer(admin?.actor ?? 'nobody')",
    },
    caughtBy: 'ADM-07',
  },
  {
    name: 'a refused admin token is recorded',
    breaks: 'Presented tokens are in no event (ADM-11).',
    edits: { 'REASONS[verdict]': "String(token ?? verdict) as 'no_token'" },
    caughtBy: 'ADM-01',
  },
  {
    name: 'GET settings shows the SMTP password',
    breaks: 'Secrets are shown as ***.',
    edits: { '? MASK : value': '? value : value' },
    caughtBy: 'ADM-14',
  },
  {
    name: 'the SMTP password is stored as it is',
    breaks: 'The SMTP password is encrypted at rest.',
    edits: {
      '? box.seal(value, purposeOf(name, values))': '? value',
      '? box.open(value, purposeOf(name, values))': '? value',
    },
    caughtBy: 'ADM-14',
  },
  {
    name: 'the SMTP password goes to a new host',
    breaks: 'A password is sent to the server that it was given for.',
    edits: { 'moved.length === 0 ||': 'moved.length > 0 ||' },
    caughtBy: 'SET-08',
  },
  {
    name: 'some settings of a refused body are applied',
    breaks: 'All settings of a body are applied, or none.',
    edits: {
      "if ('problems' in next) return { outcome: next.problems }": `if ('problems' in next) {
        for (const [key, value] of Object.entries(wanted)) {
          if ('problems' in applied(held, { [key]: value })) continue
          await store.write({ ...held.values, [key]: String(value) }, held.version)
        }
        await takeOver()
        return { outcome: next.problems }
      }`,
    },
    caughtBy: 'SET-05',
  },
  {
    name: '"false" is true',
    breaks: 'Booleans are the strings "true" and "false" (2.5).',
    edits: { "value === 'false' ? false": "value === 'false' ? Boolean(value)" },
    caughtBy: 'SET-04',
  },
  {
    name: 'a port may be written as any number',
    breaks: 'Ports are decimal numbers and nothing else (SET-03).',
    edits: { 'if (!/^[1-9]\\d{0,4}$/.test(value)) return undefined': '' },
    caughtBy: 'SET-03',
  },
]
