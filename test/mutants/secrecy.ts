import type { Mutant } from './mutant.ts'

/** Who has an account stays secret; so do tokens, and what was typed (4.2, 4.7, 5.5). */
export const secrecyMutants: Mutant[] = [
  {
    name: 'a username that is a foreign address gets a mail',
    in: 'account:findUser',
    find: 'mayBeMeant(typed, named)',
    becomes: 'true',
    caughtBy: 'IDN-13',
  },
  {
    name: 'the way back to the client says who has reset a password',
    in: 'showDone',
    find: '...(client && { client }), apps }',
    becomes:
      '...(client && { client: { ...client, href: `${client.href}?login_hint=${accountId}` } }), apps }',
    caughtBy: 'ENU-10',
  },
  {
    name: 'the answer waits for the mail',
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
    in: 'password-reset:request',
    find: "const wanted = { kind: 'password_reset', identifier, carried, requester: by, form } as const return requestMail(outbox, wanted, settings(), clock.now())",
    becomes: `const wanted = { kind: 'password_reset', identifier, carried, requester: by, form } as const
      return parts.users
        .findByVerifiedEmail(identifier)
        .then(async (found) => found[0] ?? (await parts.users.findByUsername(identifier)))
        .then((user) => user && requestMail(outbox, wanted, settings(), clock.now()))`,
    caughtBy: 'FLT-11',
    store: 'mongodb',
  },
  {
    name: 'the delay counts from the arrival of the request',
    in: 'readAndAnswer',
    find: 'const fields = await readForm(ctx) const randomDelay = startDelay()',
    becomes: `const randomDelay = startDelay()
      const fields = await readForm(ctx)`,
    caughtBy: 'counts from the end of the body',
  },
  {
    name: 'there is no delay',
    in: 'createHostCheck',
    find: "await randomDelay() if (verdict !== 'failed')",
    becomes: "if (verdict !== 'failed')",
    caughtBy: 'counts from the end of the body',
  },
  {
    name: 'the delay is the same each time',
    in: 'responseDelay',
    find: 'randomInt(jitterMs * 1000) / 1000',
    becomes: 'jitterMs',
    caughtBy: 'varies over all of that',
  },
  {
    name: 'a token that was never mailed is answered early',
    in: 'renewLink',
    find: 'await randomDelay() return showInvalidLink',
    becomes: 'return showInvalidLink',
    caughtBy: 'counts from the end of the body',
  },
  {
    name: 'links are built from the Host header',
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
    in: 'recipientOf',
    find: 'job.sendTo ?? user.email',
    becomes: "job.sendTo ?? (job.identifier?.includes('@') ? job.identifier : user.email)",
    caughtBy: 'IDN-04',
  },
  {
    name: 'addresses are folded as all of Unicode is',
    in: 'foldAscii',
    find: 'text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())',
    becomes: 'text.toLowerCase()',
    caughtBy: 'IDN-01',
  },
  {
    name: 'an unverified address matches',
    in: 'users:findByVerifiedEmail',
    find: 'withEmail(email).filter(({ emailVerified }) => emailVerified)',
    becomes: 'withEmail(email)',
    caughtBy: 'ENU-12',
  },
  {
    name: 'a username takes the place of an address',
    in: 'account:findUser',
    find: 'const [matches, named] = await Promise.all([',
    becomes: `const name = await users.findByUsername(typed)
  if (name) return name
  const [matches, named] = await Promise.all([`,
    caughtBy: 'IDN-07',
  },
  {
    name: 'a username in another case takes the place of the very one',
    in: 'findByName',
    find: 'exact ?? trimmed ?? onlyOne(inAnyCase)',
    becomes: 'inAnyCase[0] ?? exact ?? trimmed ?? onlyOne([])',
    caughtBy: 'IDN-14',
  },
  {
    name: 'one of several usernames in another case is picked',
    in: 'findByName',
    find: 'trimmed ?? onlyOne(inAnyCase)',
    becomes: 'trimmed ?? onlyOne(inAnyCase.slice(0, 1))',
    caughtBy: 'IDN-14',
  },
  {
    name: 'a username is only looked up again where nobody has the one that was typed',
    in: 'findByName',
    find: 'const [exact, trimmed, inAnyCase = []] = await Promise.all([',
    becomes: `const known = await users.findByUsername(first)
  if (known) return known
  const [exact, trimmed, inAnyCase = []] = await Promise.all([`,
    caughtBy: 'IDN-14',
  },
  {
    name: 'the audit log holds what a stranger typed',
    in: 'recordRequested',
    find: 'identifier_hash: keyedHash(foldTyped(job.identifier))',
    becomes: 'identifier_hash: keyedHash(foldTyped(job.identifier)) && job.identifier',
    caughtBy: 'LOG-07',
  },
  {
    name: 'what errors quote is logged',
    in: 'checkOptions',
    find: 'log: withoutValues(log)',
    becomes: 'log',
    caughtBy: 'LOG-09',
  },
  {
    name: 'a log line is plain JSON',
    in: 'jsonLine',
    find: 'escaped(JSON.stringify(record))',
    becomes: 'JSON.stringify(record)',
    caughtBy: 'LOG-04',
  },
  {
    name: 'the reset page may be stored',
    in: 'pageHeaders',
    find: "Vary: 'Accept-Language', 'Cache-Control': 'no-store'",
    becomes: "Vary: 'Accept-Language', 'Cache-Control': 'no-cache'",
    caughtBy: 'LINK-08',
  },
]
