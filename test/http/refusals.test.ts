/**
 * Every refusal of the pages for browsers. A new one is a line of a table.
 *
 * Others are where what they need is: links that are over in `reset-password.test.ts` and `accept-invitation.test.ts`,
 * forms over a limit in `limits.test.ts`, and every way to send a form that is none in `test/attacks/bad-forms.ts`.
 *
 * @module
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import type { Log } from '../../src/index.ts'
import { startExampleServer } from '../support/example-server.ts'
import { expectPage, createUserAgent, type Answer } from '../support/user-agent.ts'
import { ADMIN_TOKEN, suiteHarness } from '../support/harness.ts'
import { sha256, shapeOf } from '../support/observe.ts'
import { tokenOf, wrongCode, type Person } from '../support/person.ts'
import { FORM } from '../support/raw-request.ts'
import { expectTitle } from '../support/words.ts'

type Bytes = Buffer<ArrayBuffer>

/** What the mails and pages of honest people hold, by name. */
type Held = Record<string, string>

/** A form, or `GET` and what stands behind the path. `{reset}` and the like stand for what somebody holds, `{honest}` for their whole form. */
type Sent = string | Bytes | ((held: Held) => string)

type Refusal = [
  title: string,
  sent: Sent,
  /** Status, page and mode, and the reason where the page gives one. */
  back: string,
  headers?: Record<string, string>,
]

const NEW = 'a new password'
const UNKNOWN = 'A'.repeat(43)
const LARGE = 'x='.padEnd(65_537, 'x')
const UNREADABLE = '400 error bad_request'
const UNREAD = '415 error unsupported_media_type'
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36'
const SCRIPT = { 'sec-fetch-site': 'same-origin', 'user-agent': CHROME }
const PRESSED = { ...SCRIPT, 'sec-fetch-user': '?1' }

/** Inflates past every limit, and then breaks: a decompressor that goes on reading fails where nobody listens. */
const BOMB = Buffer.concat([
  gzipSync(Buffer.alloc(81_921, 'a')).subarray(0, -8),
  Buffer.alloc(64, 255),
])
const ZIPPED = gzipSync('identifier=fay')

const COMPRESSED: [title: string, body: Bytes, encoding: string][] = [
  ['gzip that breaks after the limit', BOMB, 'gzip'],
  ['gzip of a good form', ZIPPED, 'gzip'],
  ['text that says it is gzip', Buffer.from('identifier=fay'), 'gzip'],
  ['text that says it is br', Buffer.from('identifier=fay'), 'br'],
  ['gzip cut short', ZIPPED.subarray(0, 12), 'deflate'],
]

/** What every form refuses. */
const BY_EVERY_FORM: Refusal[] = [
  ['a form that another site posts (HDR-04)', '{honest}', '403 error refused', { origin: 'null' }],
  ['a field that comes twice', '{honest}&state=a&state=b', UNREADABLE],
  ['an escape that is none', '{honest}&state=%zz', UNREADABLE],
  ['more than 64 KiB', `{honest}&${LARGE}`, '413 error body_too_large'],
  ['JSON', '{"token":"{reset}"}', UNREAD, { 'content-type': 'application/json' }],
  ['a form that says text', '{honest}', UNREAD, { 'content-type': 'text/plain' }],
  ...COMPRESSED.map(([title, body, encoding]): Refusal => {
    return [title, body, UNREAD, { 'content-encoding': encoding }]
  }),
]

/** What is no token, though it may look like one, or be close to a genuine one. */
const NO_TOKENS: [title: string, change: (token: string) => string][] = [
  ['a token that was never mailed (TOK-04, TOK-05, TOK-21)', () => UNKNOWN],
  ['an empty token', () => ''],
  ['a blank', () => ' '],
  ['null', () => 'null'],
  ['undefined', () => 'undefined'],
  ['an operator as text (INJ-01)', () => '{"$ne":""}'],
  ['a token that lacks a character', (token) => token.slice(0, -1)],
  ['a token with one more', (token) => `${token}A`],
  ['a token in the other case', inOtherCase],
  ['another spelling of the same bytes', otherSpelling],
  ['the hash of a token', sha256],
  ['10,000 characters', (token) => token.padEnd(10_000, 'A')],
]

/** In an address these are mended. In a form nobody writes them. */
const CHANGED_TOKENS: typeof NO_TOKENS = [
  ...['=', '\n', '\0', '>.'].map((end): (typeof NO_TOKENS)[number] => {
    return [`a token with ${JSON.stringify(end)} behind it`, (token) => token + end]
  }),
  ['a wrapped token', (token) => `${token.slice(0, 20)}\r\n ${token.slice(20)}`],
  ['a token with a blank before it', (token) => ` ${token}`],
]

