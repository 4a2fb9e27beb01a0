import type { Mutant } from './mutant.ts'

const RESET = 'test/http/reset-password.test.ts'
const REFUSALS = 'test/http/reset-password-refusals.test.ts'
const VOID = 'test/http/reset-password-void.test.ts'
const FORM = 'test/http/reset-password-form.test.ts'
const REASONS = 'test/http/reset-link-reasons.test.ts'
const FORGOT = 'test/http/forgot-password.test.ts'
const FLOW_TEST = 'test/flows/password-reset.test.ts'
const FLOW = 'src/flows/password-reset.ts'
const MEMORY_TOKENS = 'src/stores/memory-reset-tokens.ts'

/** Reset tokens, and the effects of a reset (3.1, 3.3). */
export const resetMutants: Mutant[] = [
  {
    name: 'a reset token is read, and claimed later',
    breaks: 'One token changes one password at most (3.1, D5).',
    edits: [
      {
        file: MEMORY_TOKENS,
        find: `if (!entry) return undefined
      entry.state = 'claimed'`,
        replace: `if (!entry) return undefined
      await new Promise((resolve) => setTimeout(resolve, 5))
      entry.state = 'claimed'`,
      },
    ],
    caughtBy: { file: RESET, words: 'exactly once when one link is posted 20 times at once' },
  },
  {
    name: 'a reset token is read, and claimed later, on MongoDB',
    breaks: 'One token changes one password at most (3.1, D5).',
    edits: [
      {
        file: 'src/stores/mongodb-reset-tokens.ts',
        find: `{ token_hash: text(tokenHash), expires_at: { $gt: at }, ...isLive },
        { $set: claimed`,
        replace: `{ token_hash: text(tokenHash) },
        { $set: claimed`,
      },
    ],
    caughtBy: {
      file: 'test/stores/mongodb-store.test.ts',
      words: 'gives a token to one of 20 that claim it at once',
      suite: 'src/contract/store-contract-reset-tokens.ts',
      store: 'mongodb',
    },
  },
  {
    name: 'a token is stored raw',
    breaks: 'Only the SHA-256 of a token is stored (2.1, 5.5).',
    edits: [
      {
        file: 'src/crypto/token.ts',
        find: "return createHash('sha256').update(token).digest('hex')",
        replace: 'void createHash\n  return token',
      },
    ],
    caughtBy: { file: FORGOT, words: 'and stores only its SHA-256 in lower-case hex' },
  },
  {
    name: 'earlier reset tokens stay alive',
    breaks: 'A new request invalidates every earlier unused token (3.1).',
    edits: [
      {
        file: MEMORY_TOKENS,
        find: 'if (!isLater(token, request)) invalidate(entry, at)',
        replace: 'void request',
      },
    ],
    caughtBy: { file: FORGOT, words: 'and invalidates every earlier unused one of that user' },
  },
  {
    name: 'an expired reset token is good',
    breaks: 'A token is no longer valid once its lifetime elapsed (3.1).',
    edits: [
      {
        file: MEMORY_TOKENS,
        find: "token.tokenHash === tokenHash && state === 'live' && token.expiresAt > at",
        replace: "token.tokenHash === tokenHash && state === 'live' && at > new Date(0)",
      },
    ],
    caughtBy: { file: REFUSALS, words: 'expired, though its record is still there' },
  },
  {
    name: 'used_at is set before the password is replaced',
    breaks: 'The effects come in the order of section 3.3.',
    edits: [
      {
        file: FLOW,
        find: 'const owner = await replacePassword(reset) // 1',
        replace: `usedAt = await resetTokens.markUsed(reset.id, now())
      const owner = await replacePassword(reset)`,
      },
    ],
    caughtBy: { file: FLOW_TEST, words: 'has its effects in the order of section 3.3' },
  },
  {
    name: 'a reset marks the address verified',
    breaks: 'An address is verified by its verification link alone (3.2, D7).',
    edits: [
      {
        file: FLOW,
        find: 'usedAt = await resetTokens.markUsed(reset.id, now()) // 2',
        replace: `usedAt = await resetTokens.markUsed(reset.id, now())
      if (reset.email !== undefined) await users.markEmailVerified(reset.userId, reset.email)`,
      },
    ],
    caughtBy: { file: RESET, words: 'without a cookie and without signing in (D7' },
  },
  {
    name: 'sessions are deleted, without a cut-off',
    breaks: 'What a request in flight saves again is dead (3.3, D9).',
    edits: [
      {
        file: 'src/oidc/endable-sessions.ts',
        find: 'await cutoffs.endOAuthSessions(accountId, at)',
        replace: '',
      },
      {
        file: 'src/oidc/endable-sessions.ts',
        find: 'await cutoffs.endIdpSessions(accountId, at)',
        replace: '',
      },
    ],
    caughtBy: {
      file: 'test/oidc/ending-in-flight.test.ts',
      words: 'saves its session again with a new grant, and both are dead',
    },
  },
  {
    name: 'OAuth sessions live on after a reset',
    breaks: 'All OAuth sessions of the user are deactivated (3.3, effect 3).',
    edits: [
      {
        file: FLOW,
        find: 'await sessions.endOAuthSessions(reset.userId, usedAt) // 3',
        replace: '0',
      },
    ],
    caughtBy: {
      file: 'test/oidc/ending-everything.test.ts',
      words: 'refresh tokens: invalid_grant',
    },
  },
  {
    name: 'a reset link outlives another address',
    breaks: 'A token is void once the address of its account changed (D6).',
    edits: [
      {
        file: 'src/flows/issued-for.ts',
        find: 'user.email === issued.email && ',
        replace: '',
      },
    ],
    caughtBy: { file: VOID, words: 'POST changes nothing, and a new link works' },
  },
  {
    name: 'a reset link outlives a newer password',
    breaks: 'A token is void once the password of its account changed (D6).',
    edits: [
      {
        file: 'src/flows/issued-for.ts',
        find: 'return passwordDigest(user.passwordHash) === issued.passwordDigest',
        replace: 'return passwordDigest(user.passwordHash) !== issued.email',
      },
    ],
    caughtBy: { file: VOID, words: 'its password: POST ends no session of the account' },
  },
  {
    name: 'a refused form spends the token',
    breaks: 'A refused form leaves the token unspent (D8).',
    edits: [
      {
        file: FLOW,
        find: 'if (refusal) return {',
        replace: `if (refusal) {
        await resetTokens.revoke(found.id, now())
        return { refusal, username: undefined }
      }
      if (refusal) return {`,
      },
    ],
    caughtBy: { file: FORM, words: '400 and the form again, with the reason' },
  },
  {
    name: 'a password is hashed before the token is looked up',
    breaks: 'Whoever has no link gets no bcrypt work done (PWD-08).',
    edits: [
      {
        file: FLOW,
        find: 'if (!found) return refuseToken(token, requester)',
        replace: `await ports.hashPassword(password)
      if (!found) return refuseToken(token, requester)`,
      },
    ],
    caughtBy: {
      file: FLOW_TEST,
      words: 'hashes nothing for a token that cannot be used',
    },
  },
  {
    name: 'a new password is trimmed',
    breaks: 'The password is exactly what was typed (D8).',
    edits: [
      {
        file: 'src/http/reset-password.ts',
        find: "form.get('password') ?? ''",
        replace: "(form.get('password') ?? '').trim()",
      },
      {
        file: 'src/http/reset-password.ts',
        find: "form.get('confirm_password') ?? ''",
        replace: "(form.get('confirm_password') ?? '').trim()",
      },
    ],
    caughtBy: { file: FORM, words: 'sets exactly the password that was typed (D8)' },
  },
  {
    name: 'a password may be longer than bcrypt reads',
    breaks: 'No password is longer than 72 bytes (D8).',
    edits: [
      {
        file: 'src/crypto/password.ts',
        find: 'Buffer.byteLength(password) > MAX_PASSWORD_BYTES',
        replace: 'password.length > MAX_PASSWORD_BYTES',
      },
    ],
    caughtBy: { file: FORM, words: 'and never takes more than 72 bytes' },
  },
  {
    name: 'a used reset link asks for a new mail',
    breaks: 'A new mail is one click away from an expired link alone (D17).',
    edits: [
      { file: FLOW, find: "if (!why.dead || why.fault !== 'expired')", replace: 'if (!why.dead)' },
    ],
    caughtBy: { file: REASONS, words: 'used: and it asks for nothing' },
  },
  {
    name: 'a void reset link that was never posted asks for a new mail',
    breaks: 'Whoever holds a link of the account as it was before gets no mail sent (D6, D17).',
    edits: [
      {
        file: FLOW,
        find: 'usable && !(await isStillOfItsAccount(usable))',
        replace: "usable && token === ''",
      },
    ],
    caughtBy: { file: REASONS, words: 'changed: a link that was never posted asks for no new one' },
  },
  {
    name: 'an expired reset link outlives a change of its account',
    breaks: 'Whoever holds a link of the account as it was before gets no mail sent (D6, D17).',
    edits: [
      {
        file: FLOW,
        find: "(await isStillOfItsAccount(dead)) ? 'expired' : 'changed'",
        replace: "(await isStillOfItsAccount(dead)) || dead.carried ? 'expired' : 'changed'",
      },
    ],
    caughtBy: { file: REASONS, words: 'changed, where it expired and the account changed since' },
  },
  {
    name: 'the countdown to the next mail is of the name alone',
    breaks: 'Nobody learns that somebody elsewhere asked for a name (D19).',
    edits: [
      {
        file: 'src/http/resend-cooldown.ts',
        find: '[kind, typed, networkOf(requester.address)]',
        replace: "[kind, typed, networkOf(requester.address) ? '' : '']",
      },
    ],
    caughtBy: {
      file: 'test/http/resend-cooldown.test.ts',
      words: 'it tells nobody in another network that somebody asked',
    },
  },
  {
    name: 'a client that needs PKCE is led to a request without it',
    breaks: 'After a reset the person is led to where the client can finish (4.2).',
    edits: [
      {
        file: 'src/oidc/clients.ts',
        find: "client.tokenEndpointAuthMethod !== 'none' &&",
        replace: '',
      },
    ],
    caughtBy: {
      file: 'test/http/reset-and-continue.test.ts',
      words: 'a client that needs PKCE, or a request of its own making',
    },
  },
]
