/**
 * People with an account at a service: what they do, and what it led to.
 *
 * @module
 */
import type { RecordStore } from '../../src/store/record-store.ts'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import type { AccountFlowsStore } from '../../src/store/index.ts'
import type { AccountFlows, AuditEvent, AuditEventType, User, UserStore } from '../../src/index.ts'
import { eventually } from './eventually.ts'
import {
  expectPage,
  formsOf,
  press,
  type Pressed,
  createUserAgent,
  type Answer,
  type UserAgent,
} from './user-agent.ts'
import { isIdle, later, withoutJobs } from './jobs.ts'
import type { MailServer, ReceivedMail } from './mail-server.ts'
import type { AuthorizationRequest, RelyingParty } from './relying-party.ts'

export const PASSWORD = 'correct horse battery'
/** What a host may write into the record of a user that was not reset by us. */
export const OTHER_HASH = '$2b$04$CCCCCCCCCCCCCCCCCCCCC.E7iYKmz3HnBJeEDbgBwEjVHZJRxEVVu'

/** The service that people have their account at: a harness. */
export interface Service {
  /** Issuer, and where the endpoints are. */
  oauthUrl: string
  flows: AccountFlows
  /** What they keep, and the records that they keep it in. */
  store: AccountFlowsStore
  records: RecordStore
  users: UserStore
  mail: MailServer
  events: AuditEvent[]
  party: RelyingParty
  addUser(user: Partial<User> & { username: string }): Promise<Person>
  /** What the host itself does to a user, past the flows. */
  changeUser(user: User, changes: Partial<User>): Promise<void>
  deleteUser(user: User): Promise<void>
  /** Follows our redirects to the next page, or back to the client. */
  follow(agent: UserAgent, answer: Answer): Promise<Answer>
}

/** One person at one browser without scripts. The same sentences in Chromium: `test/browser/person-in-chromium.ts`. */
export interface Person extends ReturnType<typeof personAt> {}

const NOTHING: Answer = {
  status: 0,
  headers: new Headers(),
  text: '',
  location: undefined,
  page: undefined,
  mode: undefined,
  hidden: {},
  url: 'about:blank',
}

