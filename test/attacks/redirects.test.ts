import { expect } from 'chai'
import * as fc from 'fast-check'
import type { ClientMetadata } from 'oidc-provider'
import { expectOnlyVerified } from '../support/blocked-login.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { ask } from '../support/observe.ts'
import { press } from '../support/page-forms.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { createUserAgent, decodeEntities, type Answer } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { several } from '../support/several.ts'
import { addUnverified, addVerified, blockedLogin, tokenOf } from '../support/person.ts'

const [APP_URI] = CLIENT.redirect_uris
const [SERVER_URI] = CONFIDENTIAL.redirect_uris

/** Registered like this, and to be kept like this. */
const ODD_URIS = [
  'https://odd.example/cb?state=theirs&code=theirs&x=1',
  'https://odd.example/cb?',
  'https://odd.example/a+b%20c/%E2%9C%93/%2F..%2e',
  'https://odd.example/a/../cb',
  'https://ODD.example/cb',
  'https://odd.example:443/cb',
  'https://xn--bcher-kva.example/cb/',
  'https://odd.example/cb;p=1,2?q=%26amp;%3Cb%3E',
]
const ODD = {
  ...CONFIDENTIAL,
  client_id: 'odd & <client>',
  redirect_uris: ODD_URIS,
} satisfies ClientMetadata
const NATIVE = {
  ...CLIENT,
  client_id: 'native',
  application_type: 'native',
  redirect_uris: ['com.example.app:/cb', 'http://127.0.0.1/cb'],
} satisfies ClientMetadata

/** Each looks like a redirect URI of the client `app`, or becomes one in some parser, and none is (RED-02). */
const NEAR_MISSES: Record<string, string> = {
  'another origin': 'https://evil.example/cb',
  'a trailing slash': `${APP_URI}/`,
  'a longer path': `${APP_URI}/x`,
  'a longer last segment': `${APP_URI}x`,
  'a shorter path': 'https://app.example/c',
  'no path': 'https://app.example',
  'a query': `${APP_URI}?x=y`,
  'an empty query': `${APP_URI}?`,
  'a fragment': `${APP_URI}#x`,
  'an empty fragment': `${APP_URI}#`,
  'a path in another case': 'https://app.example/CB',
  'a scheme in another case': 'HTTPS://app.example/cb',
  'a host in another case': 'https://APP.example/cb',
  'the default port': 'https://app.example:443/cb',
  'another port': 'https://app.example:8443/cb',
  'another scheme': 'http://app.example/cb',
  'no scheme': '//app.example/cb',
  'a path alone': '/cb',
  'dot segments': 'https://app.example/a/../cb',
  'encoded dot segments': 'https://app.example/a/%2e%2e/cb',
  'a double slash': 'https://app.example//cb',
  'an encoded letter': 'https://app.example/%63b',
  'a backslash before the path': 'https://app.example\\cb',
  'backslashes after the scheme': 'https:\\\\app.example\\cb',
  'one slash after the scheme': 'https:/app.example/cb',
  'a tab': `${APP_URI}\t`,
  'a line break': `${APP_URI}\n`,
  'a line break within': 'https://app.exa\nmple/cb',
  NUL: `${APP_URI}\0`,
  'a space in front': ` ${APP_URI}`,
  'a byte order mark': `\u{FEFF}${APP_URI}`,
  'a longer domain': 'https://app.example.evil.example/cb',
  'a sub-domain': 'https://x.app.example/cb',
  'the host as user': 'https://app.example@evil.example/cb',
  'the host as user and password': 'https://app.example:x@evil.example/cb',
  'a user': 'https://user@app.example/cb',
  'a dot after the host': 'https://app.example./cb',
  'a full-width letter': 'https://ａpp.example/cb',
  'a look-alike letter': 'https://\u0430pp.example/cb',
  'a soft hyphen': 'https://ap\u00ADp.example/cb',
  'a list': `${APP_URI},https://evil.example/`,
  'the URI of another client': SERVER_URI,
  nothing: '',
}

/** What would run, or lead astray, as an address on a page (RED-03). */
const DANGEROUS = [
  'javascript:alert(1)//https://app.example/cb',
  'JaVaScRiPt:alert(1)',
  'java\tscript:alert(1)',
  '\u0001javascript:alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'vbscript:msgbox(1)',
  'file:///etc/passwd',
  'blob:https://app.example/x',
  '//evil.example/cb',
  '/\\evil.example/cb',
  '\\\\evil.example/cb',
]

