import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import type { AdminClient } from '../../src/admin/client.ts'
import { suiteAdmin } from '../support/admin-calls.ts'
import { onBothStores } from '../support/both-stores.ts'
import { runCli } from '../support/cli.ts'
import { partyOf } from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN, CLIENT, type Harness } from '../support/harness.ts'
import { choose } from '../support/invitations.ts'
import { isIdle } from '../support/jobs.ts'
import { serve } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, decodeEntities, type Answer } from '../support/user-agent.ts'
import { addVerified, type Person } from '../support/person.ts'

const NEW = 'a new password'
const TOLD = 'We’re telling your apps to sign you out: '
const UNTOLD = 'We can’t tell some apps. Sign out there yourself: '
const UNKNOWN = 'If you’re still signed in to an app, sign out there.'
const HOSTILE = '<a href="https://evil.example">Win</a>\r\n\u202E'

type App = ClientMetadata & { client_id: string; redirect_uris: [string] }

/** What its clients answer to a logout token, by the path. */
async function clientServer() {
  const { url, close } = await serve((req, res) => {
    res.writeHead(Number(req.url?.slice(1))).end()
  })
  return {
    app: (id: string, name: string | undefined, answers?: 200 | 400 | 503): App => ({
      ...CLIENT,
      client_id: id,
      client_name: name,
      redirect_uris: [`https://${id}.example/cb`],
      ...(answers && { backchannel_logout_uri: `${url}/${answers}` }),
    }),
    close,
  }
}

/** Signs in to each of these apps, in one browser. */
async function signInTo(h: Harness, user: Person, apps: App[]) {
  const browser = createUserAgent()
  for (const [index, app] of apps.entries()) {
    const { url } = await (await partyOf(h, app)).begin()
    const first = index === 0 ? await h.login(browser, url, user.username) : await browser.get(url)
    expect((await h.follow(browser, first)).location).to.include('code=')
  }
}

const done = (answer: Answer) => {
  expect([answer.status, answer.mode]).to.deep.equal([200, 'done'])
  return decodeEntities(answer.text).replaceAll(/[\u2068\u2069]/g, '')
}

const resetOf = async (h: Harness, user: Person) => done(await h.reset(await user.forgets(), NEW))

/** The text of the mail that tells of a changed password, in one line. */
async function noticeTo(h: Harness, { email = '' }: Person): Promise<string> {
  const isNotice = ({ to, kind }: Harness['mail']['mails'][number]) =>
    kind === 'password_changed' && to.includes(email)
  const found = await eventually('the notice', () => h.mail.mails.find(isNotice))
  return (found.mail.text ?? '').replaceAll(/[\u2060\u2068\u2069]/g, '').replaceAll(/\s+/g, ' ')
}

