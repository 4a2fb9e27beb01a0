import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import { authorizationCodeGrant } from 'openid-client'
import type { User } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { ask, eventsOf, hasPassword } from '../support/observe.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { type Answer, createUserAgent, decodeEntities } from '../support/user-agent.ts'

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

  const leadsTo = async ({ client_id }: ClientMetadata, redirect_uri: string) =>
    continueLink(await done(await addUser(), { client_id, redirect_uri }))

  it('a confidential client gets its state back, and redeems the code of the new password', async () => {
    const user = await addUser()
    const agent = createUserAgent()
    const [redirectUri] = CONFIDENTIAL.redirect_uris
    const carried = {
      client_id: CONFIDENTIAL.client_id,
      redirect_uri: redirectUri,
      scope: 'openid',
      state: 'the state & of the client',
    }
    const page = await done(user, carried)
    expect(page.text).to.include('The Server')
    const href = continueLink(page)
    expect((href?.href ?? '').split('?')[0]).to.equal(`${h.oauthUrl}/auth`)
    expect(Object.fromEntries(href?.searchParams ?? [])).to.deep.equal({
      response_type: 'code',
      ...carried,
    })

    const refused = await h.login(agent, href as URL, user.username, PASSWORD)
    expect(refused.status).to.equal(401)
    const login = await h.login(agent, href as URL, user.username, NEW)
    const { location = '' } = await h.follow(agent, login)
    expect(location.split('?')[0]).to.equal(redirectUri)
    const party = await createRelyingParty(h.oauthUrl, {
      clientId: carried.client_id,
      redirectUri,
      clientSecret: CONFIDENTIAL.client_secret,
    })
    const tokens = await authorizationCodeGrant(party.config, new URL(location), {
      expectedState: carried.state,
      idTokenExpected: true,
    })
    expect(tokens.claims()?.sub).to.equal(user.id)
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

  it('a client that needs PKCE, or a request of its own making, is led to where it starts one', async () => {
    const { homely, pushing } = CLIENTS
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
    const link = await h.resetLink(user)
    expect((await h.reset(link, 'Tr0ub4dor&3', 'Tr0ub4dor&4')).status).to.equal(400)
    expect((await h.reset(link, 'Tr0ub4dor&3')).mode).to.equal('done')
    const { mail } = await noticeTo(user)
    expect(mail.subject).to.equal('Your password was changed')
    expect(mail.text).to.include(`Hello ${user.username},`)
    const year = new Date().getUTCFullYear()
    expect(mail.text).to.match(new RegExp(`Changed on \\w+ \\d+, ${year} at [\\d:]+.[AP]M UTC`))
    const [form] = /http:\S+/.exec(mail.text ?? '') ?? []
    expect((await createUserAgent().get(form ?? '')).page).to.equal('forgot-password')
    expect(`${mail.text} ${String(mail.html)}`).not.to.match(/token|Tr0ub/)
    await isIdle(h)
    expect(mailsTo(user)).to.have.length(1)
    const [reset, notice, ...others] = eventsOf(h, 'password_reset_mail_sent', user)
    expect(reset?.details).not.to.deep.equal({ mail: 'password_changed' })
    expect(notice?.details).to.deep.equal({ mail: 'password_changed' })
    expect(others).to.deep.equal([])
    expect(eventsOf(h, 'password_reset_requested', user)).to.have.length(1)
  })

  it('is not sent while password_changed_email is false', async () => {
    const user = await newUser()
    const link = await h.resetLink(user)
    await h.put({ password_changed_email: 'false' })
    try {
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      await ask(h, user.username)
      expect(mailsTo(user)).to.deep.equal([])
    } finally {
      await h.put({ password_changed_email: 'true' })
    }
    expect((await h.reset(await h.resetLink(user), 'another password')).mode).to.equal('done')
    await noticeTo(user)
  })

  it('leaves the reset as it is when the mail server refuses it', async () => {
    const user = await newUser()
    const link = await h.resetLink(user)
    refused.add(user.email ?? '')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    const failed = await eventually('the event', () =>
      eventsOf(h, 'password_reset_mail_failed', user).at(0),
    )
    expect(failed).to.deep.include({
      reason: 'ERR_MAIL_REFUSED',
      details: { mail: 'password_changed' },
    })
    expect(mailsTo(user)).to.deep.equal([])
    expect(await hasPassword(h, user, 'a new password')).to.equal(true)
    expect(eventsOf(h, 'password_reset_completed', user)).to.have.length(1)
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
      const link = await h.resetLink(user)
      await h.put({ smtp_host: '' })
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      await h.changeUser(user, change)
      await h.put({ smtp_host: '127.0.0.1' })
      users.push(user)
    }
    for (const user of users) await noticeTo(user)
    expect(h.mail.mails.filter(({ to }) => to.includes(moved))).to.deep.equal([])
  })
})
