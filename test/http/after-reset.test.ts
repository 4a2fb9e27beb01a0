import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import type { User } from '../../src/index.ts'
import { signInAt, telling } from '../oidc/logout-clients.ts'
import { suiteAdmin } from '../support/admin.ts'
import { cliOf } from '../support/cli.ts'
import { APP, partyOf } from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import {
  CLIENT,
  CONFIDENTIAL,
  type Harness,
  onEachStore,
  PASSWORD,
  suiteHarness,
} from '../support/harness.ts'
import { ask } from '../support/observe.ts'
import type { Person } from '../support/person.ts'
import { beforeFirst, instead } from '../support/records.ts'
import { serve } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'
import {
  type Answer,
  createUserAgent,
  decodeEntities,
  type UserAgent,
} from '../support/user-agent.ts'

const NEW = 'a new password'

const CLIENTS = {
  starter: {
    ...CLIENT,
    client_id: 'starter',
    client_name: 'Starts <b>itself</b>',
    redirect_uris: ['https://starter.example/cb'],
    initiate_login_uri: 'https://starter.example/start?via=us&iss=old',
  },
  homely: {
    ...CLIENT,
    client_id: 'homely',
    redirect_uris: ['https://homely.example/cb'],
    client_uri: 'https://www.homely.example/home',
  },
  pushing: {
    ...CONFIDENTIAL,
    client_id: 'pushing',
    redirect_uris: ['https://pushing.example:8443/a/cb?x=y'],
    require_pushed_authorization_requests: true,
  },
  native: {
    ...CLIENT,
    client_id: 'native',
    application_type: 'native',
    redirect_uris: ['com.example.app:/cb', 'http://127.0.0.1/cb', 'https://app.example/native'],
  },
} as const satisfies Record<string, ClientMetadata>

type Client = ClientMetadata & { client_id: string; redirect_uris: readonly [string, ...string[]] }

