import type { Mutant } from './mutant.ts'

/** Verification links, and what they lead to (3.2, 4.6, 5.4). */
export const verificationMutants: Mutant[] = [
  {
    name: 'strangers who know a name use up the mails of its logins',
    breaks: 'The link of a login finishes the request of that login.',
    edits: { 'return pendingLoginId !== undefined }': "return pendingLoginId === '' }" },
    caughtBy: 'not used up by a stranger',
  },
  {
    name: 'strangers use up the mails of the logins of a mailbox',
    breaks: 'What logins are sent is counted apart.',
    edits: { "'login:'": "''" },
    caughtBy: 'RATE-13',
  },
  {
    name: 'requests that come together spend the spare beside the mails of the others',
    breaks: 'Whoever has something to use spends no spare.',
    edits: { 'await resolving.over(whose)': '' },
    caughtBy: 'no spare is spent while a mail is under way',
  },
  {
    name: 'a worker that was held up past its hold sends all the same',
    breaks: 'A mail is sent by whoever holds its job.',
    edits: { '&& clock.now() < job.heldUntil }': '}' },
    caughtBy: 'whoever takes it next sends it',
  },
  {
    name: 'any number of logins of an account wait',
    breaks: 'What is kept of the logins of an account is bounded.',
    edits: { 'of newestOf(login.accountId).slice(most - 1)': 'of newestOf(String(most))' },
    caughtBy: 'RATE-16',
  },
  {
    name: 'a request of any length is kept',
    breaks: 'What is kept of a login is bounded.',
    edits: { '> MAX_CAPTURED_BYTES': '> MAX_CAPTURED_BYTES * 9' },
    caughtBy: 'RATE-16',
  },
  {
    name: 'a link whose login is gone signs in by the mailbox alone',
    breaks: 'A link whose login is no longer kept signs nobody in.',
    edits: { 'job.pendingLoginId ?? pending?.id': 'pending?.id' },
    caughtBy: 'RATE-16',
  },
  {
    name: 'a login that is posted again is another one',
    breaks: 'A repeated login pushes no other one out.',
    edits: {
      'idOf([browser, checked, params, deviceCode])':
        'idOf([browser, checked, params, deviceCode, newId()])',
    },
    caughtBy: 'RATE-16',
  },
  {
    name: 'signing out leaves the windows of the browser waiting',
    breaks: 'After a sign-out nobody is signed in without a password.',
    edits: { '&& session?.accountId !== undefined': '&& session?.accountId === undefined' },
    caughtBy: 'once the person has signed out of the browser',
  },
  {
    name: 'the signature of a link is not checked',
    breaks: 'The parameters of a link cannot be altered (5.4).',
    edits: {
      'authorizeSig.verify(signature, token, carried)':
        'signature !== authorizeSig.sign(token, {})',
    },
    caughtBy: 'SIG-11',
  },
  {
    name: 'the state is not signed',
    breaks: 'The signature covers every carried parameter (5.4).',
    edits: { 'redirectUri, scope, state]': 'redirectUri, scope, state && undefined]' },
    caughtBy: 'does not verify',
  },
  {
    name: 'a signature is compared by its beginning',
    breaks: 'Every bit of the signature counts (5.4).',
    edits: {
      'timingSafeEqual(hmac(key, text), presented)':
        'timingSafeEqual(hmac(key, text).subarray(0, 8), presented.subarray(0, 8))',
    },
    caughtBy: 'every character of a signature',
  },
  {
    name: 'a verification link works twice',
    breaks: 'A verification token is used once (2.2).',
    edits: { 'if (!won)': 'if (!won && !token.id)' },
    caughtBy: 'RACE-05',
    store: 'mongodb',
  },
  {
    name: 'other links of an account live on after one is used',
    breaks: 'The leftovers of a verified account give mode expired.',
    edits: {
      'expire((other) => other.userId === userId && other.email === email, at)':
        'else void [userId, email]',
    },
    caughtBy: 'VER-06',
  },
  {
    name: 'a link says that an address is confirmed, and it is another one',
    breaks: 'What a link is told of is the address that it was mailed to (4.6).',
    edits: {
      'if (isVerified(token, account)) return': 'if (account?.emailVerified) return',
    },
    caughtBy: 'says nothing of it once the account',
  },
  {
    name: 'a link verifies another address than its own',
    breaks: 'A link verifies the address that it was mailed to (3.2).',
    edits: {
      'user.email === issued.email &&': '',
      'users.markEmailVerified(userId, email)': `users.markEmailVerified(
        userId,
        (await users.findById(userId))?.email ?? email,
      )`,
    },
    caughtBy: 'RACE-06',
  },
  {
    name: 'HEAD uses a verification link up',
    breaks: 'HEAD consumes nothing.',
    edits: { "if (ctx.method === 'HEAD') return true": '' },
    caughtBy: 'VER-01',
  },
  {
    name: 'a prefetch uses a verification link up',
    breaks: 'A prefetch consumes nothing.',
    edits: {
      'if (purposes.some((purpose) => /prefetch|prerender|preview/i.test(purpose))) return true':
        'void purposes',
    },
    caughtBy: 'VER-02',
  },
  {
    name: 'a browser may keep the page of a link that it fetched ahead',
    breaks: 'A prefetch takes nothing from the person who opens the link.',
    edits: { 'if (isByNobody) ctx.status = 403': '' },
    caughtBy: 'VER-02',
  },
  {
    name: 'the session of another account is replaced without a question',
    breaks: 'A live session of another account is never replaced silently.',
    edits: { '!== opened.accountId': "=== ''" },
    caughtBy: 'VER-05',
  },
  {
    name: 'redirect URIs are compared by their beginning',
    breaks: 'A redirect URI equals a registered one (RFC 9700 2.1).',
    edits: {
      'client?.redirectUriAllowed(redirectUri)':
        'client?.redirectUris?.some((uri) => redirectUri.startsWith(uri))',
    },
    caughtBy: 'SIG-16',
  },
  {
    name: 'a redirect URI that is no longer registered is followed',
    breaks: 'The client is checked again when the link is opened.',
    edits: { 'client.redirectUriAllowed(redirectUri) && client': 'client' },
    caughtBy: 'RED-05',
  },
  {
    name: 'a link is not looked at again after the cut-offs',
    breaks: 'What was ended stays ended, also behind a link that is opened in that moment.',
    edits: {
      'if (token && (await readCutoffs?.(token.userId))) token = await find()':
        'if (token) await readCutoffs?.(token.userId)',
    },
    caughtBy: 'signs nobody in where all ended',
  },
  {
    name: 'nobody is blocked',
    breaks: 'An unverified user cannot finish the login (1, 4.8).',
    edits: { '!verification.blocks(given)': 'verification.blocks(given)' },
    caughtBy: 'VER-10',
  },
  {
    name: 'a session of before goes around the block',
    breaks: 'The setting holds on every path to a code.',
    edits: { '?.emailVerified !== true': '=== undefined' },
    caughtBy: 'VER-11',
  },
  {
    name: 'a login that was ended is finished by its link',
    breaks: 'What was ended stays ended, also behind a link.',
    edits: { "!isEnded('idp', { second, seen }, cutoffs)": 'second !== Number(seen)' },
    caughtBy: 'is finished by nothing once it is blocked',
  },
  {
    name: 'a verified account gets verification mails',
    breaks: 'A verified account gets no verification mail.',
    edits: {
      "(emailVerified ? 'already_verified'": "(emailVerified === undefined ? 'already_verified'",
    },
    caughtBy: 'VER-12',
  },
]