/** The browser is theirs alone unless one is given. */
export function personAt(h: Service, user: User, agent = createUserAgent()) {
  const { oauthUrl } = h
  const request: AuthorizationRequest = {
    url: new URL(oauthUrl),
    redirectUri: '',
    codeVerifier: '',
    state: '',
    nonce: '',
  }
  const address = user.email ?? ''
  const show = async (answer: Promise<Answer>): Promise<Answer> => (person.page = await answer)
  const waiting = `${oauthUrl}/verify-email/waiting`
  const loginId = (): string => {
    const id = person.blocked.hidden['login'] ?? ''
    expect(id).to.match(/^[\w-]{22}$/)
    return id
  }
  const start = async (
    parameters: Record<string, string>,
    send: NonNullable<Waiting['send']> = ({ url }) => url,
  ): Promise<Answer> => {
    const begun = await person.party.begin(parameters)
    person.request = { ...begun, state: parameters['state'] ?? begun.state }
    return show(h.follow(person.agent, await person.agent.get(await send(person.request))))
  }
  const read = async (count: number): Promise<string> => {
    const { link, mail } = await h.mail.mailTo(address, count)
    await isIdle(h)
    Object.assign(person, { link, code: codeIn(mail) ?? '' })
    return link
  }

  const person = {
    ...user,
    agent,
    party: h.party,
    /** What the browser shows. */
    page: NOTHING,
    /** The last one that the app sent the browser with. */
    request,
    /** Of the newest mail that they read: `blockedLogin`, `forgets` and `asksAgain` read theirs. */
    link: '',
    code: '',
    /** The page in mode `blocked`, for one whose login waits, and the uid of the provider's interaction. */
    blocked: NOTHING,
    interaction: '',

    /** Comes from the app: to the login page, or straight back. */
    starts: (parameters: Record<string, string> = {}): Promise<Answer> => start(parameters),

    /** Comes from the app and types the credentials; the login waits, and its mail is read. */
    async isBlocked({ party, extra = {}, send }: Waiting = {}): Promise<void> {
      const before = person.mailCount()
      person.party = party ?? person.party
      const login = await start(extra, send)
      expect(login.page).to.equal('login')
      person.interaction = new URL(login.url).searchParams.get('interaction') ?? ''
      const form = { username: user.username, password: PASSWORD }
      person.blocked = await show(person.agent.post(`${oauthUrl}/login`, form))
      await person.sees('verify-email', 'blocked')
      await read(before + 1)
    },

    async signsIn(password = PASSWORD, parameters = {}): Promise<Answer> {
      const { page, hidden } = await person.starts(parameters)
      if (page !== 'login') return person.page
      const form = { ...hidden, username: user.username, password }
      return show(h.follow(person.agent, await person.agent.post(`${oauthUrl}/login`, form)))
    },

    async forgets(parameters: Record<string, string> = {}): Promise<string> {
      const before = person.mailCount()
      const form = { identifier: user.username, ...parameters }
      await createUserAgent().post(`${oauthUrl}/forgot-password`, form)
      return read(before + 1)
    },

    /** Asks for a new verification link, from nowhere, and has it in the mail (4.7). */
    async asksAgain(parameters: Record<string, string> = {}): Promise<string> {
      const before = person.mailCount()
      const form = { username: user.username, ...parameters }
      const answer = await createUserAgent().post(`${oauthUrl}/resend-verification`, form)
      expectPage(answer, 200, 'verify-email', 'sent')
      return read(before + 1)
    },

    /** Follows no redirect. */
    opensLink: (link?: string): Promise<Answer> => show(person.agent.get(link ?? person.link)),
    /** Opens it in a browser of its own, as on a telephone. */
    opensElsewhere: (link?: string): Promise<Answer> => createUserAgent().get(link ?? person.link),
    types: (code?: string, headers = {}): Promise<Answer> =>
      person.goesOn({ code: code ?? person.code }, headers),

    choosesPassword(password: string, link?: string, confirm = password): Promise<Answer> {
      const { href } = new URL(link ?? person.link)
      const form = resetForm(href, password, confirm)
      return show(person.agent.post(href.split('?')[0] ?? '', form))
    },

    /** Presses the button of the form to that path, on the page that the browser shows. */
    presses: (path: string, pressed?: Pressed): Promise<Answer> =>
      show(press(person.agent, person.page, path, pressed)),
    /** Asks for another verification link with the form on the page that the browser shows, and types the name where it asks for that. */
    async sendsForm(): Promise<void> {
      const path = '/resend-verification'
      const form = formsOf(person.page).find(({ action }) => action.endsWith(path))
      const typed = form && 'username' in form.fields ? { username: user.username } : {}
      await person.presses(path, { typed })
      await person.sees('verify-email', 'sent')
    },
    /** The name of the login that waits. */
    loginId,
    /** The page of the login that waits, after a reload. */
    reloads: (): Promise<Answer> => show(person.agent.get(`${waiting}?login=${loginId()}`)),
    /** Posts the form of the login that waits: without more, "Continue". */
    goesOn: (more: Record<string, string> = {}, headers = {}): Promise<Answer> =>
      show(person.agent.post(waiting, { login: loginId(), ...more }, headers)),

    async sees(page: string, mode: string, status = 200): Promise<void> {
      expectPage(person.page, status, page, mode)
    },

    /** The same person in another browser; a new one by default. */
    in(other = createUserAgent()): Person {
      const { party, request: same, blocked, link, code } = person
      const others = { party, request: same, blocked, link, code }
      return Object.assign(personAt(h, user, other), others)
    },

    /** What the host or an admin does to the account, past the flows. */
    becomes: (changes: Partial<User>) => h.changeUser(user, changes),
    isDeleted: () => h.deleteUser(user),

    /** Invites them, and answers the link of that mail. */
    async isInvited(parameters: Parameters<AccountFlows['invite']>[1] = {}): Promise<string> {
      const before = person.mailCount()
      expect(await h.flows.invite(user, parameters)).to.have.keys('mailId')
      return read(before + 1)
    },

    /** The host gives them another address, and tells the flows. */
    async movesTo(email: string): ReturnType<AccountFlows['emailChanged']> {
      await person.becomes({ email, emailVerified: false })
      return h.flows.emailChanged(user.id, user)
    },

    mailCount: (): number => h.mail.mails.filter(({ to }) => to.includes(address)).length,
    /** The newest mail, or the one with that number, from 1; waits for it. */
    mail: (count?: number): Promise<ReceivedMail> =>
      h.mail.mailTo(address, count ?? person.mailCount()),
    /** The address behind "This wasn't me", of the newest mail. */
    notMeLink: async (): Promise<string> => notMeOf(await person.mail()),
    isVerified: async () => (await h.users.findById(user.id))?.emailVerified === true,

    async hasPassword(password: string) {
      const stored = await h.users.findById(user.id)
      return bcrypt.compare(password, stored?.passwordHash ?? '')
    },

    /** The account that this browser is signed in with, as a client learns it. `undefined`: none. */
    account: (): Promise<string | undefined> => accountOf(person.party, person.agent),

    /** What the audit log has of that type so far. */
    events: <Type extends AuditEventType>(type: Type, reason?: string) =>
      h.events.filter(
        (event): event is AuditEvent & { type: Type } =>
          event.type === type &&
          event.accountId === user.id &&
          (reason === undefined || event.reason === reason),
      ),

    /** One 302 to the app with code, state and iss, and nothing of the link (4.6); the address is verified. Answers the tokens. */
    async comesBack(answer?: Answer): ReturnType<RelyingParty['exchange']> {
      const { status, text, location: to = '' } = answer ?? person.page
      expect(status, text).to.equal(302)
      const location = new URL(to)
      expect(location.href.split('?')[0]).to.equal(person.request.redirectUri)
      expect([...location.searchParams.keys()].toSorted()).to.deep.equal(['code', 'iss', 'state'])
      expect(location.searchParams.get('state')).to.equal(person.request.state)
      expect(location.searchParams.get('iss')).to.equal(oauthUrl)
      if (person.link) expect(location.href).to.not.include(tokenOf(person.link))
      expect(await person.isVerified()).to.equal(true)
      const tokens = await person.party.exchange(person.request, location.href)
      expect(tokens.claims()?.sub).to.equal(user.id)
      return tokens
    },

    /** No session, no code, and the address is not verified. */
    async getsNothing(answer?: Answer): Promise<void> {
      expectNoSession(h, person.agent, answer ?? person.page)
      expect(await person.isVerified()).to.equal(false)
    },

    /** Verified, and that is all: no session and no code. */
    async isOnlyVerified(answer?: Answer): Promise<void> {
      expectPage(answer ?? person.page, 200, 'verify-email', 'verified')
      expectNoSession(h, person.agent, answer ?? person.page)
      expect(await person.isVerified()).to.equal(true)
    },

    /** The link as it was mailed still does all of its work: nothing of it was spent. */
    async stillGetsIn(): Promise<void> {
      await person.comesBack(await person.opensLink())
    },

    /** A new reset link works. */
    async getsBackIn(password = 'an honest password'): Promise<void> {
      const { mode } = await person.in().choosesPassword(password, await person.forgets())
      expect(mode).to.equal('done')
      expect(await person.hasPassword(password)).to.equal(true)
    },
  }
  return person
}

