import type { Mutant } from './mutant.ts'

/** Who has an account stays secret; so do tokens, and what was typed (4.2, 4.7, 5.5). */
export const secrecyMutants: Mutant[] = [
  {
    name: 'a username that is a foreign address gets a mail',
    breaks: 'Nobody can learn who has an account.',
    edits: { 'mayBeMeant(typed, named) ? named': 'mayBeMeant ? named' },
    caughtBy: 'IDN-13',
  },
  {
    name: 'the way back to the client says who has reset a password',
    breaks: 'A client that a stranger chose is told nothing of the account (4.2).',
    edits: {
      '...(client && { client }), apps }':
        '...(client && { client: { ...client, href: `${client.href}?login_hint=${accountId}` } }), apps }',
    },
    caughtBy: 'ENU-10',
  },
  {
    name: 'the answer waits for the mail',
    breaks: 'The mail is sent asynchronously (4.2.4).',
    edits: {
      'const outbox = wakingOutbox(store.outbox,': `const outbox: Pick<MailOutbox, 'add'> = {
        async add(job) {
          await woken.add(job)
          await new Promise<void>((resolve) => {
            events.on('audit', ({ type, reason }) => {
              if (type.endsWith('_mail_sent') || reason === 'unknown') resolve()
            })
          })
        },
      }
      const woken = wakingOutbox(store.outbox,`,
    },
    caughtBy: 'SET-11',
  },
  {
    name: 'a request for nobody is answered early',
    breaks: 'The request does the same for everybody, without a look-up.',
    edits: {
      "const wanted = { kind: 'password_reset', identifier, carried, requester: by, form } as const return requestMail(outbox, wanted, settings(), clock.now())": `const wanted = { kind: 'password_reset', identifier, carried, requester: by, form } as const
      return parts.users
        .findByVerifiedEmail(identifier)
        .then(async (found) => found[0] ?? (await parts.users.findByUsername(identifier)))
        .then((user) => user && requestMail(outbox, wanted, settings(), clock.now()))`,
    },
    caughtBy: 'FLT-11',
  },
  {
    name: 'the delay counts from the arrival of the request',
    breaks: 'A slow body does not use the delay up (4.2.2).',
    edits: {
      "const form = await readForm(ctx) const waited = startDelay() if (typeof form === 'string') return pages.showError(ctx, form) const identifier": `const waited = startDelay()
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const identifier`,
    },
    caughtBy: 'counts from the end of the body',
  },
  {
    name: 'there is no delay',
    breaks: 'A random delay is added to the response (4.2.2).',
    edits: { "await waited() if (verdict !== 'failed')": "if (verdict !== 'failed')" },
    caughtBy: 'counts from the end of the body',
  },
  {
    name: 'links are built from the Host header',
    breaks: 'Links start with the configured address (LINK-01).',
    edits: {
      'const path = pathOf(ctx)': `const path = pathOf(ctx)
    process.env['MUTANT_HOST'] = ctx.host`,
      '`${parts.oauthUrl}${page}?token=${token}`':
        "`http://${process.env['MUTANT_HOST']}${new URL(parts.oauthUrl).pathname}${page}?token=${token}`",
    },
    caughtBy: 'LINK-01',
  },
  {
    name: 'the mail goes to the typed address',
    breaks: 'The mail goes to the stored address, byte for byte.',
    edits: {
      'job.sendTo ?? user.email':
        "job.sendTo ?? (job.identifier?.includes('@') ? job.identifier : user.email)",
    },
    caughtBy: 'IDN-04',
  },
  {
    name: 'addresses are folded as all of Unicode is',
    breaks: 'Only ASCII letters are the same in both cases.',
    edits: {
      'return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())':
        'return text.toLowerCase()',
    },
    caughtBy: 'IDN-01',
  },
  {
    name: 'an unverified address matches',
    breaks: 'An address matches only when it is verified (4.2.3).',
    edits: {
      'withEmail(email).filter(({ emailVerified }) => emailVerified)': 'withEmail(email)',
    },
    caughtBy: 'ENU-12',
  },
  {
    name: 'a username takes the place of an address',
    breaks: 'The owner of a verified address wins over a username.',
    edits: {
      'const [matches, named] = await Promise.all([': `const name = await users.findByUsername(typed)
  if (name) return name
  const [matches, named] = await Promise.all([`,
    },
    caughtBy: 'IDN-07',
  },
  {
    name: 'a username in another case takes the place of the very one',
    breaks: 'What was typed is tried exactly first (4.2.3).',
    edits: {
      'exact ?? trimmed ?? onlyOne(inAnyCase)': 'inAnyCase[0] ?? exact ?? trimmed ?? onlyOne([])',
    },
    caughtBy: 'IDN-14',
  },
  {
    name: 'one of several usernames in another case is picked',
    breaks: 'Where several match, nobody is mailed (4.2.3).',
    edits: { 'trimmed ?? onlyOne(inAnyCase)': 'trimmed ?? onlyOne(inAnyCase.slice(0, 1))' },
    caughtBy: 'IDN-14',
  },
  {
    name: 'a username is only looked up again where nobody has the one that was typed',
    breaks: 'The work is the same whether or not there is such a user.',
    edits: {
      'const [exact, trimmed, inAnyCase = []] = await Promise.all([': `const known = await users.findByUsername(first)
  if (known) return known
  const [exact, trimmed, inAnyCase = []] = await Promise.all([`,
    },
    caughtBy: 'IDN-14',
  },
  {
    name: 'the audit log holds what a stranger typed',
    breaks: 'Of what strangers typed, a keyed hash is kept.',
    edits: {
      'identifier_hash: keyedHash(foldTyped(job.identifier))':
        'identifier_hash: keyedHash(foldTyped(job.identifier)) && job.identifier',
    },
    caughtBy: 'LOG-07',
  },
  {
    name: 'what errors quote is logged',
    breaks: 'No token and no typed identifier is in a log line (LINK-09, LOG-01).',
    edits: { 'log: withoutValues(log)': 'log' },
    caughtBy: 'LOG-09',
  },
  {
    name: 'a log line is plain JSON',
    breaks: 'Nothing in a log line acts on a terminal, or on whoever splits lines (LOG-04).',
    edits: { 'escaped(written(record))': 'written(record)' },
    caughtBy: 'LOG-04',
  },
  {
    name: 'the reset page may be stored',
    breaks: 'A page with a token is in no cache (LINK-08).',
    edits: {
      "Vary: 'Accept-Language', 'Cache-Control': 'no-store'":
        "Vary: 'Accept-Language', 'Cache-Control': 'no-cache'",
    },
    caughtBy: 'LINK-08',
  },
]
