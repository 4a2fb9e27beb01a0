import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { createAccountFlows, memoryUsers, mongoStore } from '../../src/index.ts'
import { ALL_KINDS, flowsStore } from '../../src/store/index.ts'
import { eventually } from '../support/eventually.ts'
import {
  ADMIN_TOKEN,
  type Database,
  freshDatabaseOf,
  type Harness,
  type HarnessOptions,
  onEachStore,
  PASSWORD,
  storeIn,
  suiteHarness,
} from '../support/harness.ts'
import { expectAlive, expectEnded, offlineTokens, outcomeOf } from '../support/oauth-requests.ts'
import { allIn } from '../support/records.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { systemClock } from '../../src/clock.ts'

const NEW_PASSWORD = 'a new password, longer'

const OTHER_TOKEN = 'the-admin-token-of-the-other-issuer'

// The agent knows no ports: to it, both are one host. They have the same secrets, so that nothing but the store tells their links apart.
onEachStore('Two issuers in one process', (technology) => {
  let database: Database | undefined
  before('one database for both', async () => {
    database = await freshDatabaseOf(technology)
  })
  const options = (prefix: string): HarnessOptions => ({
    basePath: `/${prefix}`,
    ...(database && { prefix: `${prefix}_`, database: { ...database, drop: async () => {} } }),
  })
  const shop = suiteHarness(() => options('shop'))
  const club = suiteHarness(() => ({
    ...options('club'),
    flows: { adminToken: OTHER_TOKEN, adminPath: '/manage' },
    provider: { cookies: { keys: ['a cookie key'], names: { session: '_club_session' } } },
  }))
  after(() => database?.drop())

  /** The same link, as if the other one had mailed it. */
  const at = ({ oauthUrl }: Harness, link: string) =>
    oauthUrl + link.slice(link.search(/\/(reset-password|verify-email)\?/))

  it('give their pages, mails and events to themselves alone', async () => {
    const login = await shop.blockedLogin()
    expect(login.link.startsWith(`${shop.oauthUrl}/verify-email?`)).to.equal(true)
    await eventually('the event', () => login.events('email_login_blocked').at(0))

    expect([club.events.length, club.mail.mails.length]).to.deep.equal([0, 0])
    await login.stillGetsIn()
  })

  it('refuse each other’s reset link, which stays good where it belongs', async () => {
    await club.addVerified()
    const user = await shop.addVerified()
    const link = await user.forgets()
    await user.opensLink(at(club, link))
    await user.sees('reset-password', 'invalid', 400)
    await user.choosesPassword(NEW_PASSWORD, at(club, link))
    await user.sees('reset-password', 'invalid', 400)
    expect((await user.choosesPassword(NEW_PASSWORD, link)).mode).to.equal('done')
  })

  it('end the sessions and tokens of their own account alone, where both have one of that id', async () => {
    const id = 'the-same-id'
    const agent = createUserAgent()
    const [ann, ben] = [
      (await shop.addVerified({ id, username: 'same' })).in(agent),
      (await club.addVerified({ id, username: 'same' })).in(agent),
    ]
    const ours = { ...ann, tokens: await offlineTokens(shop, agent, ann) }
    const theirs = { ...ben, tokens: await offlineTokens(club, agent, ben) }
    expect([await ann.account(), await ben.account()]).to.deep.equal([id, id])
    await ann.getsBackIn(NEW_PASSWORD)
    await expectEnded(shop, ours)
    await expectAlive(club, theirs)
    expect(outcomeOf(await ben.in().signsIn(PASSWORD))).to.equal('code')
  })

  it('let a login wait at each in the same browser, and both go on', async () => {
    const agent = createUserAgent()
    const logins = [await shop.blockedLogin({ agent }), await club.blockedLogin({ agent })]
    for (const login of logins) {
      await login.opensElsewhere()
      await login.comesBack(await login.goesOn())
      expect(await login.account()).to.equal(login.id)
    }
  })

  it('have an admin API each, at its own path, with its own token and settings', async () => {
    const ask = async (url: string, token: string) =>
      createUserAgent().get(`${url}/settings`, { authorization: `Bearer ${token}` })
    const [ours, theirs] = [`${shop.baseUrl}/admin/api`, `${club.baseUrl}/manage`]
    await shop.put({ validation_min_password_length: '20' })
    const settings = JSON.parse((await ask(theirs, OTHER_TOKEN)).text) as Record<string, string>
    expect(settings['validation_min_password_length']).to.not.equal('20')
    expect((await ask(ours, OTHER_TOKEN)).status).to.equal(401)
    expect((await ask(theirs, ADMIN_TOKEN)).status).to.equal(401)
    expect((await ask(`${club.baseUrl}/admin/api`, OTHER_TOKEN)).status).to.equal(404)
    await shop.put({ validation_min_password_length: '8' })
  })

  it('count the keys of their own processes alone', async () => {
    for (const { store } of [shop, club])
      expect(await store.keyRings.noted(60_000)).to.have.length(1)
  })

  it('finish no login of the other: its interaction is not found, and the login still works', async () => {
    const user = await shop.addVerified()
    const other = await club.addVerified()
    const { page, url } = await other.starts()
    expect(page).to.equal('login')
    const form = { username: user.username, password: PASSWORD }
    const cookie = other.agent.cookiesFor(url)
    const strange = await createUserAgent().post(`${shop.oauthUrl}/login`, form, { cookie })
    expect([strange.status >= 400, strange.location]).to.deep.equal([true, undefined])
    expect(outcomeOf(await user.signsIn())).to.equal('code')
  })

  if (technology !== 'memory') {
    it('keep each its records in collections or tables that begin with its prefix', async () => {
      const names = [...(await allIn(database ?? {})).keys()]
      expect(names.filter((name) => !/^(shop|club)_[a-z_]+$/.test(name))).to.deep.equal([])
      const ofBoth = [...new Set(names.map((name) => name.slice('shop_'.length)))]
      expect(names).to.have.length(2 * ofBoth.length)
      expect(ofBoth).to.include.members(['settings', 'mail_outbox', 'oidc_records'])
      if (technology === 'mongodb') expect(ofBoth).to.include('users')
    })
  }
})