describe('A redirect URI that is not registered (RED-01, RED-02, RED-03, RED-04)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()

  const carried = (redirect_uri: string) => ({
    client_id: CLIENT.client_id,
    redirect_uri,
    scope: 'openid',
    state: 's',
  })
  const all = [...Object.entries(NEAR_MISSES), ...DANGEROUS.map((uri) => [uri, uri] as const)]

  /** Nothing on the page leads anywhere but to ourselves; a hidden field is text, and leads nowhere. */
  function expectNowhere({ text, headers, location }: Answer) {
    expect(location).to.equal(undefined)
    const addresses = text.matchAll(/\s(?:href|action|formaction|src|content)="([^"]*)"/g)
    for (const [, address = ''] of addresses) {
      if (/^(width=|noindex|no-referrer|light)/.test(address)) continue
      expect(new URL(decodeEntities(address), h.baseUrl).origin).to.equal(h.baseUrl)
    }
    expect(text).not.to.match(/http-equiv/i)
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).to.include("form-action 'self';")
  }

  /** Some at once, each with a user of its own. Of one network, ten passwords are hashed or wait at most. */
  const forAll = (check: (uri: string) => Promise<void>) =>
    several(all, 8, ([what, uri]) =>
      check(uri).catch((error: unknown) => {
        throw new Error(`${JSON.stringify(what)}: ${String(error)}`, { cause: error })
      }),
    )

  it('leads nowhere from forgot-password, its mail and its end', () =>
    forAll(async (uri) => {
      const user = await addVerified(h)
      const form = await agent.get(
        `${h.oauthUrl}/forgot-password?${new URLSearchParams(carried(uri))}`,
      )
      expect([form.status, form.mode]).to.deep.equal([200, 'form'])
      expectNowhere(form)

      const { answer } = await ask(h, user.username, carried(uri))
      expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
      expectNowhere(answer)
      const { mail, link } = await h.mail.mailTo(user.email ?? '')
      expect(link).to.equal(`${h.oauthUrl}/reset-password?token=${tokenOf(link)}`)
      expect(`${mail.text}${String(mail.html)}`).not.to.match(/app\.example|evil|script:/)

      const opened = await agent.get(link)
      expectNowhere(opened)
      const done = await h.reset(link, 'a new password')
      expect(done.mode).to.equal('done')
      expect(done.text).not.to.match(/<a /)
      expectNowhere(done)
    }))

  it('leads nowhere from resend-verification and its link, which only verifies', () =>
    forAll(async (uri) => {
      const user = await addUnverified(h)
      const link = await user.asksAgain(carried(uri))
      expect([...new URL(link).searchParams.keys()]).to.deep.equal(['token', 'authorize_sig'])
      const browser = createUserAgent()
      const answer = await browser.get(link)
      await expectOnlyVerified(h, { user, agent: browser }, answer)
      expectNowhere(answer)
    }))

  it('is no way into a login: the provider answers itself, without a redirect', async () => {
    // The provider takes an empty one for none.
    for (const [, uri] of all.filter(([, each]) => each !== '')) {
      const { url } = await h.party.begin({ redirect_uri: uri })
      const { status, location } = await createUserAgent().get(url)
      expect([status, location], uri).to.deep.equal([400, undefined])
    }
    const back = await h.signIn(createUserAgent(), (await addVerified(h)).username)
    expect(back.location).to.match(/^https:\/\/app\.example\/cb\?code=/)
  })

  it('is followed from no link that it was put into, and the link is unspent', async () => {
    const login = await blockedLogin(h)
    // What a mail program puts into a link is taken out again, and leaves the link as it was mailed (decision 0022).
    const others = all.filter(([, uri]) => uri.replaceAll(/[\r\n\t]+ */g, '') !== APP_URI)
    expect(others.length).to.be.above(all.length - 4)
    for (const [, uri] of others) {
      const url = new URL(login.link)
      url.searchParams.set('redirect_uri', uri)
      const answer = await login.agent.get(url)
      expect([answer.status, answer.mode], uri).to.deep.equal([400, 'expired'])
      expectNowhere(answer)
    }
    expect(await login.isVerified()).to.equal(false)
    await login.comesBack(await login.agent.get(login.link))
  })
})