/** How a login is brought to wait. */
export interface Waiting {
  party?: RelyingParty
  /** Parameters of the authorization request. */
  extra?: Record<string, string>
  /** Changes the address that the browser is sent to. */
  send?: (request: AuthorizationRequest) => URL | Promise<URL>
}

export interface WaitingOptions extends Waiting {
  user?: Person
  agent?: UserAgent
}

let named = 0

/** What suites ask of their harness most. */
export function atHand(h: Service) {
  /** A user whom no other test has. */
  function addUnverified(more: Partial<User> = {}): Promise<Person> {
    named += 1
    return h.addUser({ username: `person-${named}`, emailVerified: false, ...more })
  }
  const addVerified = (more: Partial<User> = {}) => addUnverified({ emailVerified: true, ...more })

  return {
    addUnverified,
    addVerified,

    /** Somebody who is signed in, in this browser in place of whoever was there; in a new one by default. */
    async addSignedIn(agent?: UserAgent): Promise<Person> {
      const person = (await addVerified()).in(agent)
      const { location } = await person.signsIn(PASSWORD, { prompt: 'login' })
      expect(location).to.match(/[?&]code=/)
      return person
    },

    /** A user without a password, whose address nobody verified. */
    addImported: (more: Partial<User> = {}) => addUnverified({ passwordHash: undefined, ...more }),

    /** A user, and the reset link in their mail. */
    async userWithLink(more: Partial<User> = {}, parameters: Record<string, string> = {}) {
      const user = await addVerified(more)
      return { user, link: await user.forgets(parameters) }
    },

    /** A person whose login waits for its verification link (3.2); a new one, unless one is given. */
    async blockedLogin({ user, agent, party = h.party, ...options }: WaitingOptions = {}) {
      const person = (user ?? (await addUnverified())).in(agent)
      await person.isBlocked({ party, ...options })
      return person
    },

    accountOf: (agent: UserAgent) => accountOf(h.party, agent),

    /** The value of the browser's session cookie, which is the id of the session. */
    sessionId: (agent: UserAgent) => sessionId(h, agent),

    /** Asks with `prompt=none`: the answer's parameters at the client. */
    async silently(agent: UserAgent): Promise<URLSearchParams> {
      const { url } = await h.party.begin({ prompt: 'none' })
      return new URL((await agent.get(url)).location ?? 'none:').searchParams
    },

    eventsOf: <Type extends AuditEventType>(type: Type) =>
      h.events.filter((event): event is AuditEvent & { type: Type } => event.type === type),

    isIdle: () => isIdle(h),
    /** So much later; a mail that is still under way would be sent again. */
    later: (ms: number) => later(h, ms),
    withoutJobs: <T>(work: () => Promise<T>) => withoutJobs(h, work),
  }
}

