import type { Mutant } from './mutant.ts'

/** The window that waits, and the question before a link is followed. */
export const waitingMutants: Mutant[] = [
  {
    name: 'a waiting window needs no cookie of its own',
    breaks: 'The window goes on in the browser that logged in, and nowhere else.',
    edits: {
      'pending?.browserHash === hashToken(browser) && waitsUntil':
        'pending !== undefined && waitsUntil',
    },
    caughtBy: 'VER-21',
  },
  {
    name: 'a waiting window waits for ever',
    breaks: 'A login that is over is like one of nobody.',
    edits: { '&& waitsUntil(pending) > clock.now()': '' },
    caughtBy: 'VER-21',
  },
  {
    name: 'a waiting window goes on unverified',
    breaks: 'The window goes on once the address is verified (3.2).',
    edits: {
      'user.emailVerified || !settings().requireEmailVerification':
        'user.emailVerified !== undefined',
    },
    caughtBy: 'goes nowhere before, says so',
  },
  {
    name: 'a login that was cancelled is finished by its link',
    breaks: 'The link of a login that was left verifies, and signs nobody in.',
    edits: {
      'await pendingLogins.change({ id: window.pendingLoginId }, { isVoid: true })': '',
    },
    caughtBy: 'verifies by the link that was mailed before',
  },
  {
    name: 'whoever wants another account gets the one that is signed in',
    breaks: 'The login page is shown anew, whoever is signed in.',
    edits: { ".add('login')": '' },
    caughtBy: 'is asked who signs in, though somebody',
  },
  {
    name: 'a login is left without its turn',
    breaks: 'A login has one answer.',
    edits: {
      'leave: (window: WaitingWindow, goOn: () => Promise<void>) => inTurn(window, async () => {':
        'leave: (window: WaitingWindow, goOn: () => Promise<void>) => inTurn({ ...window, pendingLoginId: "" }, async () => {}).then(async () => {',
      '{ isVoid: true }) }),': '{ isVoid: true }); return true }),',
    },
    caughtBy: 'VER-25',
  },
  {
    name: 'numbers may be guessed until one is right',
    breaks: 'The second wrong number ends the login.',
    edits: { 'tries > MOST_TRIES': 'tries > 99', 'if (tries < MOST_TRIES)': 'if (tries < 99)' },
    caughtBy: 'VER-26',
  },
  {
    name: 'tries at a number are not counted',
    breaks: 'A wrong number may be corrected once.',
    edits: {
      'await parts.limits.hit(triesKey(parts, pendingLoginId), WEEK_MS)': '{ count: 1 }',
    },
    caughtBy: 'VER-26',
  },
  {
    name: 'any number lets the window go on',
    breaks: 'The window goes on by the number that it shows.',
    edits: { 'if (number === numberOf(pendingLoginId))': 'if (number !== 0)' },
    caughtBy: 'VER-26',
  },
  {
    name: 'one number lets all windows of an account go on',
    breaks: 'The window whose number was typed goes on, and no other one.',
    edits: { 'await pendingLogins.change(others, { isVoid: true })': 'void others' },
    caughtBy: 'its window goes on, and no other one',
  },
  {
    name: 'the number of a login that waits need not be typed',
    breaks: 'With match, a button alone lets no window go on.',
    edits: {
      'if (!toMatch || (toMatch.isOver && number === undefined))':
        'if (!toMatch || number === undefined)',
    },
    caughtBy: 'what is no number of two digits is no try',
  },
  {
    name: 'a stranger waits again at once after somebody saw no window',
    breaks: 'For an hour no window of that account waits.',
    edits: { '(await isHeld(parts, user.id)) ?': '(await isHeld(parts, user.username)) ?' },
    caughtBy: 'VER-26',
  },
  {
    name: 'whoever sees no window leaves the login as it is',
    breaks: 'That login is over.',
    edits: {
      'if (token.pendingLoginId !== undefined) await endLogin(parts, token.pendingLoginId)': '',
    },
    caughtBy: 'confirms nothing, ends that login and its link',
  },
  {
    name: 'a waiting window learns of links alone',
    breaks: 'The window goes on whoever verified the address.',
    edits: {
      'pending.verifiedAt ?? (await users.findById(pending.accountId))?.emailVerified':
        'pending.verifiedAt',
    },
    caughtBy: 'learns that somebody else verified',
  },
  {
    name: 'a waiting window goes on in each of many posts, in memory',
    breaks: 'The window goes on once.',
    edits: { '(at ? login.continuedAt :': '(at ? false :' },
    caughtBy: 'gives its one turn to one of 20',
  },
  {
    name: 'a waiting window goes on in each of many posts, on MongoDB',
    breaks: 'The window goes on once.',
    edits: { ', continued_at: { $exists: false }': '' },
    caughtBy: 'gives its one turn to one of 20',
    store: 'mongodb',
  },
  {
    name: 'a link leaves the turn of the login to the waiting window of its browser',
    breaks: 'One browser gets one code.',
    edits: { 'takesTurn: true': 'takesTurn: false' },
    caughtBy: 'leaves its turn to the link',
  },
  {
    name: 'a waiting window says signed in whoever is',
    breaks: 'The page says what is so.',
    edits: { 'live && live.accountId === captured?.login.accountId': "status === 'continued'" },
    caughtBy: 'says that it went on already',
  },
  {
    name: 'a waiting window says signed in of any account',
    breaks: 'The page says what is so.',
    edits: { '=== captured?.login.accountId': '!== captured?.params' },
    caughtBy: 'says of a window that went on before',
  },
  {
    name: 'a changed theme keeps the address of the old one',
    breaks: 'After a change a browser loads the new style sheet.',
    edits: {
      "createHash('sha256').update(text)": "createHash('sha256').update(text.slice(0, 400))",
    },
    caughtBy: 'a variable of the style sheet',
  },
  {
    name: 'a waiting window goes on though its login was ended',
    breaks: 'What was ended stays ended, also in a window that waits.',
    edits: { '!user || !isLoginOf(pending, user, cutoffs)': '!user || cutoffs === null' },
    caughtBy: 'VER-19',
  },
  {
    name: 'a waiting window replaces the session of another account without a question',
    breaks: 'A live session of another account is never replaced silently.',
    edits: { 'live.uid !== answer.replaces': "live.uid === ''" },
    caughtBy: 'VER-18',
  },
  {
    name: 'an answer about one session replaces another',
    breaks: 'The answer is about the session that was asked about.',
    edits: {
      'isForeign && live.uid !== answer.replaces': 'isForeign && answer.replaces === undefined',
    },
    caughtBy: 'where a third account is signed in',
  },
  {
    name: 'a waiting window follows a redirect URI that was withdrawn',
    breaks: 'Client and redirect URI are looked at again when the window goes on.',
    edits: {
      'answer.keepsSession || !(await clients.mayFinish(ctx, captured))': 'answer.keepsSession',
    },
    caughtBy: 'its redirect URI was withdrawn',
  },
  {
    name: 'a failure of the provider uses the turn up',
    breaks: 'A turn in which nothing was finished is given back.',
    edits: { 'await pendingLogins.setTurn(pendingLoginId, turn, undefined).catch(() => {})': '' },
    caughtBy: 'RACE-13',
  },
  {
    name: 'what broke inside the provider is taken for an answer',
    breaks: 'A turn in which nothing was finished is given back.',
    edits: { 'rethrowFailure(ctx.req)': '' },
    caughtBy: 'RACE-13',
  },
  {
    name: 'a turn is given back in the name of another, in memory',
    breaks: 'One turn gives one code.',
    edits: { 'turns.get(login) !== turn': 'false' },
    caughtBy: 'lets nobody give back the turn of another',
  },
  {
    name: 'a turn is given back in the name of another, on MongoDB',
    breaks: 'One turn gives one code.',
    edits: { '{ _id: text(id), continued_by: text(turn) },': '{ _id: text(id) },' },
    caughtBy: 'lets nobody give back the turn of another',
    store: 'mongodb',
  },
  {
    name: 'a login that waited replaces a newer one of its account',
    breaks: 'A session never goes back to an earlier login.',
    edits: { '|| loginTs <= than.ts': '|| loginTs > 0' },
    caughtBy: 'SES-15',
  },
  {
    name: 'a login that waited is finished with the session, be that newer or not',
    breaks: 'The session is of the newest login of its account.',
    edits: { '|| loginTs <= than.ts': '' },
    caughtBy: 'replaces a session from before that login',
  },
  {
    name: 'a login that waited goes on whatever became of its client',
    breaks: 'The provider judges the request by its own checks when it goes on.',
    edits: {
      'return passesToday(ctx, captured, client)':
        'return client.redirectUriAllowed(String(params["redirect_uri"]))',
    },
    caughtBy: 'RED-15',
  },
  {
    name: 'a device is signed in whose client may not use the device flow any more',
    breaks: 'The provider judges the request by its own checks when it goes on.',
    edits: { 'client.grantTypeAllowed(DEVICE_GRANT) &&': '' },
    caughtBy: 'may not use the device flow any more',
  },
  {
    name: 'a request that came plainly is taken for one that was pushed',
    breaks: 'A client that must push its requests gets no code for another one.',
    edits: { '(mustPush && parJti === undefined) ||': '' },
    caughtBy: 'RED-15',
  },
  {
    name: 'a request of anybody is taken for one that was signed',
    breaks: 'A client that must sign its requests gets no code for another one.',
    edits: { '|| (mustSign && !trusted)': '' },
    caughtBy: 'RED-15',
  },
  {
    name: 'a waiting window leaves a pushed request unused',
    breaks: 'A pushed request is good for one answer.',
    edits: { 'await pushed?.consume().catch(() => {})': 'void pushed' },
    caughtBy: 'uses a pushed request up where nobody',
  },
  {
    name: 'a waiting window fails where a link used the pushed request up',
    breaks: 'The first window finishes whatever the link did elsewhere.',
    edits: {
      'await goOn(request)': 'await goOn({ ...request, ...(parJti && { parJti }) })',
    },
    caughtBy: 'the other browser used a pushed request up',
  },
  {
    name: 'a window is promised to go on that cannot',
    breaks: 'The page says what is so.',
    edits: { '&& (await parts.clients.mayFinish(ctx, captured))': '' },
    caughtBy: 'no window is promised to go on',
  },
  {
    name: 'scripts can read the cookie of the browser',
    breaks: 'The cookie is for no script.',
    edits: { 'Path=/; HttpOnly; SameSite=Lax': 'Path=/; SameSite=Lax' },
    caughtBy: 'is for no script and no other site',
  },
  {
    name: 'other hosts can set the cookie of the browser',
    breaks: 'The cookie is bound to its host.',
    edits: { "${isSecure ? '__Host-' : ''}account_flows_browser": 'account_flows_browser' },
    caughtBy: 'is bound to this host over https',
  },
  {
    name: 'the cookie outlives a login that is not to be remembered',
    breaks: 'What is not to be remembered ends with the browser.',
    edits: { 'result.remember !== false': 'result.remember !== null' },
    caughtBy: 'where the login is not to be remembered',
  },
  {
    name: 'mode always does not ask the browser that logged in',
    breaks: 'In mode always each browser is asked.',
    edits: { "mode === 'always' ||": '' },
    caughtBy: 'asks the browser that logged in too, and then',
  },
  {
    name: 'mode other_browser does not ask',
    breaks: 'In a careful mode another browser is asked.',
    edits: { "(mode === 'other_browser' && !isFirstBrowser)": 'isFirstBrowser === undefined' },
    caughtBy: 'VER-03',
  },
  {
    name: 'each browser is the one that logged in',
    breaks: 'The browser that logged in is known by its cookie.',
    edits: {
      'browser !== undefined && pending?.browserHash === hashToken(browser)':
        'pending?.browserHash !== undefined',
    },
    caughtBy: 'VER-03',
  },
  {
    name: 'another browser is signed in by its button',
    breaks: 'In a careful mode another browser gets no session and no code.',
    edits: { "settings().emailLinkConfirmation !== 'off' && !isFirstBrowser": 'false' },
    caughtBy: 'VER-03',
  },
  {
    name: 'a form that is sent without its button confirms',
    breaks: 'Nothing is confirmed that nobody pressed.',
    edits: {
      "if (!form.has('action')) return false": '',
      "if (!isAnswer && action !== 'confirm')":
        "if (!isAnswer && action !== 'confirm' && action !== undefined)",
    },
    caughtBy: 'VER-04',
  },
  {
    name: 'a button that a script pressed confirms',
    breaks: 'A script is no person.',
    edits: {
      "return !tells || ctx.get('Sec-Fetch-User') === '?1'": 'return true',
    },
    caughtBy: 'VER-04',
  },
]
