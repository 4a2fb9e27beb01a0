import type { Mutant } from './mutant.ts'

/** Who has an account stays secret; so do tokens, and what was typed (4.2, 4.7, 5.5). */
export const secrecyMutants: Mutant[] = [
  {
    name: 'a username that is a foreign address gets a mail',
    breaks: 'Nobody can learn who has an account.',
    in: 'account:findUser',
    find: 'mayBeMeant(typed, named)',
    becomes: 'true',
    caughtBy: 'IDN-13',
  },
  {
    name: 'the way back to the client says who has reset a password',
    breaks: 'A client that a stranger chose is told nothing of the account (4.2).',
    in: 'showDone',
    find: '...(client && { client }), apps }',
    becomes:
      '...(client && { client: { ...client, href: `${client.href}?login_hint=${accountId}` } }), apps }',
    caughtBy: 'ENU-10',
  },
  {
    name: 'the answer waits for the mail',
    breaks: 'The mail is sent asynchronously (4.2.4).',
    in: 'createAccountFlows',
    find: 'const outbox = wakingOutbox(store.outbox,',
    becomes: `const outbox: Pick<MailOutbox, 'add'> = {
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
    caughtBy: 'SET-11',
  },
  {
    name: 'a request for nobody is answered early',
    breaks: 'The request does the same for everybody, without a look-up.',
    in: 'password-reset:request',
    find: "const wanted = { kind: 'password_reset', identifier, carried, requester: by, form } as const return requestMail(outbox, wanted, settings(), clock.now())",
    becomes: `const wanted = { kind: 'password_reset', identifier, carried, requester: by, form } as const
      return parts.users
        .findByVerifiedEmail(identifier)
        .then(async (found) => found[0] ?? (await parts.users.findByUsername(identifier)))
        .then((user) => user && requestMail(outbox, wanted, settings(), clock.now()))`,
    caughtBy: 'FLT-11',
  },
  {
    name: 'the delay counts from the arrival of the request',
    breaks: 'A slow body does not use the delay up (4.2.2).',
    in: 'forgot-password:post',
    find: "const form = await readForm(ctx) const waited = startDelay() if (typeof form === 'string') return pages.showError(ctx, form) const identifier",
    becomes: `const waited = startDelay()
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const identifier`,
    caughtBy: 'counts from the end of the body',
  },
  {
    name: 'there is no delay',
    breaks: 'A random delay is added to the response (4.2.2).',
    in: 'createHostCheck',
    find: "await waited() if (verdict !== 'failed')",
    becomes: "if (verdict !== 'failed')",
    caughtBy: 'counts from the end of the body',
  },
  {
    name: 'links are built from the Host header',
    breaks: 'Links start with the configured address (LINK-01).',
    in: 'createRoutes',
    find: 'const path = pathOf(ctx)',
    becomes: `const path = pathOf(ctx)
    process.env['MUTANT_HOST'] = ctx.host`,
    and: [
      {
        in: 'reset-mail:mint',
        find: '`${parts.oauthUrl}${page}?token=${token}`',
        becomes:
          "`http://${process.env['MUTANT_HOST']}${new URL(parts.oauthUrl).pathname}${page}?token=${token}`",
      },
    ],
    caughtBy: 'LINK-01',
  },
  {
    name: 'the mail goes to the typed address',
    breaks: 'The mail goes to the stored address, byte for byte.',
    in: 'recipientOf',
    find: 'job.sendTo ?? user.email',
    becomes: "job.sendTo ?? (job.identifier?.includes('@') ? job.identifier : user.email)",
    caughtBy: 'IDN-04',
  },
  {
    name: 'addresses are folded as all of Unicode is',
    breaks: 'Only ASCII letters are the same in both cases.',
    in: 'foldAscii',
    find: 'text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())',
    becomes: 'text.toLowerCase()',
    caughtBy: 'IDN-01',
  },
  {
    name: 'an unverified address matches',
    breaks: 'An address matches only when it is verified (4.2.3).',
    in: 'users:findByVerifiedEmail',
    find: 'withEmail(email).filter(({ emailVerified }) => emailVerified)',
    becomes: 'withEmail(email)',
    caughtBy: 'ENU-12',
  },
  {
    name: 'a username takes the place of an address',
    breaks: 'The owner of a verified address wins over a username.',
    in: 'account:findUser',
    find: 'const [matches, named] = await Promise.all([',
    becomes: `const name = await users.findByUsername(typed)
  if (name) return name
  const [matches, named] = await Promise.all([`,
    caughtBy: 'IDN-07',
  },
  {
    name: 'a username in another case takes the place of the very one',
    breaks: 'What was typed is tried exactly first (4.2.3).',
    in: 'findByName',
    find: 'exact ?? trimmed ?? onlyOne(inAnyCase)',
    becomes: 'inAnyCase[0] ?? exact ?? trimmed ?? onlyOne([])',
    caughtBy: 'IDN-14',
  },
  {
    name: 'one of several usernames in another case is picked',
    breaks: 'Where several match, nobody is mailed (4.2.3).',
    in: 'findByName',
    find: 'trimmed ?? onlyOne(inAnyCase)',
    becomes: 'trimmed ?? onlyOne(inAnyCase.slice(0, 1))',
    caughtBy: 'IDN-14',
  },
  {
    name: 'a username is only looked up again where nobody has the one that was typed',
    breaks: 'The work is the same whether or not there is such a user.',
    in: 'findByName',
    find: 'const [exact, trimmed, inAnyCase = []] = await Promise.all([',
    becomes: `const known = await users.findByUsername(first)
  if (known) return known
  const [exact, trimmed, inAnyCase = []] = await Promise.all([`,
    caughtBy: 'IDN-14',
  },
  {
    name: 'the audit log holds what a stranger typed',
    breaks: 'Of what strangers typed, a keyed hash is kept.',
    in: 'recordRequested',
    find: 'identifier_hash: keyedHash(foldTyped(job.identifier))',
    becomes: 'identifier_hash: keyedHash(foldTyped(job.identifier)) && job.identifier',
    caughtBy: 'LOG-07',
  },
  {
    name: 'what errors quote is logged',
    breaks: 'No token and no typed identifier is in a log line (LINK-09, LOG-01).',
    in: 'checkOptions',
    find: 'log: withoutValues(log)',
    becomes: 'log',
    caughtBy: 'LOG-09',
  },
  {
    name: 'a log line is plain JSON',
    breaks: 'Nothing in a log line acts on a terminal, or on whoever splits lines (LOG-04).',
    in: 'jsonLine',
    find: 'escaped(JSON.stringify(record))',
    becomes: 'JSON.stringify(record)',
    caughtBy: 'LOG-04',
  },
  {
    name: 'the reset page may be stored',
    breaks: 'A page with a token is in no cache (LINK-08).',
    in: 'pageHeaders',
    find: "Vary: 'Accept-Language', 'Cache-Control': 'no-store'",
    becomes: "Vary: 'Accept-Language', 'Cache-Control': 'no-cache'",
    caughtBy: 'LINK-08',
  },
]