/** Of the page that a reset link opens. */
export const resetForm = (link: string, password: string, confirm = password) => ({
  token: tokenOf(link),
  password,
  confirm_password: confirm,
})

export function tokenOf(link: string): string {
  return new URL(link).searchParams.get('token') ?? ''
}

/** The code in the text of a mail. `undefined`: it has none. */
export function codeIn({ text }: { text?: string | undefined }): string | undefined {
  return /^\d{6}$/m.exec(text ?? '')?.[0]
}

/** The code on the page of a link that was opened elsewhere. `undefined`: it shows none. */
export function codeOn({ text }: Answer): string | undefined {
  return /data-code="(\d{6})"[^>]*>\1</.exec(text)?.[1]
}

/** Another code than that. */
export function wrongCode(right: string, guess = 0): string {
  return String((Number(right) + 1 + guess) % 1_000_000).padStart(6, '0')
}

export function notMeOf({ mail }: ReceivedMail): string {
  return /https?:\/\/\S+\/not-me\?\S+/.exec(mail.text ?? '')?.[0] ?? ''
}

/** Opens the address behind "This wasn't me" in a browser of its own, and presses the button. */
export async function disown(link: string): Promise<Answer> {
  const agent = createUserAgent()
  return press(agent, await agent.get(link), '/not-me')
}

/** A page of a verification, or of a login that waits for one. */
export function expectMode(answer: Answer, status: number, mode: string): void {
  expectPage(answer, status, 'verify-email', mode)
  expect(answer.location).to.equal(undefined)
}

/** The verification page in mode `expired`, and nothing else (7.2). */
export function expectExpired(answer: Answer): void {
  expectMode(answer, 400, 'expired')
  expect(answer.text).to.include('/resend-verification')
  expect(setsSession(answer)).to.equal(false)
}

/** The audit events that have these properties, once there are so many of them. */
export async function eventsLike(
  { events }: Service,
  matches: Partial<AuditEvent>,
  count = 1,
): Promise<AuditEvent[]> {
  const isLike = (event: AuditEvent) =>
    Object.entries(matches).every(([name, value]) => Reflect.get(event, name) === value)
  return eventually(`${count} events like ${JSON.stringify(matches)}`, () => {
    const found = events.filter(isLike)
    return found.length >= count && found
  })
}

/** The account that a browser is signed in with, as a client learns it. `undefined`: none. */
async function accountOf(party: RelyingParty, agent: UserAgent): Promise<string | undefined> {
  const request = await party.begin({ prompt: 'none' })
  const { location = '' } = await agent.get(request.url)
  if (!new URL(location).searchParams.has('code')) return undefined
  return (await party.exchange(request, location)).claims()?.sub
}

function sessionId({ oauthUrl }: Service, agent: UserAgent): string | undefined {
  return /(?:^|; )_session=([^;]*)/.exec(agent.cookiesFor(`${oauthUrl}/auth`))?.[1]
}

/** Whether this answer gives the browser a session. */
export function setsSession({ headers }: Answer): boolean {
  return headers.getSetCookie().some((line) => /^_session=[^;]/.test(line))
}

function expectNoSession(h: Service, agent: UserAgent, answer: Answer) {
  expect(answer.location).to.equal(undefined)
  expect(setsSession(answer)).to.equal(false)
  expect(sessionId(h, agent)).to.equal(undefined)
}
