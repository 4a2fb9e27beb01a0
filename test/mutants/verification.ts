import type { Mutant } from './mutant.ts'

const VERIFY = 'test/http/verify-email.test.ts'
const SIGNATURE = 'test/http/verify-email-signature.test.ts'
const MEANWHILE = 'test/http/verify-email-meanwhile.test.ts'
const SESSIONS = 'test/http/verify-email-sessions.test.ts'
const LINKS = 'test/http/resend-verification-links.test.ts'
const EVERY_PATH = 'test/http/login-every-path.test.ts'
const FLOW = 'src/flows/email-verification.ts'
const ROUTE = 'src/http/verify-email.ts'

/** Verification links, and what they lead to (3.2, 4.6, 5.4). */
export const verificationMutants: Mutant[] = [
  {
    name: 'strangers who know a name use up the mails of its logins',
    breaks: 'The link of a login finishes the request of that login (D11, D21).',
    edits: [
      {
        file: 'src/flows/mail-limits.ts',
        find: 'return pendingLoginId !== undefined',
        replace: "return pendingLoginId === ''",
      },
    ],
    caughtBy: {
      file: 'test/mail/limits.test.ts',
      words: 'of a login are not used up by a stranger who asks by name',
    },
  },
  {
    name: 'strangers use up the mails of the logins of a mailbox',
    breaks: 'What logins are sent is counted apart (D21).',
    edits: [
      {
        file: 'src/flows/mail-limits.ts',
        find: "isOfLogin(job) ? 'login:' : ''",
        replace: "isOfLogin(job) ? '' : ''",
      },
    ],
    caughtBy: {
      file: 'test/mail/limits.test.ts',
      words: 'more for logins, of all its accounts together',
    },
  },
  {
    name: 'a tick by script counts as a person',
    breaks: 'What a scanner does with a page uses no link up (D14).',
    edits: [
      {
        file: 'src/http/cross-site.ts',
        find: "if (form.has('scripted')) return false",
        replace: "if (form.has('scripted') && !form.has('tick')) return false",
      },
    ],
    caughtBy: {
      file: 'test/http/confirmation-modes.test.ts',
      words: 'is not moved by scanners that fetch, render, or send the form by script',
    },
  },
  {
    name: 'signing out leaves the windows of the browser waiting',
    breaks: 'After a sign-out nobody is signed in without a password (D15).',
    edits: [
      {
        file: 'src/oidc/sign-out.ts',
        find: 'session?.accountId !== undefined',
        replace: 'session?.accountId === undefined',
      },
    ],
    caughtBy: {
      file: 'test/http/waiting-login-sessions.test.ts',
      words: 'goes on in no window once the person has signed out of the browser',
    },
  },
  {
    name: 'the signature of a link is not checked',
    breaks: 'The parameters of a link cannot be altered (5.4).',
    edits: [
      {
        file: FLOW,
        find: 'isToken(token) && authorizeSig.verify(signature, token, carried)',
        replace: 'isToken(token) && signature !== authorizeSig.sign(token, {})',
      },
    ],
    caughtBy: { file: SIGNATURE, words: 'refuses a signature that is cut, too long' },
  },
  {
    name: 'the state is not signed',
    breaks: 'The signature covers every carried parameter (5.4).',
    edits: [
      {
        file: 'src/crypto/authorize-sig.ts',
        find: '[token, clientId, redirectUri, scope, state]',
        replace: '[token, clientId, redirectUri, scope, state && undefined]',
      },
    ],
    caughtBy: { file: 'test/crypto/authorize-sig.test.ts', words: 'another state' },
  },
  {
    name: 'a signature is compared by its beginning',
    breaks: 'Every bit of the signature counts (5.4).',
    edits: [
      {
        file: 'src/crypto/authorize-sig.ts',
        find: 'timingSafeEqual(hmac(key, text), presented)',
        replace: 'timingSafeEqual(hmac(key, text).subarray(0, 8), presented.subarray(0, 8))',
      },
    ],
    caughtBy: {
      file: 'test/crypto/authorize-sig.test.ts',
      words: 'looks at every character of a signature',
    },
  },
  {
    name: 'a verification link works twice',
    breaks: 'A verification token is used once (2.2).',
    edits: [{ file: FLOW, find: 'if (!won) {', replace: 'if (!won && !token.id) {' }],
    caughtBy: {
      file: VERIFY,
      words: 'gives one of 20 parallel requests the redirect',
      store: 'mongodb',
    },
  },
  {
    name: 'other links of an account live on after one is used',
    breaks: 'The leftovers of a verified account give mode expired (D6).',
    edits: [
      {
        file: 'src/stores/memory-verification-tokens.ts',
        find: 'else if (token.userId === userId && token.email === email) expire(entry, at)',
        replace: 'else void [userId, email]',
      },
    ],
    caughtBy: {
      file: MEANWHILE,
      words: 'is expired, with an option to ask for a new link, once another link of the user',
    },
  },
  {
    name: 'a link verifies another address than its own',
    breaks: 'A link verifies the address that it was mailed to (3.2).',
    edits: [
      { file: 'src/flows/issued-for.ts', find: 'user.email === issued.email && ', replace: '' },
      {
        file: FLOW,
        find: 'users.markEmailVerified(userId, email)',
        replace: `users.markEmailVerified(
        userId,
        (await users.findById(userId))?.email ?? email,
      )`,
      },
    ],
    caughtBy: { file: MEANWHILE, words: 'is expired once the address is another one' },
  },
  {
    name: 'HEAD uses a verification link up',
    breaks: 'HEAD consumes nothing (D14).',
    edits: [
      {
        file: ROUTE,
        find: "if (ctx.method === 'HEAD') return pages.showError(ctx, 'refused')",
        replace: '',
      },
    ],
    caughtBy: { file: VERIFY, words: 'does nothing on HEAD' },
  },
  {
    name: 'a prefetch uses a verification link up',
    breaks: 'A prefetch consumes nothing (D14).',
    edits: [
      {
        file: 'src/http/cross-site.ts',
        find: 'if (purposes.some((purpose) => /prefetch|prerender|preview/i.test(purpose))) return true',
        replace: 'void purposes',
      },
    ],
    caughtBy: { file: VERIFY, words: 'does nothing for a prefetch' },
  },
  {
    name: 'the session of another account is replaced without a question',
    breaks: 'A live session of another account is never replaced silently (D16).',
    edits: [
      {
        file: ROUTE,
        find: 'live !== undefined && live.accountId !== opened.accountId',
        replace: "live !== undefined && live.accountId === ''",
      },
    ],
    caughtBy: { file: SESSIONS, words: 'asks first, names neither account, and consumes nothing' },
  },
  {
    name: 'redirect URIs are compared by their beginning',
    breaks: 'A redirect URI equals a registered one (D13, RFC 9700 2.1).',
    edits: [
      {
        file: 'src/oidc/clients.ts',
        find: 'return client?.redirectUriAllowed(redirectUri) ? client : undefined',
        replace:
          'return client?.redirectUris?.some((uri) => redirectUri.startsWith(uri)) ? client : undefined',
      },
    ],
    caughtBy: { file: LINKS, words: 'is neither signed nor mailed, and the link only verifies' },
  },
  {
    name: 'a redirect URI that is no longer registered is followed',
    breaks: 'The client is checked again when the link is opened (D12).',
    edits: [
      {
        file: 'src/oidc/clients.ts',
        find: `client.redirectUriAllowed(redirectUri) &&
        client`,
        replace: 'client',
      },
    ],
    caughtBy: { file: MEANWHILE, words: 'once the redirect URI is no longer the client’s' },
  },
  {
    name: 'nobody is blocked',
    breaks: 'An unverified user cannot finish the login (1, 4.8).',
    edits: [
      {
        file: 'src/http/login.ts',
        find: 'if (!user || !verification.blocks(user)) return false',
        replace: 'if (!user || verification.blocks(user)) return false',
      },
    ],
    caughtBy: {
      file: 'test/http/login.test.ts',
      words: 'renders the verification page in mode blocked instead of issuing a code',
    },
  },
  {
    name: 'a session of before goes around the block',
    breaks: 'The setting holds on every path to a code (D18).',
    edits: [
      {
        file: 'src/oidc/policy.ts',
        find: 'return ask((await users.findById(accountId))?.emailVerified !== true)',
        replace: 'return ask((await users.findById(accountId)) === undefined)',
      },
    ],
    caughtBy: { file: EVERY_PATH, words: 'holds for a session from before it was switched on' },
  },
  {
    name: 'a login that was ended is finished by its link',
    breaks: 'What was ended stays ended, also behind a link (D9, D12).',
    edits: [
      {
        file: 'src/flows/pending-login.ts',
        find: '!isEndedBy(endedAt, ts)',
        replace: 'endedAt !== new Date(ts)',
      },
    ],
    caughtBy: {
      file: MEANWHILE,
      words: 'verifies without session and code once everything of the account was ended',
    },
  },
  {
    name: 'a verified account gets verification mails',
    breaks: 'A verified account gets no verification mail (D20).',
    edits: [
      {
        file: 'src/flows/verification-mail.ts',
        find: "(emailVerified ? 'already_verified' : undefined)",
        replace: "(emailVerified === undefined ? 'already_verified' : undefined)",
      },
    ],
    caughtBy: {
      file: 'test/http/resend-verification.test.ts',
      words: 'sends a mail to an unverified user, and to nobody else',
    },
  },
]
