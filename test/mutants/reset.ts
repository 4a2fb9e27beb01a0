import type { Mutant } from './mutant.ts'

/** Reset tokens, the effects of a reset, and what takes them back (3.1, 3.3, 3.6). */
export const resetMutants: Mutant[] = [
  {
    name: '"this was not me" blocks whatever password there is',
    breaks: 'A password that was set since is left alone (3.6).',
    edits: {
      'current === undefined || passwordDigest(current) !== digest': 'current === undefined',
    },
    caughtBy: 'NOT-08',
  },
  {
    name: '"this was not me" leaves the sessions',
    breaks: 'A password that was set by a stolen link is blocked, and all sessions end (3.6).',
    edits: { 'await parts.endSessions(mail.accountId)': '' },
    caughtBy: 'NOT-07',
  },
  {
    name: '"this was not me" does it again each time',
    breaks: 'It does something once (3.6).',
    edits: { '(await limits.msToEnd(markOf(mail))) > 0': 'false' },
    caughtBy: 'NOT-03',
  },
  {
    name: '"this was not me" is done by a script',
    breaks: 'A person has to press its button (4.10).',
    edits: { 'if (isPressed(ctx, form)) return disown': 'if (form.size > 0) return disown' },
    caughtBy: 'NOT-02',
  },
  {
    name: 'a token may be written in another way',
    breaks: 'A token that was altered in any character is refused (4.10).',
    edits: {
      'parts.length === 5 && parts.every(isPlain)': 'parts.length > 0 || parts.every(isPlain)',
    },
    caughtBy: 'NOT-04',
  },
  {
    name: 'a reset verifies the address, whatever the setting says',
    breaks: 'A reset verifies no address but where reset_verifies_email is on (3.3).',
    edits: {
      "if (kind === 'password_reset' && settings().resetVerifiesEmail) await verifyByReset":
        'await verifyByReset',
    },
    caughtBy: 'does nothing while it is off',
  },
  {
    name: 'a reset verifies the address that the account has by then',
    breaks: 'A reset verifies the address that its link was mailed to (3.3).',
    edits: {
      'const isDone = await users.markEmailVerified(accountId, email)': `const now = await users.findById(accountId)
  const isDone = await users.markEmailVerified(accountId, now?.email ?? email)`,
    },
    caughtBy: 'verifies nothing where the account',
  },
  {
    name: 'an app that could not be told counts as told',
    breaks: 'The page and the mail after a reset name the apps that cannot be told (3.3).',
    edits: { "=> state === 'waiting' || state === 'sent'": "=> state !== 'untold'" },
    caughtBy: 'refuse for a day',
  },
  {
    name: 'a cut-off is by the clock of the process that resets',
    breaks: 'After a reset nothing that was signed in stays signed in (3.3).',
    edits: { 'if (!seen) return isBefore(end)': 'if (end) return isBefore(end)' },
    caughtBy: 'FLT-14',
  },
  {
    name: 'a login whose password is another one by now outlives the cut-offs',
    breaks: 'After a reset nothing that was signed in stays signed in (3.3).',
    edits: { ': seenNone()': ': seenAll(before)' },
    caughtBy: 'FLT-14',
  },
  {
    name: 'a login with the new password is judged by its clock',
    breaks: 'A login that begins after a reset is good.',
    edits: { 'isOfNow ? seenAll(before)': 'isOfNow ? seenBy(second, before)' },
    caughtBy: 'FLT-14',
  },
  {
    name: 'an exact end spares what a login of before makes after it',
    breaks: 'After a reset nothing that was signed in stays signed in (3.3).',
    edits: { 'earliest(second, oauthSecond(model, payload))': 'oauthSecond(model, payload)' },
    caughtBy: 'is rejected by the sweep, overwrites nothing',
  },
  {
    name: 'a session lives on whose tokens are ended',
    breaks: 'After half an end its person can sign in again.',
    edits: { "if (kind === 'idp' && isEnded('oauth', login, cutoffs)) return true": '' },
    caughtBy: 'signs in again in the same browser after',
  },
  {
    name: 'a reset token is read, and claimed later',
    breaks: 'One token changes one password at most (3.1).',
    edits: {
      'return undefined entry.token.claimedAt = at': `return undefined
      await new Promise((resolve) => setTimeout(resolve, 100))
      entry.token.claimedAt = at`,
    },
    caughtBy: 'gives a token to one of 20 that claim it at once',
  },
  {
    name: 'a reset token is read, and claimed later, on MongoDB',
    breaks: 'One token changes one password at most (3.1).',
    edits: {
      'live: true, ...isInTime(at) },\n        { $set: claimed,': '},\n        { $set: claimed,',
    },
    caughtBy: 'gives a token to one of 20 that claim it at once',
    store: 'mongodb',
  },
  {
    name: 'a token is stored raw',
    breaks: 'Only the SHA-256 of a token is stored (2.1, 5.5).',
    edits: {
      "return createHash('sha256').update(token).digest('hex')": `void createHash
  return token`,
    },
    caughtBy: 'TOK-02',
  },
  {
    name: 'earlier reset tokens stay alive',
    breaks: 'A new request invalidates every earlier unused token (3.1).',
    edits: { 'if (!isLater(token, request)) token.invalidatedAt = at': 'void request' },
    caughtBy: 'TOK-13',
  },
  {
    name: 'an expired reset token is good',
    breaks: 'A token is no longer valid once its lifetime elapsed (3.1).',
    edits: {
      "return expiresAt > at ? undefined : 'expired'":
        "return expiresAt > at || at > new Date(0) ? undefined : 'expired'",
    },
    caughtBy: 'TOK-06',
  },
  {
    name: 'used_at is set before the password is replaced',
    breaks: 'The effects come in the order of section 3.3.',
    edits: {
      'const obstacle = await setPassword(parts, reset)': `usedAt = (await tokens.advance(id, 'used', now()))?.usedAt
      const obstacle = await setPassword(parts, reset)`,
    },
    caughtBy: 'its effects in the order of section 3.3',
  },
  {
    name: 'a reset marks the address verified',
    breaks: 'An address is verified by its verification link alone (3.2).',
    edits: {
      "usedAt = (await tokens.advance(id, 'used', now()))?.usedAt": `usedAt = (await tokens.advance(id, 'used', now()))?.usedAt
      if (reset.email !== undefined) await parts.users.markEmailVerified(userId, reset.email)`,
    },
    caughtBy: 'SES-06',
  },
  {
    name: 'sessions are deleted, without a cut-off',
    breaks: 'What a request in flight saves again is dead (3.3).',
    edits: {
      'const ends = await parts.cutoffs.end(accountId, kind, end)':
        "const ends = { idpAt: kind === 'idp' ? end.at : undefined, oauthAt: kind === 'oauth' ? end.at : undefined, before: undefined }",
    },
    caughtBy: 'SES-04',
  },
  {
    name: 'a session that is kept outlives another end',
    breaks: 'What another process ends at the same time is dead (SES-22).',
    edits: { 'isEnded(stamp.kind, stamp, former)': 'false' },
    caughtBy: 'SES-22',
  },
  {
    name: 'OAuth sessions live on after a reset',
    breaks: 'All OAuth sessions of the user are deactivated (3.3, effect 3).',
    edits: { 'await sessions.endOAuthSessions(userId, end)': '0' },
    caughtBy: 'SES-01',
  },
  {
    name: 'links from before come back once an account is enabled again',
    breaks: 'A token is void once the enabled state of its account changed.',
    edits: { 'if (user?.disabled) await voidLinks(user.id)': '' },
    caughtBy: 'TOK-25',
  },
  {
    name: 'a mail that is on its way outlives the end of everything',
    breaks: 'After endSessions no link from before works (TOK-25).',
    edits: { 'await outbox.supersede(ids, BEFORE_EVERY_CLOCK)': '' },
    caughtBy: 'TOK-25',
  },
  {
    name: 'ending everything of an account leaves its links',
    breaks: 'What was mailed before an account was ended signs nobody in.',
    edits: { 'await voidLinks(accountId)\n  const oauth =': 'const oauth =' },
    caughtBy: 'TOK-25',
  },
  {
    name: 'a reset link outlives another address',
    breaks: 'A token is void once the address of its account changed.',
    edits: { 'user.email === issued.email &&': '' },
    caughtBy: 'TOK-16',
  },
  {
    name: 'a reset link outlives a newer password',
    breaks: 'A token is void once the password of its account changed.',
    edits: { '=== issued.passwordDigest': '!== issued.email' },
    caughtBy: 'its password: POST ends no session',
  },
  {
    name: 'a refused form spends the token',
    breaks: 'A refused form leaves the token unspent.',
    edits: {
      'if (refused) return { ...refused, carried: found.carried }': `if (refused) {
        await resetTokens.revoke({ id: found.id }, clock.now())
        return { ...refused, carried: found.carried }
      }`,
    },
    caughtBy: 'TOK-12',
  },
  {
    name: 'a password is hashed before the token is looked up',
    breaks: 'Whoever has no link gets no bcrypt work done (PWD-08).',
    edits: {
      'if (!found || endOf(found, clock.now())) return undefined': `await parts.hashPassword(form.password)
  if (!found || endOf(found, clock.now())) return undefined`,
    },
    caughtBy: 'PWD-08',
  },
  {
    name: 'every form with a token is hashed',
    breaks: 'Of many forms with one token one is hashed (RATE-15).',
    edits: {
      'inTurn(form.token, () => claim(parts, form, requester))':
        'claim(parts, form, inTurn && requester)',
    },
    caughtBy: 'RATE-15',
  },
  {
    name: 'passwords are hashed without a queue',
    breaks: 'Few passwords are hashed at the same time in a process (RATE-15).',
    edits: { 'if (running < atOnce) running += 1': 'if (running < atOnce + 1_000) running += 1' },
    caughtBy: 'RATE-15',
  },
  {
    name: 'as many passwords as come wait for the queue',
    breaks: 'Who would wait behind too many is told to come back (RATE-15).',
    edits: { 'else if (queue.length < waiting)': 'else if (queue.length < waiting + 1_000)' },
    caughtBy: 'RATE-15',
  },
  {
    name: 'a login costs the work of the stored hash',
    breaks: 'A login costs the same work for everybody (TIM-06).',
    edits: { 'sameWork(hash, highestCost)': 'hash ? [hash.text] : []' },
    caughtBy: 'TIM-06',
  },
  {
    name: 'a login takes a password that is read in part',
    breaks: 'What signs in is the password that was set, and nothing like it (PWD-01).',
    edits: { '!user?.disabled && isReadWhole(password)': '!user?.disabled || !isReadWhole' },
    caughtBy: 'PWD-01',
  },
  {
    name: 'a new password is trimmed',
    breaks: 'The password is exactly what was typed.',
    edits: {
      "form.get('password') ?? ''": "(form.get('password') ?? '').trim()",
      "form.get('confirm_password') ?? ''": "(form.get('confirm_password') ?? '').trim()",
    },
    caughtBy: 'PWD-05',
  },
  {
    name: 'a password may be longer than bcrypt reads',
    breaks: 'No password is longer than 72 bytes.',
    edits: {
      'Buffer.byteLength(password) <= MAX_PASSWORD_BYTES': 'password.length <= MAX_PASSWORD_BYTES',
    },
    caughtBy: 'PWD-01',
  },
  {
    name: 'a used reset link asks for a new mail',
    breaks: 'A new mail is one click away from an expired link alone.',
    edits: {
      "if (found?.state !== 'expired' &&":
        "if (found?.state !== 'expired' && found?.state !== 'used' &&",
    },
    caughtBy: 'used: and it asks for nothing',
  },
  {
    name: 'a void reset link that was never posted asks for a new mail',
    breaks: 'Whoever holds a link of the account as it was before gets no mail sent.',
    edits: {
      '!account || !isStillFor(token, account)':
        "!account || (end === 'expired' && !isStillFor(token, account))",
    },
    caughtBy: 'a link that was never posted asks for no new one',
  },
  {
    name: 'an expired reset link outlives a change of its account',
    breaks: 'Whoever holds a link of the account as it was before gets no mail sent.',
    edits: {
      '!account || !isStillFor(token, account)':
        '!account || (!end && !isStillFor(token, account))',
    },
    caughtBy: 'where it expired and the account changed since',
  },
  {
    name: 'the countdown to the next mail is of the name alone',
    breaks: 'Nobody learns that somebody elsewhere asked for a name.',
    edits: {
      '[kind, name, networkOf(requester.address)]':
        "[kind, name, networkOf(requester.address) ? '' : '']",
    },
    caughtBy: 'tells nobody in another network',
  },
  {
    name: 'after a reset a login of another client goes on',
    breaks: 'After a reset the person is led to where the client can finish (4.2).',
    edits: {
      "params['client_id'] !== clientId || params['redirect_uri'] !== redirectUri": 'false',
    },
    caughtBy: 'whose login is not there any more',
  },
  {
    name: 'after a reset a login goes on in a session that the reset ended',
    breaks: 'After a reset the person is led to where the client can finish (4.2).',
    edits: { 'session && session.uid !== (await provider().Session.get(ctx)).uid': 'false' },
    caughtBy: 'whose login is not there any more',
  },
  {
    name: 'the page that a reset leads back to is taken from the browser',
    breaks: 'Nothing leads to what is not registered.',
    edits: {
      "box.open(ctx.cookies.get(NAME, { signed: false }) ?? '', NAME)":
        'ctx.cookies.get(NAME, { signed: false })?.replace(/.*/, decodeURIComponent)',
    },
    caughtBy: 'leads nowhere else, and the honest login',
  },
  {
    name: 'an invitation takes the place of a password, in memory',
    breaks: 'An invitation sets a password only while there is none (3.4).',
    edits: { 'user.disabled || user.passwordHash !== undefined ||': 'user.disabled ||' },
    caughtBy: 'sets no first password of whoever has one',
  },
  {
    name: 'an invitation takes the place of a password, on MongoDB',
    breaks: 'An invitation sets a password only while there is none (3.4).',
    edits: { "{ password_hash: { $in: [null, ''], $not: { $type: 'array' } } }": '{}' },
    caughtBy: 'sets no first password of whoever has one',
    store: 'mongodb',
  },
  {
    name: 'invitations and resets have their tokens in one place',
    breaks: 'A link of one kind does nothing at the page of another (2.6).',
    edits: { "tokens: 'invitationTokens'": "tokens: 'resetTokens'" },
    caughtBy: 'does nothing at the page of another kind',
  },
  {
    name: 'a password is judged for an account that the link is no longer for',
    breaks: 'A dead link tells nothing of an account.',
    edits: {
      "if (!account || linkState(token, account, clock.now()) !== 'usable')": 'if (!account)',
    },
    caughtBy: 'PWD-17',
  },
  {
    name: 'what pads the answer of the range service counts as leaked',
    breaks: 'Nobody is kept from a good password by the range service.',
    edits: { '(counts.get(rest) ?? 0) > 0': 'counts.has(rest)' },
    caughtBy: 'PWD-19',
  },
  {
    name: 'a judgement of the host that fails takes the password',
    breaks: 'A judgement of the host fails closed.',
    edits: {
      "throw new AccountFlowsError('ERR_JUDGE_FAILED', `judgePassword failed: ${why}`)":
        'return undefined',
    },
    caughtBy: 'PWD-20',
  },
]