function inOtherCase(token: string): string {
  return token.replace(/[a-z]/gi, (c) => (c < 'a' ? c.toLowerCase() : c.toUpperCase()))
}

/** The last character of 43 has two bits that decode to nothing. */
function otherSpelling(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1) ?? '') ^ 1]
}

/** All of those, in the place of that token; for the other kinds they say the same once more. */
function noTokens(name: string, back: string, more = ''): Refusal[] {
  return [...NO_TOKENS, ...CHANGED_TOKENS].map(([title, change]) => [
    name === 'reset' ? title : `${title} [full]`,
    (held) => `${new URLSearchParams({ token: change(held[name] ?? '') })}${more}`,
    back,
  ])
}

function noTokensInUrl(name: string, back: string): Refusal[] {
  return NO_TOKENS.map(([title, change]) => [
    `${title}, in the address${name === 'reset' ? '' : ' [full]'}`,
    (held) => `GET ?${new URLSearchParams({ token: change(held[name] ?? '') })}`,
    back,
  ])
}

const typed = (password: string, confirm_password = password) =>
  `&${new URLSearchParams({ password, confirm_password })}`

const NO_RESET = '400 reset-password invalid unknown'
const NO_INVITATION = '400 accept-invitation invalid unknown'
const NO_VERIFICATION = '400 verify-email expired unknown'
const NO_BUTTON = '400 not-me invalid unknown'

const REFUSALS = {
  'forgot-password': [
    ['no name', 'x=1', '400 forgot-password invalid'],
    ['an empty name', 'identifier=', '400 forgot-password invalid'],
    ['NUL in the name', 'identifier=fay%00', UNREADABLE],
    ['two names', 'identifier=fay&identifier=mallory', UNREADABLE],
    ['two in brackets (INJ-03)', 'identifier[]=fay&identifier[]=a@b.example', UNREADABLE],
    ['an old token that comes twice', 'token={expired}&token={expired}', UNREADABLE],
    ['an old token in brackets', 'token[]={expired}', '400 forgot-password invalid'],
    ['an old token beside a name', 'token={expired}&identifier=', '400 forgot-password invalid'],
    ['an old token from elsewhere', 'token={expired}', '403 error refused', { origin: 'null' }],
    ['the token of an invitation (TOK-14)', 'token={invitation}', NO_RESET],
    ['the token of "This wasn’t me" (NOT-05)', 'token={notMe}', NO_RESET],
    ...noTokens('expired', NO_RESET),
  ],

  'resend-verification': [
    ['no name', 'x=1', '400 verify-email invalid'],
    ['an empty name', 'username=', '400 verify-email invalid'],
    ['NUL in the name', 'username=ron%00', UNREADABLE],
    ['two names', 'username=ron&username=fay', UNREADABLE],
  ],

  // That the link still opens the form shows that its token is not spent.
  'reset-password': [
    ['the token of a verification (TOK-14)', `{verification}${typed(NEW)}`, NO_RESET],
    ['the link of a verification (TOK-14)', 'GET ?{verification}', NO_RESET],
    ['the token of an invitation (TOK-14)', `token={invitation}${typed(NEW)}`, NO_RESET],
    ['the link of an invitation (TOK-14)', 'GET ?token={invitation}', NO_RESET],
    ['the token of "This wasn’t me" (NOT-05)', 'GET ?token={notMe}', NO_RESET],
    ['the token in the path (LINK-12)', 'GET /{reset}?token={reset}', '404'],
    ['the token behind the name of a file (LINK-12)', 'GET /x.css?token={reset}', '404'],
    ['the token behind a slash (LINK-12)', 'GET /?token={reset}', '404'],
    ...noTokens('reset', NO_RESET, typed(NEW)),
    ...noTokensInUrl('reset', NO_RESET),
    ...passwords('reset', 'reset-password'),
  ],

  'accept-invitation': [
    ['the token of a reset (TOK-14)', `token={reset}${typed(NEW)}`, NO_INVITATION],
    ['the link of a reset (TOK-14)', 'GET ?token={reset}', NO_INVITATION],
    ['a reset as one to renew (TOK-14)', 'token={reset}&action=renew', NO_INVITATION],
    ['the token of "This wasn’t me" (NOT-05)', 'GET ?token={notMe}', NO_INVITATION],
    ...noTokens('invitation', NO_INVITATION, typed(NEW)),
    ...noTokensInUrl('invitation', NO_INVITATION),
    ...passwords('invitation', 'accept-invitation'),
  ],

  'verify-email': [
    ['the token of a reset (TOK-14)', 'GET ?token={reset}', NO_VERIFICATION],
    ['a reset in a signed link (TOK-14)', inSignedLink, NO_VERIFICATION],
    ['the token of an invitation (TOK-14)', 'GET ?token={invitation}', NO_VERIFICATION],
    ['the token of "This wasn’t me" (NOT-05)', 'GET ?token={notMe}', NO_VERIFICATION],
    ['no token', 'GET ', NO_VERIFICATION],
    ['a form', '{honest}', '405 error method_not_allowed'],
  ],

  'verify-email/waiting': [
    ['no login', 'code={code}', '400 verify-email ended'],
    ['an unknown login', `login=${'A'.repeat(22)}&code={code}`, '400 verify-email ended'],
    ['another code', 'login={login}&code={wrong}', '400 verify-email blocked'],
    ['a code that is none', 'login={login}&code=abc', '400 verify-email blocked'],
    ['two codes', 'login={login}&code={code}&code={wrong}', UNREADABLE],
  ],

  'not-me': [
    ['the token of a reset (NOT-05)', 'token={reset}&action=confirm', NO_BUTTON],
    ['the press of a script (NOT-02)', '{honest}', '400 not-me confirm', SCRIPT],
    ['a form without its button (NOT-02)', 'token={notMe}', '400 not-me confirm', PRESSED],
    ...noTokens('notMe', NO_BUTTON, '&action=confirm'),
    ...noTokensInUrl('notMe', NO_BUTTON),
  ],
} satisfies Record<string, Refusal[]>

