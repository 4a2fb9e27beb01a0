import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import type { User } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { ask } from '../support/observe.ts'
import { press } from '../support/page-forms.ts'
import { createRelyingParty, type AuthorizationRequest } from '../support/relying-party.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import {
  type Answer,
  createUserAgent,
  decodeEntities,
  type UserAgent,
} from '../support/user-agent.ts'
import { blockedLogin } from '../support/person.ts'

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

describe('After a reset the person continues to the client (4.2)', () => {
  const h = suiteHarness({ clients: [CLIENT, CONFIDENTIAL, ...Object.values(CLIENTS)] })

  let added = 0
  const addUser = () => {
    added += 1
    return h.addUser({ username: `åse & ${added}`, email: `user${added}@users.example` })
  }

  async function done(user: User, carried: Record<string, string>): Promise<Answer> {
    await h.forgot(user.username, carried)
    const { link } = await h.mail.mailTo(user.email ?? '')
    const page = await h.reset(link, NEW)
    expect(page.mode).to.equal('done')
    return page
  }

  function continueLink({ text }: Answer): URL | undefined {
    const href = /<a [^>]*class="button[^"]*"[^>]*href="([^"]*)"/.exec(text)?.[1]
    return href === undefined ? undefined : new URL(decodeEntities(href))
  }

  /** Goes as far as the login page. */
  async function beginLogin(
    agent: UserAgent,
    client: ClientMetadata & { redirect_uris: readonly [string, ...string[]] },
    extra: Record<string, string> = {},
  ) {
    const { client_id: clientId, client_secret: clientSecret, redirect_uris } = client
    const [redirectUri] = redirect_uris
    const party = await createRelyingParty(h.oauthUrl, {
      clientId: clientId ?? '',
      redirectUri,
      ...(clientSecret !== undefined && { clientSecret }),
    })
    const request = await party.begin(extra)
    const page = await h.follow(agent, await agent.get(request.url))
    expect([page.page, page.mode]).to.deep.equal(['login', 'login'])
    return { party, request, page }
  }

  /** The link of the login page to the form, the mail, its link in the given browser, and a new password. */
  async function resetIn(
    agent: UserAgent,
    user: User,
    request: AuthorizationRequest,
    headers: Record<string, string> = {},
  ) {
    const query = new URLSearchParams()
    for (const name of ['client_id', 'redirect_uri', 'scope', 'state']) {
      query.set(name, request.url.searchParams.get(name) ?? '')
    }
    const form = await agent.get(`${h.oauthUrl}/forgot-password?${query}`)
    await press(agent, form, '/forgot-password', { typed: { identifier: user.username } })
    const { link } = await h.mail.mailTo(user.email ?? '')
    const fields = { password: NEW, confirm_password: NEW }
    const done = await press(agent, await agent.get(link), '/reset-password', {
      typed: fields,
      headers,
    })
    expect(done.mode).to.equal('done')
    return { done, href: continueLink(done) }
  }

  const leadsTo = async ({ client_id }: ClientMetadata, redirect_uri: string) =>
    continueLink(await done(await addUser(), { client_id, redirect_uri }))

  it('a login that waits in this browser goes on with its own state, PKCE and nonce', async () => {
    for (const client of [CONFIDENTIAL, CLIENT, CLIENTS.starter, CLIENTS.homely, CLIENTS.native]) {
      const user = await addUser()
      const agent = createUserAgent()
      const { party, request, page } = await beginLogin(agent, client)
      const { done, href } = await resetIn(agent, user, request)
      expect(done.text).to.include('Continue to')
      expect(href?.href).to.equal(page.url)

      for (const isSecondTime of [false, true]) {
        const again = await h.follow(agent, await agent.get(href ?? ''))
        expect([again.status, again.mode], String(isSecondTime)).to.deep.equal([200, 'login'])
      }
      const refused = await agent.post(page.url, { username: user.username, password: PASSWORD })
      expect(refused.status).to.equal(401)
      const login = await agent.post(page.url, { username: user.username, password: NEW })
      let answer = await h.follow(agent, login)
      if (answer.mode === 'consent') {
        answer = await h.follow(agent, await agent.post(answer.url, { consent: 'yes' }))
      }
      const tokens = await party.exchange(request, answer.location ?? '')
      expect(tokens.claims()?.sub).to.equal(user.id)
    }
  })

  it('any other browser, and one whose login is not there any more, is led to where the client begins anew', async () => {
    const front = 'https://server.example/'
    const leadsTo = async (
      meanwhile: (browser: {
        agent: UserAgent
        user: User
        page: Answer
      }) => Promise<UserAgent | void>,
      extra: Record<string, string> = {},
    ) => {
      const user = await addUser()
      const agent = createUserAgent()
      if (extra['prompt'] === 'login') await h.signIn(agent, user.username)
      const { request, page } = await beginLogin(agent, CONFIDENTIAL, extra)
      const other = await meanwhile({ agent, user, page })
      return (await resetIn(other ?? agent, user, request)).href?.href
    }
    expect(await leadsTo(async () => createUserAgent())).to.equal(front)
    const another = async ({ agent }: { agent: UserAgent }) => {
      await beginLogin(agent, CLIENTS.homely)
    }
    expect(await leadsTo(another)).to.equal(front)
    const finished = async ({
      agent,
      user,
      page,
    }: Parameters<Parameters<typeof leadsTo>[0]>[0]) => {
      const login = await agent.post(page.url, { username: user.username, password: PASSWORD })
      expect((await h.follow(agent, login)).location).to.include('code=')
    }
    expect(await leadsTo(finished)).to.equal(front)
    // It was begun in the session of the account, which the reset ends.
    expect(await leadsTo(async () => {}, { prompt: 'login' })).to.equal(front)
    const gone = async ({ page }: { page: Answer }) => {
      const uid = new URL(page.url).searchParams.get('interaction') ?? ''
      await (await h.provider.Interaction.find(uid))?.destroy()
    }
    expect(await leadsTo(gone)).to.equal(front)
    expect(await leadsTo(async () => {})).to.include(`${h.oauthUrl}/login?interaction=`)
  })

  it('a login that its mailed link has finished here is not gone back into: the client has had its answer', async () => {
    const { user, agent, link, request } = await blockedLogin(h)
    expect((await agent.get(link)).location).to.include('code=')
    const { searchParams } = request.url
    await h.forgot(user.username, {
      client_id: searchParams.get('client_id') ?? '',
      redirect_uri: searchParams.get('redirect_uri') ?? '',
    })
    const form = await agent.get((await h.mail.mailTo(user.email ?? '', 2)).link)
    const fields = { password: NEW, confirm_password: NEW }
    const page = await press(agent, form, '/reset-password', { typed: fields })
    expect([page.mode, continueLink(page)?.href]).to.deep.equal(['done', 'https://app.example/'])
  })

  it('the browser keeps where its login waits for as long as the interaction lives, an hour here', async () => {
    const { url } = await h.party.begin()
    const cookies = (await createUserAgent().get(url)).headers.getSetCookie()
    const [, seconds] = /account_flows_login=[\w.-]+; Max-Age=(\d+);/.exec(cookies.join()) ?? []
    expect(Number(seconds)).to.be.within(3_500, 3_600)
  })

  it('what a browser was made to send leads nowhere else, and the honest login goes on (RED-01)', async () => {
    const user = await addUser()
    const agent = createUserAgent()
    const { request, page } = await beginLogin(agent, CONFIDENTIAL)
    const path = `${h.oauthUrl}/reset-password`
    const cookie = agent.cookiesFor(path)
    expect(cookie).to.match(/^account_flows_login=[\w.-]+$/)
    expect(agent.cookiesFor(`${h.oauthUrl}/auth`)).not.to.include('account_flows_login')
    for (const forged of [
      'https://evil.example/',
      JSON.stringify({ uid: page.hidden['interaction'], page: 'https://evil.example/' }),
      // The first letter of its tag: another last one may spell the same bytes.
      cookie
        .replace(/^[^=]+=/, '')
        .replace(/\.(.)(?=[^.]*$)/, (_, at) => (at === 'A' ? '.B' : '.A')),
    ]) {
      const victim = createUserAgent()
      const headers = { cookie: `account_flows_login=${encodeURIComponent(forged)}` }
      const { href } = await resetIn(victim, await addUser(), request, headers)
      expect(href?.href).to.equal('https://server.example/')
    }
    expect((await resetIn(agent, user, request)).href?.href).to.equal(page.url)
  })

  it('a client with an address to start at is told who we are, and begins its own request', async () => {
    const user = await addUser()
    const { client_id, initiate_login_uri, redirect_uris } = CLIENTS.starter
    const [redirectUri] = redirect_uris
    const page = await done(user, { client_id, redirect_uri: redirectUri })
    expect(page.text).to.include('Starts &lt;b&gt;itself')
    const href = continueLink(page)
    expect(href?.href.split('?')[0]).to.equal(initiate_login_uri.split('?')[0])
    const told = Object.fromEntries(href?.searchParams ?? [])
    expect(told).to.deep.equal({ via: 'us', iss: h.oauthUrl })

    const party = await createRelyingParty(told['iss'] ?? '', { clientId: client_id, redirectUri })
    const request = await party.begin()
    const agent = createUserAgent()
    const login = await h.login(agent, request.url, user.username, NEW)
    const { location = '' } = await h.follow(agent, login)
    expect((await party.exchange(request, location)).claims()?.sub).to.equal(user.id)
  })

  it('every other client is led to where it begins a request: only it can make PKCE and nonce', async () => {
    const { homely, pushing } = CLIENTS
    expect((await leadsTo(CONFIDENTIAL, CONFIDENTIAL.redirect_uris[0]))?.href).to.equal(
      'https://server.example/',
    )
    expect((await leadsTo(CLIENT, CLIENT.redirect_uris[0]))?.href).to.equal('https://app.example/')
    expect((await leadsTo(homely, homely.redirect_uris[0]))?.href).to.equal(homely.client_uri)
    expect((await leadsTo(pushing, pushing.redirect_uris[0]))?.href).to.equal(
      'https://pushing.example:8443/',
    )
  })

  it('an app on the device has no front page to lead to, but for one on the web', async () => {
    const { native } = CLIENTS
    const [own, loopback, web] = native.redirect_uris
    expect(await leadsTo(native, own)).to.equal(undefined)
    expect(await leadsTo(native, loopback)).to.equal(undefined)
    expect(await leadsTo(native, 'http://127.0.0.1:54321/cb')).to.equal(undefined)
    expect((await leadsTo(native, web))?.href).to.equal('https://app.example/')
  })

  it('no client that a stranger chose is told whose link it was (ENU-10)', async () => {
    const clients = [CONFIDENTIAL, CLIENT, ...Object.values(CLIENTS)]
    for (const { client_id, redirect_uris } of clients) {
      const user = await addUser()
      const page = await done(user, { client_id, redirect_uri: redirect_uris[0] })
      const shown = decodeURIComponent(decodeEntities(page.text).replaceAll('+', ' '))
      expect(shown).to.not.include(user.username)
      expect(shown).to.not.include(user.email)
      expect(shown).to.not.include('login_hint')
      const { location } = await h.signIn(createUserAgent(), user.username, NEW)
      expect(location).to.include('code=')
    }
  })

  it('nothing leads to what is not genuine, and the new password works all the same', async () => {
    const evil = 'https://evil.example/cb'
    for (const carried of [
      {},
      { client_id: 'starter' },
      { client_id: 'starter', redirect_uri: evil },
      { client_id: 'starter', redirect_uri: `${CLIENTS.starter.redirect_uris[0]}/` },
      { client_id: 'nobody', redirect_uri: evil },
      { redirect_uri: CLIENT.redirect_uris[0] },
    ]) {
      const user = await addUser()
      const page = await done(user, carried)
      expect(continueLink(page)).to.equal(undefined)
      expect(page.text).not.to.match(/evil|Starts|app\.example/)
      const { location } = await h.signIn(createUserAgent(), user.username, NEW)
      expect(location).to.include('code=')
    }
  })
})

describe('After a reset, a provider that fails', () => {
  const h = suiteHarness({ mayLogErrors: true })

  it('makes no failure of it: the page names no way on', async () => {
    const user = await h.addUser({ username: 'ann' })
    const agent = createUserAgent()
    const { url } = await h.party.begin()
    expect((await h.follow(agent, await agent.get(url))).page).to.equal('login')
    const { client_id, redirect_uris } = CLIENT
    await h.forgot(user.username, { client_id, redirect_uri: redirect_uris[0] })
    const form = await agent.get((await h.mail.mailTo(user.email ?? '')).link)
    const { Interaction } = h.provider
    const { find } = Interaction
    Interaction.find = () => Promise.reject(new Error('away'))
    try {
      const typed = { password: NEW, confirm_password: NEW }
      const done = await press(agent, form, '/reset-password', { typed })
      expect([done.status, done.mode]).to.deep.equal([200, 'done'])
      expect(done.text).not.to.include('Continue to')
    } finally {
      Interaction.find = find
    }
    expect((await h.signIn(createUserAgent(), user.username, NEW)).location).to.include('code=')
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
  const mailsTo = ({ email }: User) =>
    h.mail.mails.filter(({ to, mail }) => {
      const isNotice = mail.headers.get('x-account-flows-mail') === 'password_changed'
      return isNotice && to.includes(email ?? '')
    })
  const noticeTo = (user: User) => eventually('the notice', () => mailsTo(user)[0])

  it('goes once to the account, after a refused form too, says when, leads to the form for a new link, and is audited as what it is', async () => {
    const user = await newUser()
    const link = await user.forgets()
    expect((await h.reset(link, 'Tr0ub4dor&3', 'Tr0ub4dor&4')).status).to.equal(400)
    expect((await h.reset(link, 'Tr0ub4dor&3')).mode).to.equal('done')
    const { mail } = await noticeTo(user)
    expect(mail.subject).to.equal('Your password was changed')
    expect(mail.text).to.include(`Hello ${user.username},`)
    const year = new Date().getUTCFullYear()
    expect(mail.text).to.match(new RegExp(`Changed on \\w+ \\d+, ${year} at [\\d:]+.[AP]M UTC`))
    const [form] = /http:\S+/.exec(mail.text ?? '') ?? []
    expect((await createUserAgent().get(form ?? '')).page).to.equal('forgot-password')
    expect(`${mail.text} ${String(mail.html)}`).not.to.match(/password\?token|Tr0ub/)
    await isIdle(h)
    expect(mailsTo(user)).to.have.length(1)
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
      expect(mailsTo(user)).to.deep.equal([])
    } finally {
      await h.put({ password_changed_email: 'true' })
    }
    expect((await h.reset(await user.forgets(), 'another password')).mode).to.equal('done')
    await noticeTo(user)
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
    expect(mailsTo(user)).to.deep.equal([])
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
    for (const user of users) await noticeTo(user)
    expect(h.mail.mails.filter(({ to }) => to.includes(moved))).to.deep.equal([])
  })
})
