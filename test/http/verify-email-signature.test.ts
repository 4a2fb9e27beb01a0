import { createHmac, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { expectExpired } from '../support/blocked-login.ts'
import { ADMIN_TOKEN, CLIENT, CONFIDENTIAL, startHarness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { addUnverified, blockedLogin, type Person } from '../support/person.ts'

const SIGNED = ['token', 'client_id', 'redirect_uri', 'scope', 'state', 'authorize_sig'] as const
const CARRIED = ['client_id', 'redirect_uri', 'scope', 'state'] as const

/** The link with its query changed; order and encoding are kept. */
function changed(link: string, change: (query: URLSearchParams) => void): string {
  const url = new URL(link)
  change(url.searchParams)
  return url.href
}

const withQuery = (link: string, query: string) => `${link.split('?')[0]}?${query}`

describe('authorize_sig of GET {oauth_path}/verify-email (5.4)', () => {
  const secret = randomBytes(32)
  const h = suiteHarness({ flows: { secrets: [secret] } })

  async function expectAllRefused(login: Person, links: string[]) {
    for (const link of links) {
      expect(link).to.not.equal(login.link)
      const answer = await login.agent.get(link)
      expectExpired(answer)
      await login.getsNothing(answer)
    }
    await login.stillGetsIn()
  }

  it('carries token, client_id, redirect_uri, scope and state, and a signature of 43 characters', async () => {
    const { link, request, user } = await blockedLogin(h)
    const { searchParams, origin, pathname } = new URL(link)
    expect(origin + pathname).to.equal(`${h.oauthUrl}/verify-email`)
    expect([...searchParams.keys()]).to.have.members([...SIGNED])
    expect(searchParams.get('token')).to.match(/^[\w-]{43}$/)
    expect(searchParams.get('authorize_sig')).to.match(/^[\w-]{43}$/)
    expect(searchParams.get('client_id')).to.equal(CLIENT.client_id)
    expect(searchParams.get('redirect_uri')).to.equal(request.redirectUri)
    expect(searchParams.get('scope')).to.equal('openid email')
    expect(searchParams.get('state')).to.equal(request.state)
    expect(link).to.not.include(user.username)
  })

  type LinksOf = (link: string, query: URLSearchParams) => string[]
  function itRefuses(title: string, linksOf: LinksOf) {
    it(title, async () => {
      const login = await blockedLogin(h)
      await expectAllRefused(login, linksOf(login.link, new URL(login.link).searchParams))
    })
  }

  itRefuses('refuses a link in which one parameter was changed (SIG-01)', (link, query) => {
    const evil: Record<string, string> = {
      token: randomBytes(32).toString('base64url'),
      client_id: CONFIDENTIAL.client_id,
      redirect_uri: CONFIDENTIAL.redirect_uris[0],
      scope: 'openid email offline_access',
      state: 'evil',
      authorize_sig: randomBytes(32).toString('base64url'),
    }
    const valueOf = (name: string) => query.get(name) ?? ''
    return [
      ...Object.entries(evil).map((pair) => changed(link, (q) => q.set(...pair))),
      ...CARRIED.map((name) => changed(link, (q) => q.set(name, valueOf(name).toUpperCase()))),
      ...SIGNED.map((name) => changed(link, (q) => q.set(name, `${valueOf(name)}x`))),
    ]
  })

  itRefuses('refuses a link in which one parameter is missing or empty (SIG-02)', (link) => [
    ...SIGNED.map((name) => changed(link, (q) => q.delete(name))),
    ...SIGNED.map((name) => changed(link, (q) => q.set(name, ''))),
    changed(link, (q) => CARRIED.forEach((name) => q.delete(name))),
    link.split('?')[0] ?? '',
  ])

  itRefuses('refuses a parameter that is repeated, be it the same (SIG-04)', (link, query) =>
    SIGNED.flatMap((name) => [
      changed(link, (q) => q.append(name, q.get(name) ?? '')),
      changed(link, (q) => q.append(name, 'evil')),
      withQuery(link, `${name}=evil&${query}`),
    ]),
  )

  itRefuses(
    'refuses a parameter in brackets, beside or instead of the plain one (SIG-05)',
    (link) =>
      SIGNED.flatMap((plain) =>
        ['[]', '[0]', '[$ne]'].flatMap((brackets) => {
          const beside = changed(link, (q) => q.append(plain + brackets, q.get(plain) ?? ''))
          return [beside, changed(beside, (q) => q.delete(plain))]
        }),
      ),
  )

  itRefuses(
    'refuses a signature that is cut, too long, or written in another way (SIG-11)',
    (link, query) => {
      const signature = query.get('authorize_sig') ?? ''
      const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      const sibling = last[last.indexOf(signature.slice(-1)) ^ 1]
      return [
        signature.slice(0, 8),
        signature.slice(0, -1),
        `${signature}A`,
        signature + signature,
        signature.slice(0, -1) + sibling,
        Buffer.from(signature, 'base64url').toString('hex'),
        'undefined',
        'null',
        '0',
        'A'.repeat(43),
        'A'.repeat(8_000),
      ].map((odd) => changed(link, (q) => q.set('authorize_sig', odd)))
    },
  )

  itRefuses('refuses a query that is no UTF-8', (link) => [
    `${link}%ff`,
    `${link}&state=%c0%80`,
    `${link}&%`,
  ])

  it('refuses a parameter that was added, be it empty', async () => {
    const login = await blockedLogin(h, {
      send({ url }) {
        url.searchParams.delete('state')
        return url
      },
    })
    expect(new URL(login.link).searchParams.has('state')).to.equal(false)
    for (const state of ['evil', '']) {
      const answer = await login.agent.get(changed(login.link, (q) => q.set('state', state)))
      expectExpired(answer)
      await login.getsNothing(answer)
    }
    const { status, location = '' } = await login.agent.get(login.link)
    expect(status).to.equal(302)
    expect([...new URL(location).searchParams.keys()]).to.have.members(['code', 'iss'])
  })

  it('refuses the signature of another mail, both ways (SIG-08)', async () => {
    const user = await addUnverified(h)
    const first = await blockedLogin(h, { user })
    const second = await blockedLogin(h, { user })
    const stranger = await blockedLogin(h)
    const take = (from: Person, into: Person, names: readonly string[]) =>
      changed(into.link, (q) => {
        for (const name of names) q.set(name, new URL(from.link).searchParams.get(name) ?? '')
      })
    for (const [a, b] of [
      [first, second],
      [second, first],
      [first, stranger],
      [stranger, first],
    ] as const) {
      for (const names of [['authorize_sig'], ['token'], [...CARRIED, 'authorize_sig']]) {
        const answer = await b.agent.get(take(a, b, names))
        expectExpired(answer)
        await b.getsNothing(answer)
      }
    }
    await first.stillGetsIn()
    await stranger.stillGetsIn()
  })

  it('refuses a signature made with any other key, or with the key ring itself (SIG-12)', async () => {
    const login = await blockedLogin(h)
    const query = new URL(login.link).searchParams
    const values = ['token', ...CARRIED].map((name) => query.get(name))
    const text = JSON.stringify(values)
    const keys = [
      secret,
      Buffer.alloc(0),
      Buffer.alloc(32),
      ADMIN_TOKEN,
      'a cookie key of the tests',
    ]
    const signatures = [...keys, CONFIDENTIAL.client_secret].flatMap((key) => [
      createHmac('sha256', key).update(text).digest('base64url'),
      createHmac('sha256', key).update(values.join('')).digest('base64url'),
      createHmac('sha1', key).update(text).digest('base64url'),
      createHmac('md5', key).update(text).digest('base64url'),
    ])
    await expectAllRefused(
      login,
      signatures.map((signature) => changed(login.link, (q) => q.set('authorize_sig', signature))),
    )
  })

  it('shows the same page for every token that it does not know', async () => {
    const login = await blockedLogin(h)
    const agent = createUserAgent()
    const pages = []
    for (const token of ['x', 'A'.repeat(43), 'A'.repeat(44), '{"$ne":null}', '../..', '%00']) {
      const answer = await agent.get(changed(login.link, (q) => q.set('token', token)))
      expectExpired(answer)
      pages.push(answer.text)
    }
    expect(new Set(pages).size).to.equal(1)
    expect(pages[0]).to.not.include(new URL(login.link).searchParams.get('state'))
    await login.stillGetsIn()
  })
})

describe('A verification link after the keys were rotated (SIG-13)', () => {
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)]
  const h = suiteHarness({ flows: { secrets: [oldKey] } })

  it('is expired once its key is gone, and still works while its key may verify', async () => {
    const login = await blockedLogin(h)
    const { store, users } = h
    /** What another process on the same store, with this key ring, makes of the link. */
    async function openedBy(secrets: Buffer[]) {
      const rotated = await startHarness({
        flows: { secrets, store, users },
        provider: {
          async findAccount(_ctx, sub) {
            return (await users.findById(sub)) && { accountId: sub, claims: () => ({ sub }) }
          },
        },
      })
      const answer = await createUserAgent().get(login.link.replace(h.oauthUrl, rotated.oauthUrl))
      await rotated.close()
      return answer
    }
    const refused = await openedBy([newKey])
    expectExpired(refused)
    await login.getsNothing(refused)
    const { status, location } = await openedBy([newKey, oldKey])
    expect(status).to.equal(302)
    expect(location).to.match(/^https:\/\/app\.example\/cb\?code=/)
  })
})