const PATHS = Object.keys(REFUSALS) as (keyof typeof REFUSALS)[]

interface Honest {
  form: string
  waits(): Promise<unknown>
  works(): Promise<unknown>
}

/** All that a password can be that is none is in `test/crypto/passwords.test.ts`. */
function passwords(name: string, page: string): Refusal[] {
  const faults: [title: string, fields: string, mode: string][] = [
    ['passwords that differ (TOK-12)', typed(NEW, 'another password'), 'password_mismatch'],
    [
      'letters that are composed otherwise',
      typed('p\u00F6rterpass', 'po\u0308rterpass'),
      'password_mismatch',
    ],
    ['no confirmation', '&password=a+new+password', 'password_mismatch'],
    ['no passwords', '', 'password_too_short'],
    ['7 characters', typed('a'.repeat(7)), 'password_too_short'],
    ['101 characters', typed('a'.repeat(101)), 'password_too_long'],
    ['65 characters', typed('a'.repeat(65)), 'password_too_long'],
    [
      '73 bytes in 37 characters (PWD-01, PWD-02)',
      typed(`${'é'.repeat(36)}a`),
      'password_too_long',
    ],
    ['NUL (PWD-03)', typed('a new\0password'), 'password_invalid'],
  ]
  return faults.map(([title, fields, mode]) => {
    return [title, `token={${name}}${fields}`, `400 ${page} ${mode}`]
  })
}

function inSignedLink({ verification = '', reset = '' }: Held): string {
  return `GET ?${verification.replace(/(token=)[\w-]+/, `$1${reset}`)}`
}