onEachStore('Two issuers with one store', (technology) => {
  it('are told in the log of the one that starts later; two processes of one issuer are not', async () => {
    const database = await freshDatabaseOf(technology)
    const own = storeIn(database)
    const logged: string[] = []
    let started = 0
    const startAt = async (baseUrl: string) => {
      const flows = createAccountFlows({
        baseUrl,
        secrets: [Buffer.alloc(32, 1)],
        store: own,
        users: memoryUsers(),
        log: (level, message) => logged.push(`${level} ${message}`),
      })
      await flows.start({ workers: false })
      started += 1
      const isNoted = async () =>
        (await flowsStore(own, systemClock).keyRings.noted(60_000)).length === started
      await eventually('the process is noted', isNoted)
      return flows
    }
    const first = await startAt('https://one.example')
    const second = await startAt('https://one.example')
    expect(logged).to.deep.equal([])
    const other = await startAt('https://two.example')
    expect(logged).to.deep.equal([
      'warn another issuer uses this store: each needs a database or a prefix of its own',
    ])
    await Promise.all([first, second, other].map((flows) => flows.stop()))
    await database?.drop()
  })
})

describe('The prefix of the collections', () => {
  // Nobody listens there, and nothing is asked.
  const db = new MongoClient('mongodb://127.0.0.1:1').db('none')
  const bad = ['', 'system.', 'system.x', '$', 'a$', 'a\0', '.a', '-a', '1', 'a b', 'ä']
  bad.push('a'.repeat(65))

  for (const prefix of [...bad, null, 42, ['a_']]) {
    it(`is refused where it is ${JSON.stringify(prefix)}, and the sentence says what it may be`, () => {
      // The types forbid some of these; a host in JavaScript has no types.
      expect(() => mongoStore(db, { prefix: prefix as string })).to.throw(
        TypeError,
        /^prefix must be 1 to 64 letters/,
      )
    })
  }

  it('gives no two issuers the same collection', () => {
    const names = ALL_KINDS.map(({ name }) => name)
    // Two prefixes would meet where one of our names ends with another one.
    for (const name of names)
      expect(names.filter((other) => name !== other && name.endsWith(other))).to.deep.equal([])
  })

  it('may be what names of MongoDB may be', () => {
    const good = ['_', 'shop_', 'shop.', 'Shop-1.', 'systems.', 'initial_x', 'a'.repeat(64)]
    for (const prefix of [undefined, ...good]) {
      mongoStore(db, { prefix })
    }
  })
})