onBothStores('The apps that a person was signed in to', (technology) => {
  const apps = {} as Record<'shop' | 'nameless' | 'mail' | 'wiki' | 'refusing' | 'down', App>
  const others: App[] = []
  let close = async () => {}
  const h = suiteHarness(async () => {
    const { app, ...server } = await clientServer()
    close = server.close
    Object.assign(apps, {
      shop: app('shop', 'Shop', 200),
      nameless: app('nameless', undefined, 200),
      mail: app('mail', 'Mail'),
      wiki: app('wiki', HOSTILE),
      refusing: app('refusing', 'Refusing', 400),
      down: app('down', 'Down', 503),
    })
    for (let n = 1; n <= 12; n++) others.push(app(`other${n}`, `Other ${n}`, 200))
    return {
      technology,
      clients: [...Object.values(apps), ...others],
      flows: { clientLogout: { allowPrivateNetworks: true } },
      provider: {
        features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
      },
      settings: { password_changed_email: 'true' },
      mayLogErrors: true,
    }
  })
  after(() => close())
  const admin: AdminClient = suiteAdmin(h)

  it('are named on the page and in the mail: those that are told, and those that cannot be', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, [apps.shop, apps.mail])
    const page = await resetOf(h, user)
    const mail = await noticeTo(h, user)
    for (const text of [page, mail]) {
      expect(text).to.contain(`${TOLD}Shop.`).and.contain(`${UNTOLD}Mail.`)
      expect(text).to.not.contain(UNKNOWN)
    }
    expect(page).to.not.match(/<a [^>]*example/)
    expect(await user.hasPassword(NEW)).to.equal(true)
  })

  it('have their id where they have no name; those of another account are not named', async () => {
    const [user, other] = [await addVerified(h), await addVerified(h)]
    await signInTo(h, user, [apps.nameless])
    await signInTo(h, other, [apps.shop])
    expect(await resetOf(h, user))
      .to.contain(`${TOLD}nameless.`)
      .and.not.contain('Shop')
    expect(await resetOf(h, other))
      .to.contain(`${TOLD}Shop.`)
      .and.not.contain('nameless')
  })

  it('are none: neither page nor mail says a word of apps', async () => {
    const user = await addVerified(h)
    const page = await resetOf(h, user)
    for (const text of [page, await noticeTo(h, user)])
      for (const sentence of [TOLD, UNTOLD, UNKNOWN]) expect(text).to.not.contain(sentence)
  })

  it('are many: ten are named, and the others counted', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, others)
    const named = (await resetOf(h, user)).match(/Other \d+/g)
    expect(new Set(named).size).to.equal(10)
    expect(await noticeTo(h, user)).to.match(/sign you out: (Other \d+, ){10}and 2 more\./)
  })

  it('are a text, whatever they call themselves (XSS-01, MAIL-04)', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, [apps.wiki])
    const link = await user.forgets()
    const answer = await h.reset(link, NEW)
    expect(done(answer)).to.contain(`${UNTOLD}<a href="https://evil.example">Win</a>.`)
    expect(answer.text).to.not.contain('<a href="https://evil')
    expect(await noticeTo(h, user))
      .to.contain('Win')
      .and.not.contain('https://evil')
  })

  it('are named after a first password', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, [apps.shop])
    await user.becomes({ passwordHash: undefined, emailVerified: false })
    const page = done(await choose(h, await user.isInvited(), NEW))
    expect(page).to.contain(`${TOLD}Shop.`)
  })

  it('refuse for a day: the status says so', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, [apps.refusing, apps.shop, apps.mail])
    expect(done(await h.reset(await user.forgets(), NEW))).to.match(
      /Sign out there yourself: [\w ]*Mail/,
    )
    const over = { told: 1, waiting: 0, failed: 1, untold: 1 }
    const statusOnce = (waiting: number) =>
      eventually(`${waiting} wait`, async () => {
        const status = await admin.userStatus({ id: user.id })
        return status.clients?.told === 1 && status.clients.waiting === waiting && status
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

  it('that gave up are named as those that cannot be told', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, [apps.shop, apps.mail])
    const link = await user.forgets()
    const { clientLogouts } = h.store
    const { find } = clientLogouts
    clientLogouts.find = async (which) =>
      (await find(which)).map((logout) => ({ ...logout, state: 'dead' }))
    try {
      const page = done(await h.reset(link, NEW))
      for (const text of [page, await noticeTo(h, user)])
        expect(text)
          .to.match(/there yourself: (Shop and Mail|Mail and Shop)\./)
          .and.not.contain(TOLD)
    } finally {
      clientLogouts.find = find
    }
  })

  it('are counted for an admin who ends the sessions, also at the command line', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, [apps.shop, apps.mail, apps.down])
    const run = (...args: string[]) =>
      runCli(args, { env: { ACCOUNT_FLOWS_URL: h.baseUrl, ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN } })
    const { stdout } = await run('user', 'end-sessions', user.username, '--yes')
    expect(stdout)
      .to.match(/^Clients that are told to sign the person out: 2$/m)
      .and.match(/^Clients that cannot be told: 1$/m)
    await eventually('the shop is told', async () =>
      /^clients of the last end +1 told, 1 waiting, 0 failed, 1 cannot be told$/m.test(
        (await run('user', 'status', user.username)).stdout,
      ),
    )
    const { clients } = await h.flows.endSessions(user.id)
    expect(clients).to.deep.equal({ told: 0, untold: 0 })
    await signInTo(h, user, [apps.shop])
    expect((await admin.endSessions({ id: user.id })).clients).to.deep.equal({ told: 1, untold: 0 })
    expect((await h.flows.endSessions('nobody')).clients).to.deep.equal({ told: 0, untold: 0 })
  })

  it('cannot be read: the reset is done all the same, and nobody is told that all is well', async () => {
    const user = await addVerified(h)
    await signInTo(h, user, [apps.shop])
    const link = await user.forgets()
    const { clientLogouts } = h.store
    const { find } = clientLogouts
    clientLogouts.find = () => Promise.reject(new Error('away'))
    try {
      expect(done(await h.reset(link, NEW))).to.contain(UNKNOWN)
      expect(await noticeTo(h, user)).to.contain(UNKNOWN)
      expect(await h.flows.endSessions(user.id)).to.have.keys('oauth', 'idp')
    } finally {
      clientLogouts.find = find
    }
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(await resetOf(h, user)).to.not.contain(UNKNOWN)
  })
})

describe('The apps of a provider that tells none', () => {
  const h = suiteHarness({ settings: { password_changed_email: 'true' } })
  const admin = suiteAdmin(h)

  it('are not asked for; page and mail ask the person to sign out there, and claim nothing', async () => {
    const user = await addVerified(h)
    await h.signIn(createUserAgent(), user.username)
    let asked = 0
    const { find } = h.store.clientLogouts
    h.store.clientLogouts.find = (which) => {
      asked += 1
      return find(which)
    }
    const page = await resetOf(h, user)
    for (const text of [page, await noticeTo(h, user)]) {
      expect(text).to.contain(UNKNOWN).and.contain('out of your account on all devices')
      expect(text).to.not.match(/everywhere|apps were|The App/)
    }
    expect(await h.flows.endSessions(user.id)).to.have.keys('oauth', 'idp')
    expect(await admin.endSessions({ id: user.id })).to.not.have.property('clients')
    expect(await admin.userStatus({ id: user.id })).to.not.have.property('clients')
    await isIdle(h)
    expect(asked).to.equal(0)
  })
})