describe('Refusals: nothing changes, and the honest request still works', () => {
  const h = suiteHarness()
  const people = {} as Record<'fay' | 'ann' | 'ron' | 'una' | 'wim' | 'ivo' | 'nan' | 'old', Person>
  const held: Held = {}
  /** What a page says of a token that was never mailed. */
  const unknown: Record<string, ReturnType<typeof shapeOf>> = {}

  before(async () => {
    const { user: old, link: expired } = await h.userWithLink()
    await h.later(3_600_000)
    const { user: ann, link: reset } = await h.userWithLink()
    const { user: nan } = await h.userWithLink()
    const [una, wim] = [await h.blockedLogin(), await h.blockedLogin()]
    const ivo = await h.addImported()
    const [fay, ron] = [
      await h.addVerified({ username: 'fay' }),
      await h.addUnverified({ username: 'ron' }),
    ]
    Object.assign(people, { fay, ann, ron, una, wim, ivo, nan, old })
    Object.assign(held, {
      expired: tokenOf(expired),
      reset: tokenOf(reset),
      invitation: tokenOf(await ivo.isInvited()),
      notMe: tokenOf(await nan.notMeLink()),
      verification: new URL(una.link).search.slice(1),
      login: wim.loginId(),
      code: wim.code,
      wrong: wrongCode(wim.code),
    })
  })

  /** By path: an honest form; what it shows that a refusal spent nothing; and the work that is done in the end. */
  const honest: Record<keyof typeof REFUSALS, Honest> = {
    'forgot-password': {
      form: 'identifier=fay',
      waits: () => people.fay.forgets(),
      works: () => people.fay.getsBackIn(),
    },
    'resend-verification': {
      form: 'username=ron',
      // Of strangers a mailbox gets few mails a day.
      waits: async () => (await h.addUnverified()).asksAgain(),
      async works() {
        await people.ron.asksAgain()
        await people.ron.isOnlyVerified(await people.ron.opensLink())
      },
    },
    'reset-password': {
      form: `token={reset}${typed(NEW)}`,
      waits: () => opens('reset-password', 'reset', 'form'),
      works: () => sets(people.ann),
    },
    'accept-invitation': {
      form: `token={invitation}${typed(NEW)}`,
      waits: () => opens('accept-invitation', 'invitation', 'form'),
      works: () => sets(people.ivo),
    },
    'verify-email': {
      form: '{verification}',
      waits: async () => {
        const ahead = await createUserAgent().get(people.una.link, { purpose: 'prefetch' })
        expect(ahead.hidden).to.include({ token: tokenOf(people.una.link) })
      },
      works: () => people.una.stillGetsIn(),
    },
    'verify-email/waiting': {
      form: 'login={login}&code={code}',
      waits: async () => expectPage(await people.wim.reloads(), 200, 'verify-email', 'blocked'),
      works: async () => people.wim.comesBack(await people.wim.types()),
    },
    'not-me': {
      form: 'token={notMe}&action=confirm',
      waits: () => opens('not-me', 'notMe', 'confirm'),
      works: async () => {
        const form = { token: held['notMe'] ?? '', action: 'confirm' }
        const answer = await createUserAgent().post(`${h.oauthUrl}/not-me`, form, PRESSED)
        expectPage(answer, 200, 'not-me', 'stopped')
      },
    },
  }

  async function opens(page: string, name: string, mode: string) {
    const answer = await createUserAgent().get(`${h.oauthUrl}/${page}?token=${held[name]}`)
    expectPage(answer, 200, page, mode)
  }

  async function sets(person: Person) {
    expect((await person.choosesPassword(NEW)).mode).to.equal('done')
    expect(await person.hasPassword(NEW)).to.equal(true)
  }

  function filled(sent: Sent, form: string): string | Bytes {
    if (Buffer.isBuffer(sent)) return sent
    const text = typeof sent === 'string' ? sent.replace('{honest}', form) : sent(held)
    return text.replaceAll(/\{(\w+)\}/g, (_all, name: string) => held[name] ?? '')
  }

  async function send(path: string, sent: string | Bytes, headers = {}): Promise<Answer> {
    const url = `${h.oauthUrl}/${path}`
    const { agent } = path === 'verify-email/waiting' ? people.wim : { agent: createUserAgent() }
    if (typeof sent === 'string' && sent.startsWith('GET ')) return agent.get(url + sent.slice(4))
    const init = { headers: { 'content-type': FORM, ...headers }, body: sent }
    return agent.request('POST', url, init)
  }

  const accounts = () => Promise.all(Object.values(people).map(({ id }) => h.users.findById(id)))
  const done = () => h.events.filter(({ type }) => /completed|ended|reported/.test(type)).length

  function expectRefused(answer: Answer, back: string) {
    const [status, page, mode = '', reason] = back.split(' ')
    const got = [answer.status, answer.page, answer.mode].filter((each) => each !== undefined)
    expect(got.join(' '), answer.text).to.equal([status, page, mode].join(' ').trim())
    expect(answer.headers.getSetCookie()).to.deep.equal([])
    if (mode.startsWith('password_')) expectFormAgain(answer, mode)
    else expect(answer.text).not.to.include('name="password"')
    if (mode === 'confirm') expect(answer.text).to.include('role="alert"')
    if (!page || !reason) return
    const words = page.replace('accept-invitation', 'reset-password')
    if (page !== 'not-me') expectTitle(answer, `${words}.${mode}.${reason}.title`)
    expect(shapeOf(answer), 'alike').to.deep.equal((unknown[page] ??= shapeOf(answer)))
  }

  /** The form with the token and without the passwords, and what is wrong beside its field. */
  function expectFormAgain({ text, hidden }: Answer, mode: string) {
    const field = mode === 'password_mismatch' ? 'confirm_password' : 'password'
    expect(text).to.match(new RegExp(`class="hint fault" id="${field}-hint"`))
    const inputs = text.match(/<input[^>]* type="password"[^>]*>/g) ?? []
    expect(inputs).to.have.length(2)
    for (const input of inputs) expect(input).not.to.include('value=')
    expect(hidden['token']).to.be.oneOf([held['reset'], held['invitation']])
  }

  for (const path of PATHS) {
    const rows = path === 'verify-email' ? REFUSALS[path] : [...REFUSALS[path], ...BY_EVERY_FORM]
    describe(path, () => {
      for (const [title, sent, back, headers] of rows) {
        it(`refuses ${title}`, async () => {
          const { form, waits } = honest[path]
          const [before, events] = [await accounts(), done()]
          await h.withoutJobs(async () =>
            expectRefused(await send(path, filled(sent, form), headers), back),
          )
          expect(await accounts()).to.deep.equal(before)
          expect(done()).to.equal(events)
          await waits()
        })
      }

      it('does its work for the honest request after all of that', () => honest[path].works())
    })
  }
})