function continueLink({ text }: Answer): string | undefined {
  const href = /<a [^>]*class="button[^"]*"[^>]*href="([^"]*)"/.exec(text)?.[1]
  return href === undefined ? undefined : decodeEntities(href)
}

/** The page after a reset, in plain text. */
function done(answer: Answer): string {
  expect([answer.status, answer.mode]).to.deep.equal([200, 'done'])
  return decodeEntities(answer.text).replaceAll(/[\u2068\u2069]/g, '')
}

/** The mails that tell a person of a changed password. */
const noticesTo = (h: Harness, { email = '' }: User) =>
  h.mail.mails.filter(({ to, kind }) => kind === 'password_changed' && to.includes(email))

const noticeTo = (h: Harness, user: User) => eventually('the notice', () => noticesTo(h, user)[0])

describe('After a reset the person continues to the client (4.2)', () => {
  const clients = [CLIENT, CONFIDENTIAL, ...Object.values(CLIENTS)]
  const h = suiteHarness({ clients })

  let added = 0
  const addUser = () => {
    added += 1
    return h.addUser({ username: `åse & ${added}`, email: `user${added}@users.example` })
  }

  /** What the page says after a reset whose form was asked for with that, in a browser without a login. */
  async function resetWith(user: Person, parameters: Record<string, string>): Promise<Answer> {
    const page = await h.reset(await user.forgets(parameters), NEW)
    expect(page.mode).to.equal('done')
    return page
  }

  const leadsTo = async ({ client_id }: Client, redirect_uri: string) =>
    continueLink(await resetWith(await addUser(), { client_id, redirect_uri }))

  /** Goes from the client as far as the login page, and answers that. */
  async function begins(person: Person, client: Client, extra: Record<string, string> = {}) {
    person.party = await partyOf(h, client)
    const page = await person.starts(extra)
    await person.sees('login', 'login')
    return page
  }

  /** From the link of the login page over the form and the mail to a new password, in that browser; answers where its page leads on. */
  async function resetsIn(agent: UserAgent, person: Person, headers: Record<string, string> = {}) {
    const asked = person.request.url.searchParams
    const query = new URLSearchParams()
    for (const name of ['client_id', 'redirect_uri', 'scope', 'state'])
      query.set(name, asked.get(name) ?? '')
    const here = person.in(agent)
    await here.opensLink(`${h.oauthUrl}/forgot-password?${query}`)
    await here.presses('/forgot-password', { typed: { identifier: person.username } })
    await here.opensLink((await h.mail.mailTo(person.email ?? '')).link)
    const typed = { password: NEW, confirm_password: NEW }
    const page = await here.presses('/reset-password', { typed, headers })
    expect(page.mode).to.equal('done')
    return continueLink(page)
  }

  it('a login that waits in this browser goes on with its own state, PKCE and nonce', async () => {
    for (const client of [CONFIDENTIAL, CLIENT, CLIENTS.starter, CLIENTS.homely, CLIENTS.native]) {
      const user = await addUser()
      const { agent } = user
      const { url } = await begins(user, client)
      expect(await resetsIn(agent, user)).to.equal(url)
      for (const isSecondTime of [false, true]) {
        const again = await h.follow(agent, await agent.get(url))
        expect([again.status, again.mode], String(isSecondTime)).to.deep.equal([200, 'login'])
      }
      const refused = await agent.post(url, { username: user.username, password: PASSWORD })
      expect(refused.status).to.equal(401)
      const login = await agent.post(url, { username: user.username, password: NEW })
      let answer = await h.follow(agent, login)
      if (answer.mode === 'consent') {
        answer = await h.follow(agent, await agent.post(answer.url, { consent: 'yes' }))
      }
      const tokens = await user.party.exchange(user.request, answer.location ?? '')
      expect(tokens.claims()?.sub).to.equal(user.id)
    }
  })

  it('any other browser, and one whose login is not there any more, is led to where the client begins anew', async () => {
    const front = 'https://server.example/'
    const leadsTo = async (
      meanwhile: (user: Person, page: Answer) => Promise<UserAgent | void>,
      extra: Record<string, string> = {},
    ) => {
      const user = await addUser()
      if (extra['prompt'] === 'login') await user.signsIn()
      const page = await begins(user, CONFIDENTIAL, extra)
      const other = await meanwhile(user, page)
      return resetsIn(other ?? user.agent, user)
    }
    expect(await leadsTo(async () => createUserAgent())).to.equal(front)
    const another = async ({ agent }: Person) => {
      await begins((await addUser()).in(agent), CLIENTS.homely)
    }
    expect(await leadsTo(another)).to.equal(front)
    const finished = async ({ agent, username }: Person, page: Answer) => {
      const login = await agent.post(page.url, { username, password: PASSWORD })
      expect((await h.follow(agent, login)).location).to.include('code=')
    }
    expect(await leadsTo(finished)).to.equal(front)
    // It was begun in the session of the account, which the reset ends.
    expect(await leadsTo(async () => {}, { prompt: 'login' })).to.equal(front)
    const gone = async (_user: Person, page: Answer) => {
      const uid = new URL(page.url).searchParams.get('interaction') ?? ''
      await (await h.provider.Interaction.find(uid))?.destroy()
    }
    expect(await leadsTo(gone)).to.equal(front)
    expect(await leadsTo(async () => {})).to.include(`${h.oauthUrl}/login?interaction=`)
  })

  it('a login that its mailed link has finished here is not gone back into: the client has had its answer', async () => {
    const login = await h.blockedLogin()
    expect((await login.opensLink()).location).to.include('code=')
    await login.forgets(APP)
    const page = await login.choosesPassword(NEW)
    expect([page.mode, continueLink(page)]).to.deep.equal(['done', 'https://app.example/'])
  })

  it('the browser keeps where its login waits for as long as the interaction lives, an hour here', async () => {
    const { url } = await h.party.begin()
    const cookies = (await createUserAgent().get(url)).headers.getSetCookie()
    const [, seconds] =
      /account_flows_login_page=[\w.-]+; Max-Age=(\d+);/.exec(cookies.join()) ?? []
    expect(Number(seconds)).to.be.within(3_500, 3_600)
  })

  it('what a browser was made to send leads nowhere else, and the honest login goes on (RED-01)', async () => {
    const user = await addUser()
    const page = await begins(user, CONFIDENTIAL)
    const cookie = user.agent.cookiesFor(`${h.oauthUrl}/reset-password`)
    expect(cookie).to.match(/^account_flows_login_page=[\w.-]+$/)
    expect(user.agent.cookiesFor(`${h.oauthUrl}/auth`)).not.to.include('account_flows_login_page')
    for (const forged of [
      'https://evil.example/',
      JSON.stringify({ uid: page.hidden['interaction'], page: 'https://evil.example/' }),
      // The first letter of its tag: another last one may spell the same bytes.
      cookie
        .replace(/^[^=]+=/, '')
        .replace(/\.(.)(?=[^.]*$)/, (_, at) => (at === 'A' ? '.B' : '.A')),
    ]) {
      const headers = { cookie: `account_flows_login_page=${encodeURIComponent(forged)}` }
      const victim = Object.assign(await addUser(), { request: user.request })
      const href = await resetsIn(createUserAgent(), victim, headers)
      expect(href).to.equal('https://server.example/')
    }
    expect(await resetsIn(user.agent, user)).to.equal(page.url)
  })

  it('a client with an address to start at is told who we are, and begins its own request', async () => {
    const user = await addUser()
    const { client_id, initiate_login_uri, redirect_uris } = CLIENTS.starter
    const page = await resetWith(user, { client_id, redirect_uri: redirect_uris[0] })
    expect(page.text).to.include('Starts &lt;b&gt;itself').and.include('Continue to')
    const href = new URL(continueLink(page) ?? '')
    expect(href.href.split('?')[0]).to.equal(initiate_login_uri.split('?')[0])
    expect(Object.fromEntries(href.searchParams)).to.deep.equal({ via: 'us', iss: h.oauthUrl })

    user.party = await partyOf(h, CLIENTS.starter)
    const { location = '' } = await user.signsIn(NEW)
    expect((await user.party.exchange(user.request, location)).claims()?.sub).to.equal(user.id)
  })

  const { homely, pushing, native } = CLIENTS
  const [ownScheme, loopback, onTheWeb] = native.redirect_uris
  for (const [what, client, redirectUri, href] of [
    ['one on a server', CONFIDENTIAL, CONFIDENTIAL.redirect_uris[0], 'https://server.example/'],
    ['one in a browser', CLIENT, CLIENT.redirect_uris[0], 'https://app.example/'],
    ['one with a home page', homely, homely.redirect_uris[0], homely.client_uri],
    ['one that pushes', pushing, pushing.redirect_uris[0], 'https://pushing.example:8443/'],
    ['an app on the web', native, onTheWeb, 'https://app.example/'],
    ['an app on the device: nowhere', native, ownScheme, undefined],
    ['an app at a port: nowhere', native, loopback, undefined],
    ['an app at any port: nowhere', native, 'http://127.0.0.1:54321/cb', undefined],
  ] as const) {
    it(`every other client begins its own request, as only it can make PKCE and nonce: ${what}`, async () => {
      expect(await leadsTo(client, redirectUri)).to.equal(href)
    })
  }

  it('no client that a stranger chose is told whose link it was (ENU-10)', async () => {
    for (const { client_id, redirect_uris } of clients) {
      const user = await addUser()
      const page = await resetWith(user, { client_id, redirect_uri: redirect_uris[0] })
      const shown = decodeURIComponent(decodeEntities(page.text).replaceAll('+', ' '))
      for (const secret of [user.username, user.email, 'login_hint'])
        expect(shown).to.not.include(secret)
      expect((await user.signsIn(NEW)).location).to.include('code=')
    }
  })
})

describe('After a reset, a provider that fails', () => {
  const h = suiteHarness({ mayLogErrors: true })

  it('makes no failure of it: the page names no way on', async () => {
    const user = await h.addUser({ username: 'ann' })
    expect((await user.starts()).page).to.equal('login')
    await user.forgets(APP)
    const { Interaction } = h.provider
    const { find } = Interaction
    Interaction.find = () => Promise.reject(new Error('away'))
    try {
      expect(done(await user.choosesPassword(NEW))).not.to.include('Continue to')
    } finally {
      Interaction.find = find
    }
    expect((await user.in().signsIn(NEW)).location).to.include('code=')
  })
})

describe('The mail that tells of a reset', () => {
  const h = suiteHarness({
    settings: { password_changed_email: 'true' },
    mail: { answer: (to) => (refused.has(to) ? 'refuse' : 'take') },
    mayLogErrors: true,
  })
  let added = 0
  /** Addresses that the mail server refuses. */
  const refused = new Set<string>()

  const newUser = () => h.addUser({ username: `user-${(added += 1)}` })

  it('goes once to the account, after a refused form too, says when, leads to the form for a new link, and is audited as what it is', async () => {
    const user = await newUser()
    const link = await user.forgets()
    expect((await h.reset(link, 'Tr0ub4dor&3', 'Tr0ub4dor&4')).status).to.equal(400)
    expect((await h.reset(link, 'Tr0ub4dor&3')).mode).to.equal('done')
    const { mail } = await noticeTo(h, user)
    expect(mail.subject).to.equal('Your password was changed')
    expect(mail.text).to.include(`Hello ${user.username},`)
    const year = new Date().getUTCFullYear()
    expect(mail.text).to.match(new RegExp(`Changed on \\w+ \\d+, ${year} at [\\d:]+.[AP]M UTC`))
    const [form] = /http:\S+/.exec(mail.text ?? '') ?? []
    expect((await createUserAgent().get(form ?? '')).page).to.equal('forgot-password')
    expect(`${mail.text} ${String(mail.html)}`).not.to.match(/password\?token|Tr0ub/)
    await h.isIdle()
    expect(noticesTo(h, user)).to.have.length(1)
    const [reset, notice, ...others] = user.events('password_reset_mail_sent')
    expect(reset?.details).not.to.have.property('mail')
    expect(notice?.details).to.include({ mail: 'password_changed' })
    expect(others).to.deep.equal([])
    expect(user.events('password_reset_requested')).to.have.length(1)
  })

  it('is not sent while password_changed_email is false', async () => {
    const user = await newUser()
    const link = await user.forgets()
    await h.put({ password_changed_email: 'false' })
    try {
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      await ask(h, user.username)
      expect(noticesTo(h, user)).to.deep.equal([])
    } finally {
      await h.put({ password_changed_email: 'true' })
    }
    expect((await h.reset(await user.forgets(), 'another password')).mode).to.equal('done')
    await noticeTo(h, user)
  })

  it('leaves the reset as it is when the mail server refuses it', async () => {
    const user = await newUser()
    const link = await user.forgets()
    refused.add(user.email ?? '')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    const failed = await eventually('the event', () =>
      user.events('password_reset_mail_failed').at(0),
    )
    expect(failed.reason).to.equal('ERR_MAIL_REFUSED')
    expect(failed.details).to.include({ mail: 'password_changed', step: 'RCPT TO', code: '550' })
    expect(noticesTo(h, user)).to.deep.equal([])
    expect(await user.hasPassword('a new password')).to.equal(true)
    expect(user.events('password_reset_completed')).to.have.length(1)
  })

  it('goes to the address that the link went to, whatever becomes of the account meanwhile', async () => {
    const moved = 'moved@users.example'
    const users: User[] = []
    for (const change of [
      { disabled: true },
      { email: undefined },
      { email: 'thief@[192.0.2.1]' },
      { email: moved },
    ]) {
      const user = await newUser()
      const link = await user.forgets()
      await h.put({ smtp_host: '' })
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      await user.becomes(change)
      await h.put({ smtp_host: '127.0.0.1' })
      users.push(user)
    }
    for (const user of users) await noticeTo(h, user)
    expect(h.mail.mails.filter(({ to }) => to.includes(moved))).to.deep.equal([])
  })
})

const TOLD = 'We’re telling your apps to sign you out: '
const UNTOLD = 'We can’t tell some apps. Sign out there yourself: '
const UNKNOWN = 'If you’re still signed in to an app, sign out there.'

type App = ClientMetadata & { client_id: string; redirect_uris: [string] }

/** Signs in to each of these apps, in one browser. */
async function signInTo(h: Harness, user: Person, apps: App[]) {
  const browser = createUserAgent()
  for (const metadata of apps) await signInAt(h, { metadata }, user, browser)
}

const resetOf = async (h: Harness, user: Person) => done(await h.reset(await user.forgets(), NEW))

/** The text of the mail that tells of a changed password, in one line. */
async function noticeOf(h: Harness, user: Person): Promise<string> {
  const { mail } = await noticeTo(h, user)
  return (mail.text ?? '').replaceAll(/[\u2060\u2068\u2069]/g, '').replaceAll(/\s+/g, ' ')
}

onEachStore('The apps that a person was signed in to', (technology) => {
  const apps = {} as Record<'shop' | 'nameless' | 'mail' | 'refusing' | 'down', App>
  const others: App[] = []
  let close = async () => {}
  const h = suiteHarness(async () => {
    // What an app answers to a logout token is in its address.
    const { url, ...server } = await serve((req, res) => {
      res.writeHead(Number(req.url?.slice(1))).end()
    })
    close = server.close
    const app = (id: string, name: string | undefined, answers?: number): App => ({
      ...CLIENT,
      client_id: id,
      client_name: name,
      redirect_uris: [`https://${id}.example/cb`],
      ...(answers && { backchannel_logout_uri: `${url}/${answers}` }),
    })
    Object.assign(apps, {
      shop: app('shop', 'Shop', 200),
      nameless: app('nameless', undefined, 200),
      mail: app('mail', 'Mail'),
      refusing: app('refusing', 'Refusing', 400),
      down: app('down', 'Down', 503),
    })
    for (let n = 1; n <= 12; n++) others.push(app(`other${n}`, `Other ${n}`, 200))
    const clients = [...Object.values(apps), ...others].map((metadata) => ({ metadata }))
    const settings = { password_changed_email: 'true' }
    return telling(clients, { technology, settings, mayLogErrors: true })
  })
  after(() => close())
  const admin = suiteAdmin(h)

  const everything = [TOLD, UNTOLD, UNKNOWN]
  const said: [title: string, apps: () => App[], says: string[], not: string[]][] = [
    [
      'are named on the page and in the mail: those that are told, and those that cannot be',
      () => [apps.shop, apps.mail],
      [`${TOLD}Shop.`, `${UNTOLD}Mail.`],
      [UNKNOWN, 'nameless'],
    ],
    [
      'have their id where they have no name',
      () => [apps.nameless],
      [`${TOLD}nameless.`],
      ['Shop'],
    ],
    ['are none: neither page nor mail says a word of apps', () => [], [], everything],
  ]
  for (const [title, signedInTo, says, not] of said) {
    it(title, async () => {
      const user = await h.addVerified()
      await signInTo(h, user, signedInTo())
      const page = await resetOf(h, user)
      for (const text of [page, await noticeOf(h, user)]) {
        for (const sentence of says) expect(text).to.contain(sentence)
        for (const sentence of not) expect(text).to.not.contain(sentence)
      }
      expect(page).to.not.match(/<a [^>]*example/)
      expect(await user.hasPassword(NEW)).to.equal(true)
    })
  }

  it('are many: ten are named, and the others counted', async () => {
    const user = await h.addVerified()
    await signInTo(h, user, others)
    const named = (await resetOf(h, user)).match(/Other \d+/g)
    expect(new Set(named).size).to.equal(10)
    expect(await noticeOf(h, user)).to.match(/sign you out: (Other \d+, ){10}and 2 more\./)
  })

  it('are named after a first password', async () => {
    const user = await h.addVerified()
    await signInTo(h, user, [apps.shop])
    await user.becomes({ passwordHash: undefined, emailVerified: false })
    const page = done(await user.choosesPassword(NEW, await user.isInvited()))
    expect(page).to.contain(`${TOLD}Shop.`)
  })

  it('refuse for a day: the status says so', async () => {
    const user = await h.addVerified()
    await signInTo(h, user, [apps.refusing, apps.shop, apps.mail])
    expect(done(await h.reset(await user.forgets(), NEW))).to.match(
      /Sign out there yourself: [\w ]*Mail/,
    )
    const over = { notified: 1, waiting: 0, failed: 1, not_notified: 1 }
    const statusOnce = (waiting: number) =>
      eventually(`${waiting} wait`, async () => {
        const status = await admin.userStatus({ id: user.id })
        return status.clients?.notified === 1 && status.clients.waiting === waiting && status
      })
    expect((await statusOnce(1)).clients).to.include({ ...over, waiting: 1, failed: 0 })
    await moveTime(25 * 3_600_000)
    const { clients, hints } = await statusOnce(0)
    expect(clients).to.include(over)
    expect(clients?.ended_at).to.match(/^\d{4}-.*Z$/)
    expect(hints.at(-1)).to.match(
      /were not told to sign the person out: refusing \(\w+\)\. Sign the person out there\.$/,
    )
  })

  type Found = ReturnType<typeof h.store.clientLogouts.find>
  /** Changes what is found of them. */
  const whereLogouts = (change: (found: Found) => Found, work: () => Promise<void>) =>
    instead(h.store.clientLogouts, 'find', (find) => (which) => change(find(which)), work)

  it('that gave up are named as those that cannot be told', async () => {
    const user = await h.addVerified()
    await signInTo(h, user, [apps.shop, apps.mail])
    const dead = async (found: Found) =>
      (await found).map((logout) => ({ ...logout, state: 'dead' as const }))
    await whereLogouts(dead, async () => {
      const page = await resetOf(h, user)
      for (const text of [page, await noticeOf(h, user)])
        expect(text)
          .to.match(/there yourself: (Shop and Mail|Mail and Shop)\./)
          .and.not.contain(TOLD)
    })
  })

  it('are counted for an admin who ends the sessions, also at the command line', async () => {
    const user = await h.addVerified()
    await signInTo(h, user, [apps.shop, apps.mail, apps.down])
    const { run } = cliOf(h)
    const { stdout } = await run(['user', 'end-sessions', user.username, '--yes'])
    expect(stdout)
      .to.match(/^Clients that are told to sign the person out: 2$/m)
      .and.match(/^Clients that cannot be told: 1$/m)
    await eventually('the shop is told', async () =>
      /^clients of the last end +1 told, 1 waiting, 0 failed, 1 cannot be told$/m.test(
        (await run(['user', 'status', user.username])).stdout,
      ),
    )
    const { clients } = await h.flows.endSessions(user.id)
    expect(clients).to.deep.equal({ notified: 0, notNotified: 0 })
    await signInTo(h, user, [apps.shop])
    expect((await admin.endSessions({ id: user.id })).clients).to.deep.equal({
      notified: 1,
      not_notified: 0,
    })
    expect((await h.flows.endSessions('nobody')).clients).to.deep.equal({
      notified: 0,
      notNotified: 0,
    })
  })

  it('cannot be read: the reset is done all the same, and nobody is told that all is well', async () => {
    const user = await h.addVerified()
    await signInTo(h, user, [apps.shop])
    const away = () => Promise.reject(new Error('away'))
    await whereLogouts(away, async () => {
      expect(await resetOf(h, user)).to.contain(UNKNOWN)
      expect(await noticeOf(h, user)).to.contain(UNKNOWN)
      expect(await h.flows.endSessions(user.id)).to.have.keys('oauth', 'idp')
    })
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(await resetOf(h, user)).to.not.contain(UNKNOWN)
  })
})

describe('The apps of a provider that tells none', () => {
  const h = suiteHarness({ settings: { password_changed_email: 'true' } })
  const admin = suiteAdmin(h)

  it('are not asked for; page and mail ask the person to sign out there, and claim nothing', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const asked = beforeFirst(h.store.clientLogouts, 'find', () => {})
    const page = await resetOf(h, user)
    for (const text of [page, await noticeOf(h, user)]) {
      expect(text).to.contain(UNKNOWN).and.contain('out of your account on all devices')
      expect(text).to.not.match(/everywhere|apps were|The App/)
    }
    expect(await h.flows.endSessions(user.id)).to.have.keys('oauth', 'idp')
    expect(await admin.endSessions({ id: user.id })).to.not.have.property('clients')
    expect(await admin.userStatus({ id: user.id })).to.not.have.property('clients')
    await h.isIdle()
    expect(asked()).to.equal(0)
  })
})
