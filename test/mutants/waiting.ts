import type { Mutant } from './mutant.ts'

const WAITING = 'test/http/waiting-login.test.ts'
const ENDED = 'test/http/waiting-login-ended.test.ts'
const WINDOW_SESSIONS = 'test/http/waiting-login-sessions.test.ts'
const REQUESTS = 'test/http/waiting-login-requests.test.ts'
const MODES = 'test/http/confirmation-modes.test.ts'
const FLOW = 'src/flows/waiting-login.ts'
const VERIFICATION = 'src/flows/email-verification.ts'
const WINDOW = 'src/http/waiting-login.ts'
const ROUTE = 'src/http/verify-email.ts'
const PERSON = 'src/http/cross-site.ts'
const COOKIE = 'src/http/browser-cookie.ts'

/** The window that waits, and the question before a link is followed (D14, D15, D16). */
export const waitingMutants: Mutant[] = [
  {
    name: 'a waiting window needs no cookie of its own',
    breaks: 'The window goes on in the browser that logged in, and nowhere else (D15).',
    edits: [
      {
        file: FLOW,
        find: 'pending?.browserHash === hashToken(browser) && waitsUntil(pending) > now()',
        replace: 'pending !== undefined && waitsUntil(pending) > now()',
      },
    ],
    caughtBy: {
      file: WAITING,
      words: 'a browser without the cookie, a foreign one, and an id of nobody look alike',
    },
  },
  {
    name: 'a waiting window waits for ever',
    breaks: 'A login that is over is like one of nobody (D15).',
    edits: [{ file: FLOW, find: ' && waitsUntil(pending) > now()', replace: '' }],
    caughtBy: {
      file: WAITING,
      words: 'a browser without the cookie, a foreign one, and an id of nobody look alike',
    },
  },
  {
    name: 'a waiting window goes on unverified',
    breaks: 'The window goes on once the address is verified (3.2, D15).',
    edits: [
      {
        file: FLOW,
        find: 'user.emailVerified || !settings().requireEmailVerification',
        replace: 'user.emailVerified !== undefined',
      },
    ],
    caughtBy: { file: WAITING, words: 'goes nowhere before, says so, and keeps its turn' },
  },
  {
    name: 'a waiting window goes on in each of many posts, in memory',
    breaks: 'The window goes on once (D15).',
    edits: [
      {
        file: 'src/stores/memory-pending-logins.ts',
        find: 'if (!login || login.continuedAt) return false',
        replace: 'if (!login) return false',
      },
    ],
    caughtBy: {
      file: 'test/stores/memory-store.test.ts',
      words: 'gives its one turn to one of 20 that take it at once',
      suite: 'src/contract/store-contract-logins.ts',
    },
  },
  {
    name: 'a waiting window goes on in each of many posts, on MongoDB',
    breaks: 'The window goes on once (D15).',
    edits: [
      {
        file: 'src/stores/mongodb-pending-logins.ts',
        find: '_id: text(id), continued_at: { $exists: false }, ...isWhole',
        replace: '_id: text(id), ...isWhole',
      },
    ],
    caughtBy: {
      file: 'test/stores/mongodb-store.test.ts',
      words: 'gives its one turn to one of 20 that take it at once',
      suite: 'src/contract/store-contract-logins.ts',
      store: 'mongodb',
    },
  },
  {
    name: 'a link leaves the turn of the login to the waiting window of its browser',
    breaks: 'One browser gets one code (D15).',
    edits: [{ file: ROUTE, find: 'takesTurn: true', replace: 'takesTurn: false' }],
    caughtBy: {
      file: WAITING,
      words: 'leaves its turn to the link where that is opened in the same browser',
    },
  },
  {
    name: 'a waiting window says signed in whoever is',
    breaks: 'The page says what is so (D15).',
    edits: [
      {
        file: WINDOW,
        find: 'live && live.accountId === captured?.login.accountId',
        replace: "status === 'continued'",
      },
    ],
    caughtBy: {
      file: WAITING,
      words:
        'says that it went on already, not that one is signed in, once the session is gone again',
    },
  },
  {
    name: 'a waiting window says signed in of any account',
    breaks: 'The page says what is so (D15).',
    edits: [
      {
        file: WINDOW,
        find: 'live && live.accountId === captured?.login.accountId',
        replace: 'live && live.accountId !== captured?.params',
      },
    ],
    caughtBy: {
      file: 'test/http/waiting-login-sessions.test.ts',
      words: 'says of a window that went on before that it did',
    },
  },
  {
    name: 'a changed theme keeps the address of the old one',
    breaks: 'After a change a browser loads the new style sheet (D30).',
    edits: [
      {
        file: 'src/views/assets.ts',
        find: '.update(text)',
        replace: '.update(text.slice(0, 400))',
      },
    ],
    caughtBy: {
      file: 'test/views/overriding.test.ts',
      words: 'a variable of the style sheet, in a theme after ours',
    },
  },
  {
    name: 'a waiting window goes on though its login was ended',
    breaks: 'What was ended stays ended, also in a window that waits (D9).',
    edits: [
      {
        file: FLOW,
        find: '!user || !isLoginOf(pending, user, idpAt)',
        replace: '!user || idpAt === new Date()',
      },
    ],
    caughtBy: {
      file: ENDED,
      words: 'goes nowhere once the address was verified and everything was ended',
    },
  },
  {
    name: 'a waiting window replaces the session of another account without a question',
    breaks: 'A live session of another account is never replaced silently (D16).',
    edits: [
      {
        file: WINDOW,
        find: 'isForeign && live.uid !== answer.replaces',
        replace: "isForeign && live.uid === ''",
      },
    ],
    caughtBy: {
      file: WINDOW_SESSIONS,
      words: 'asks first, names neither account, and takes no turn',
    },
  },
  {
    name: 'an answer about one session replaces another',
    breaks: 'The answer is about the session that was asked about (D16).',
    edits: [
      {
        file: WINDOW,
        find: 'isForeign && live.uid !== answer.replaces',
        replace: 'isForeign && answer.replaces === undefined',
      },
    ],
    caughtBy: {
      file: WINDOW_SESSIONS,
      words: 'asks again where a third account is signed in by the time of the answer',
    },
  },
  {
    name: 'a waiting window follows a redirect URI that was withdrawn',
    breaks: 'Client and redirect URI are looked at again when the window goes on (D12, D15).',
    edits: [
      {
        file: WINDOW,
        find: 'answer.keepsSession || !(await clients.mayFinish(captured))',
        replace: 'answer.keepsSession',
      },
    ],
    caughtBy: { file: REQUESTS, words: 'its redirect URI was withdrawn, until it is back' },
  },
  {
    name: 'a waiting window leaves a pushed request unused',
    breaks: 'A pushed request is good for one answer (D15).',
    edits: [
      {
        file: 'src/oidc/resume.ts',
        find: 'await pushed?.consume().catch(() => {})',
        replace: 'void pushed',
      },
    ],
    caughtBy: { file: REQUESTS, words: 'and uses a pushed request up where nobody else did' },
  },
  {
    name: 'a waiting window fails where a link used the pushed request up',
    breaks: 'The first window finishes whatever the link did elsewhere (D15).',
    edits: [
      {
        file: 'src/oidc/resume.ts',
        find: 'await finish(ctx, next, request)',
        replace: 'await finish(ctx, next, { ...request, ...(parJti && { parJti }) })',
      },
    ],
    caughtBy: { file: REQUESTS, words: 'though the other browser used a pushed request up' },
  },
  {
    name: 'a window is promised to go on that cannot',
    breaks: 'The page says what is so (D12, D14).',
    edits: [
      {
        file: ROUTE,
        find: 'isAwaited && captured !== undefined && (await clients.mayFinish(captured))',
        replace: 'isAwaited && captured !== undefined',
      },
    ],
    caughtBy: { file: REQUESTS, words: 'and no window is promised to go on elsewhere then' },
  },
  {
    name: 'scripts can read the cookie of the browser',
    breaks: 'The cookie is for no script (D15).',
    edits: [
      { file: COOKIE, find: 'Path=/; HttpOnly; SameSite=Lax', replace: 'Path=/; SameSite=Lax' },
    ],
    caughtBy: { file: WINDOW_SESSIONS, words: 'is for no script and no other site' },
  },
  {
    name: 'other hosts can set the cookie of the browser',
    breaks: 'The cookie is bound to its host (D15).',
    edits: [
      {
        file: COOKIE,
        find: "${isSecure ? '__Host-' : ''}account_flows_browser",
        replace: 'account_flows_browser',
      },
    ],
    caughtBy: { file: WINDOW_SESSIONS, words: 'is bound to this host over https' },
  },
  {
    name: 'the cookie outlives a login that is not to be remembered',
    breaks: 'What is not to be remembered ends with the browser (D15).',
    edits: [
      {
        file: 'src/http/login.ts',
        find: 'result.remember !== false',
        replace: 'result.remember !== null',
      },
    ],
    caughtBy: {
      file: WINDOW_SESSIONS,
      words: 'ends with the browser where the login is not to be remembered',
    },
  },
  {
    name: 'mode always does not ask the browser that logged in',
    breaks: 'In mode always each browser is asked (D14).',
    edits: [{ file: ROUTE, find: "mode === 'always' || ", replace: '' }],
    caughtBy: { file: MODES, words: 'asks the browser that logged in too' },
  },
  {
    name: 'mode other_browser does not ask',
    breaks: 'In a careful mode another browser is asked (D14).',
    edits: [
      {
        file: ROUTE,
        find: "(mode === 'other_browser' && !isFirstBrowser)",
        replace: 'isFirstBrowser === undefined',
      },
    ],
    caughtBy: {
      file: MODES,
      words: 'asks first, verifies after the button, and sends back to the first window',
    },
  },
  {
    name: 'each browser is the one that logged in',
    breaks: 'The browser that logged in is known by its cookie (D14).',
    edits: [
      {
        file: VERIFICATION,
        find: 'browser !== undefined && pending?.browserHash === hashToken(browser)',
        replace: 'pending?.browserHash !== undefined',
      },
    ],
    caughtBy: {
      file: MODES,
      words: 'asks first, verifies after the button, and sends back to the first window',
    },
  },
  {
    name: 'another browser is signed in by its button',
    breaks: 'In a careful mode another browser gets no session and no code (D14).',
    edits: [
      {
        file: ROUTE,
        find: "settings().emailLinkConfirmation !== 'off' && !link.isFirstBrowser",
        replace: 'false',
      },
    ],
    caughtBy: {
      file: MODES,
      words: 'asks first, verifies after the button, and sends back to the first window',
    },
  },
  {
    name: 'a form that is sent without its button confirms',
    breaks: 'Nothing is confirmed that nobody pressed (D14).',
    edits: [
      { file: PERSON, find: "if (!form.has('action')) return false", replace: '' },
      {
        file: ROUTE,
        find: "if (!isAnswer && action !== 'confirm')",
        replace: "if (!isAnswer && action !== 'confirm' && action !== undefined)",
      },
    ],
    caughtBy: {
      file: MODES,
      words: 'is not moved by scanners that fetch, render, or send the form by script',
    },
  },
  {
    name: 'a button that a script pressed confirms',
    breaks: 'A script is no person (D14).',
    edits: [
      {
        file: PERSON,
        find: "return ctx.get('Sec-Fetch-Site') === '' || ctx.get('Sec-Fetch-User') === '?1'",
        replace: 'return true',
      },
    ],
    caughtBy: {
      file: MODES,
      words: 'is not moved by scanners that fetch, render, or send the form by script',
    },
  },
  {
    name: 'an answer that names any session is taken for a person',
    breaks: 'Only whoever was asked about a session can name it (D14, D16).',
    edits: [
      {
        file: ROUTE,
        find: 'return session !== undefined && (await resume.liveSession(ctx))?.uid === session',
        replace: 'return session !== undefined',
      },
    ],
    caughtBy: { file: MODES, words: 'takes one tick, where it asks about another account too' },
  },
]