/** After three good characters; `undefined`: the connection is reset. */
const ENDS = {
  'a chunk without a size': 'zz\r\n',
  'a chunk of another size': '5\r\nabcdefg',
  'a chunk cut off': '5\r\nab',
  'a client that hangs up': undefined,
}

const postTo = (path: string) => `POST /oauth2/${path} HTTP/1.1\r\ncontent-type: ${FORM}`
const headsWith = (token: string) => ({
  'a form page': postTo('forgot-password'),
  'the admin API': `PUT /admin/api/settings HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer ${token}`,
})

/** What the first line of the answer is. */
async function expectBreakIsRefused(port: number, head: string, end: string | undefined) {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  const begun = `${head}\r\nhost: localhost:${port}\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n`
  socket.write(`${begun}3\r\nabc\r\n`)
  // The server has the head now, and reads on.
  await once(socket, 'data')
  answer = ''
  if (end === undefined) socket.resetAndDestroy()
  else socket.end(end)
  await closed
  expect(answer.split('\r\n')[0]).to.equal(end === undefined ? '' : 'HTTP/1.1 400 Bad Request')
}

describe('A body that the client breaks', () => {
  const logged: Parameters<Log>[] = []
  const h = suiteHarness({
    flows: { log: (...line) => logged.push(line) },
    host(parts) {
      // Koa prints it otherwise.
      Reflect.set(parts.provider, 'silent', true)
      return nodeHttpHost(parts)
    },
  })
  const port = () => Number(new URL(h.baseUrl).port)

  afterEach(async () => {
    expect((await h.forgot('alice')).mode).to.equal('sent')
    expect(logged.filter(([level]) => level === 'error')).to.deep.equal([])
  })

  for (const [where, head] of Object.entries(headsWith(ADMIN_TOKEN))) {
    for (const [what, end] of Object.entries(ENDS)) {
      it(`is refused by ${where}, and is no error of ours: ${what}`, () =>
        expectBreakIsRefused(port(), head, end))
    }
  }

  it('is no error of ours either where it breaks before anybody reads it', async () => {
    for (const head of Object.values(headsWith(ADMIN_TOKEN))) {
      const socket = connect(port(), '127.0.0.1')
      socket.resume().on('error', () => {})
      socket.end(`${head}\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`)
      await once(socket, 'close')
    }
  })

  it('or that is compressed is refused by the admin API with a problem document', async () => {
    for (const [title, body, encoding] of COMPRESSED) {
      const answer = await fetch(`${h.baseUrl}/admin/api/settings`, {
        method: 'PUT',
        headers: {
          'content-type': 'application/json',
          'content-encoding': encoding,
          authorization: `Bearer ${ADMIN_TOKEN}`,
        },
        body,
      })
      expect(answer.status, title).to.equal(415)
      expect(answer.headers.get('content-type')).to.match(/^application\/problem\+json/)
    }
  })

  it('or that is compressed does not end the example server either, nor is it an error in its log [full]', async () => {
    const server = await startExampleServer()
    try {
      const { adminToken } = server
      const heads = Object.values(headsWith(adminToken))
      for (const head of [...heads, postTo('login'), postTo('token')])
        for (const end of Object.values(ENDS)) await expectBreakIsRefused(server.port, head, end)
      for (const path of ['forgot-password', 'login', 'login/consent']) {
        for (const [title, body, encoding] of COMPRESSED) {
          const headers = { 'content-type': FORM, 'content-encoding': encoding }
          const url = `${server.baseUrl}/oauth2/${path}`
          const answer = await fetch(url, { method: 'POST', headers, body })
          expect(answer.status, `${path} ${title}`).to.equal(415)
        }
      }
      expect((await fetch(`${server.baseUrl}/oauth2/forgot-password`)).status).to.equal(200)
    } finally {
      await server.stop()
    }
    expect(server.output()).not.to.include('"level":"error"')
  })
})