describe('What a client sent comes back as it was sent (4.2, 4.6)', () => {
  const h = suiteHarness({ clients: [CLIENT, CONFIDENTIAL, ODD, NATIVE] })

  const ODD_STATES = [
    '+',
    ' ',
    '%',
    '%2B',
    'a+b c',
    '&code=x',
    '#',
    '"><b>',
    '\0',
    '\u{FEFF}x',
    '[]',
  ]
  // The provider takes an empty state for none.
  const state = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
    fc.constantFrom(...ODD_STATES),
  )

  it('state, through the link of a blocked login (RED-07) [full]', async () => {
    await fc.assert(
      fc.asyncProperty(state, async (sent) => {
        const login = await blockedLogin(h, { extra: { state: sent } })
        expect(new URL(login.link).searchParams.get('state')).to.equal(sent)
        const answer = await createUserAgent().get(login.link)
        expect(answer.status).to.equal(302)
        expect(new URL(answer.location ?? '').searchParams.get('state')).to.equal(sent)
        expect(await login.isVerified()).to.equal(true)
      }),
      { numRuns: 20 },
    )
  })

  it('state and redirect URI, through a reset and the way back to the login [full]', async () => {
    // Each reset waits for the next second; many at once wait together.
    const one = fc.tuple(state, fc.constantFrom(...ODD_URIS))
    const many = fc.array(one, { minLength: 8, maxLength: 8 })
    const comeBack = fc.asyncProperty(many, async (each) => {
      await Promise.all(each.map(comesBack))
    })
    await fc.assert(comeBack, { numRuns: 5 })
  })

  async function comesBack([sent, redirect_uri]: [string, string]) {
    const user = await addVerified(h)
    const sentAll = { client_id: ODD.client_id, redirect_uri, scope: 'openid email', state: sent }
    const agent = createUserAgent()
    const query = new URLSearchParams({ response_type: 'code', ...sentAll })
    const page = await h.follow(agent, await agent.get(`${h.oauthUrl}/auth?${query}`))
    await ask(h, user.username, sentAll)
    const { link } = await h.mail.mailTo(user.email ?? '')
    const typed = { password: 'a new password', confirm_password: 'a new password' }
    const done = await press(agent, await agent.get(link), '/reset-password', { typed })
    const href = decodeEntities(/<a [^>]*href="([^"]*)"/.exec(done.text)?.[1] ?? '')
    expect(href).to.equal(page.url)
    // And from there the client has it back.
    const login = await h.login(agent, new URL(href), user.username, 'a new password')
    const { location = '' } = await h.follow(agent, login)
    expect(new URL(location).searchParams.getAll('state')).to.include(sent)
    expect(location.split('?')[0]).to.equal(new URL(redirect_uri).href.split('?')[0])
  }

  for (const [client, uris] of [
    [ODD, ODD_URIS],
    [NATIVE, [...NATIVE.redirect_uris, 'http://127.0.0.1:54321/cb']],
  ] as const) {
    it(`redirect URIs that are odd, and registered, through a link: ${client.client_id}`, async () => {
      for (const redirectUri of uris) {
        const parties = { clientId: client.client_id, redirectUri }
        const party = await createRelyingParty(h.oauthUrl, parties)
        const login = await blockedLogin(h, { party })
        expect(new URL(login.link).searchParams.get('redirect_uri')).to.equal(redirectUri)
        const agent = createUserAgent()
        let answer = await agent.get(login.link)
        if (client === NATIVE) {
          answer = await h.follow(agent, answer)
          expect(answer.mode, redirectUri).to.equal('consent')
          answer = await h.follow(agent, await agent.post(answer.url, { consent: 'yes' }))
        }
        const location = answer.location ?? ''
        expect(location, redirectUri).to.match(/[?&]code=[\w-]{43}/)
        expect(location.startsWith(new URL(redirectUri).href.split('?')[0] ?? 'no')).to.equal(true)
        const { searchParams } = new URL(location)
        expect(searchParams.getAll('state').at(-1)).to.equal(login.request.state)
      }
    })
  }
})

describe('The code of a verification link (RED-12, RED-13)', () => {
  const h = suiteHarness()

  it('is good once, for the client that asked, and what it gave ends when it is tried again', async () => {
    const login = await blockedLogin(h)
    const { location = '' } = await login.agent.get(login.link)
    const code = new URL(location).searchParams.get('code') ?? ''
    const record = await h.provider.AuthorizationCode.find(code)
    expect((record?.exp ?? Infinity) - (record?.iat ?? 0)).to.be.at.most(60)

    const stranger = await createRelyingParty(h.oauthUrl, {
      clientId: CONFIDENTIAL.client_id,
      clientSecret: CONFIDENTIAL.client_secret,
      redirectUri: APP_URI,
    })
    const refused = await stranger.exchange(login.request, location).catch((e: unknown) => e)
    expect(refused).to.be.instanceOf(Error).and.include({ status: 400, error: 'invalid_grant' })
    const tokens = await login.party.exchange(login.request, location)
    expect(await h.provider.AccessToken.find(tokens.access_token)).to.not.equal(undefined)
    const again = await login.party.exchange(login.request, location).catch((e: unknown) => e)
    expect(again).to.be.instanceOf(Error).with.property('error', 'invalid_grant')
    expect(await h.provider.AccessToken.find(tokens.access_token)).to.equal(undefined)
  })

  it('comes without the token, its signature or its hash, whatever the response mode (RED-07)', async () => {
    for (const response_mode of ['query', 'fragment', 'form_post']) {
      const login = await blockedLogin(h, { extra: { response_mode } })
      const { searchParams } = new URL(login.link)
      const answer = await login.agent.get(login.link)
      const everything = [...answer.headers].flat().join('\n') + answer.text
      expect(everything).to.include(APP_URI)
      for (const secret of [searchParams.get('token'), searchParams.get('authorize_sig')]) {
        expect(everything, response_mode).not.to.include(secret)
      }
      expect(answer.headers.get('cache-control')).to.include('no-store')
    }
  })

  it('leaves nothing of the link in a referrer', async () => {
    for (const [response_mode, policy] of [
      ['query', 'no-referrer'],
      ['form_post', 'strict-origin'],
    ] as const) {
      const login = await blockedLogin(h, { extra: { response_mode } })
      const answer = await login.agent.get(login.link)
      expect(answer.headers.get('referrer-policy'), response_mode).to.equal(policy)
    }
  })
})
