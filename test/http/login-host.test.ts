import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { koaHost } from '../../examples/hosts/koa.ts'
import { Provider, interactionPolicy } from 'oidc-provider'
import { memoryAdapter, type AccountFlows, type User } from '../../src/index.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  expectNothingChanged,
  expectOnlyVerified,
  expectStillWorks,
  isVerified,
  mailsTo,
  sessionId,
  setsSession,
  silently,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

type HostLogin = (
  req: IncomingMessage,
  res: ServerResponse,
  user: User,
  startedAt: number,
) => Promise<void>

const second = () => Math.floor(Date.now() / 1000)

onBothStores('What a host’s login calls (4.8)', (technology) => {
  let harness: Harness
  let flows: AccountFlows
  let hostLogin: HostLogin
  let thrown: unknown

  before(async () => {
    harness = await startHarness({
      technology,
      host: (parts) =>
        koaHost({
          ...parts,
          async login(req, res) {
            if (req.method !== 'POST') return parts.login(req, res)
            const startedAt = parts.flows.loginStarted()
            const form = new URLSearchParams(await text(req))
            const user = await harness.users.findByUsername(form.get('username') ?? '')
            if (!user) throw new Error('the tests only sign in users that exist')
            res.setHeader('content-type', 'text/html; charset=utf-8')
            try {
              await hostLogin(req, res, user, startedAt)
            } catch (error) {
              thrown = error
              res.writeHead(500).end()
            }
          },
        }),
    })
    ;({ flows } = harness)
  })
  after(() => harness.close())
  beforeEach(() => {
    hostLogin = (req, res, account, startedAt) =>
      flows.finishLogin(req, res, { account, startedAt })
    thrown = undefined
  })

  for (const [title, accountOfUser] of [
    ['the user’s record', (user: User) => user],
    ['the user’s id', (user: User) => user.id],
  ] as const) {
    it(`blocks or finishes, given ${title}`, async () => {
      hostLogin = (req, res, user, startedAt) =>
        flows.finishLogin(req, res, { account: accountOfUser(user), startedAt })
      await expectStillWorks(harness, await blockedLogin(harness))
      const agent = createUserAgent()
      const verified = await addVerified(harness)
      expect((await harness.signIn(agent, verified.username)).location).to.match(/[?&]code=/)
      expect(await accountOf(harness, agent)).to.equal(verified.id)
    })

    it(`answers only when it blocks, given ${title}: blockUnverified`, async () => {
      const answers: boolean[] = []
      hostLogin = async (req, res, user, startedAt) => {
        const login = { account: accountOfUser(user), startedAt }
        const isBlocked = await flows.blockUnverified(req, res, login)
        answers.push(isBlocked)
        expect(res.writableEnded).to.equal(isBlocked)
        if (isBlocked) return
        const { provider } = harness
        await provider.interactionFinished(req, res, { login: { accountId: user.id } })
      }
      await expectStillWorks(harness, await blockedLogin(harness))
      const agent = createUserAgent()
      const verified = await addVerified(harness)
      expect((await harness.signIn(agent, verified.username)).location).to.match(/[?&]code=/)
      await harness.put({ require_email_verification: 'false' })
      const back = await harness.signIn(createUserAgent(), (await addUnverified(harness)).username)
      await harness.put({ require_email_verification: 'true' })
      expect(back.location).to.match(/[?&]code=/)
      expect(answers).to.deep.equal([true, false, false])
    })
  }

  it('goes by the id alone for a user whose record says verified since', async () => {
    const user = await addUnverified(harness)
    hostLogin = async (req, res, found, startedAt) => {
      await harness.users.markEmailVerified(user.id, user.email ?? '')
      await flows.finishLogin(req, res, { account: found.id, startedAt })
    }
    const back = await harness.signIn(createUserAgent(), user.username)
    expect(back.location).to.match(/[?&]code=/)
    expect(mailsTo(harness, user)).to.equal(0)
  })

  it('keeps acr, amr and remember for the session that the link creates', async () => {
    hostLogin = (req, res, account, startedAt) =>
      flows.finishLogin(req, res, {
        account,
        startedAt,
        acr: 'gold',
        amr: ['pwd'],
        remember: false,
      })
    const login = await blockedLogin(harness)
    const answer = await login.agent.get(login.link)
    const cookies = answer.headers.getSetCookie().filter((line) => line.startsWith('_session='))
    expect(cookies).to.have.length(1)
    expect(cookies[0]).to.not.match(/expires/i)
    const session = await harness.provider.Session.find(sessionId(harness, login.agent) ?? '')
    expect([session?.acr, session?.amr]).to.deep.equal(['gold', ['pwd']])
  })

  it('dates the session at the login, and not at the click', async () => {
    let began = 0
    hostLogin = (req, res, account, startedAt) => {
      began = startedAt - 30
      return flows.finishLogin(req, res, { account, startedAt: began })
    }
    const login = await blockedLogin(harness)
    await expectStillWorks(harness, login)
    const session = await harness.provider.Session.find(sessionId(harness, login.agent) ?? '')
    expect(session?.loginTs).to.equal(began)
  })

  it('refuses a startedAt that is not from loginStarted()', async () => {
    const user = await addUnverified(harness)
    const verified = await addVerified(harness)
    const wrong: unknown[] = [Date.now(), second() + 3600, second() + 0.5, NaN, Infinity]
    for (const startedAt of [...wrong, undefined, null, String(second()), new Date()]) {
      for (const call of ['finishLogin', 'blockUnverified'] as const) {
        hostLogin = async (req, res, account) => {
          await flows[call](req, res, { account, startedAt: startedAt as number })
        }
        for (const { username } of [user, verified]) {
          const agent = createUserAgent()
          thrown = undefined
          const { url } = await harness.party.begin()
          const answer = await harness.login(agent, url, username)
          expect(thrown, String(startedAt)).to.be.instanceOf(TypeError)
          expect(String(thrown)).to.include('loginStarted()')
          expect(answer.status).to.equal(500)
          await expectNothingChanged(harness, { user, agent }, answer)
        }
      }
    }
    hostLogin = (req, res, account, startedAt) =>
      flows.finishLogin(req, res, { account, startedAt })
    const login = await blockedLogin(harness, { user })
    expect(mailsTo(harness, user)).to.equal(1)
    await expectStillWorks(harness, login)
  })

  it('tells the second of the login, whole', () => {
    const before = second()
    const startedAt = flows.loginStarted()
    expect(Number.isInteger(startedAt)).to.equal(true)
    expect(startedAt).to.be.within(before, second())
  })

  describe('when a reset runs between the check of the old password and the end of the login', () => {
    async function resetWhileChecking(user: User) {
      const link = await harness.resetLink(user)
      hostLogin = async (req, res, account, startedAt) => {
        expect((await harness.reset(link, 'a brand new password')).mode).to.equal('done')
        await flows.finishLogin(req, res, { account, startedAt })
      }
    }

    it('ends a login dead: no session and no code', async () => {
      const user = await addVerified(harness)
      await resetWhileChecking(user)
      const agent = createUserAgent()
      const { url } = await harness.party.begin()
      const answer = await harness.follow(agent, await harness.login(agent, url, user.username))
      expect(answer.location).to.equal(undefined)
      expect(answer.status).to.equal(400)
      expect(setsSession(answer)).to.equal(false)
      expect(sessionId(harness, agent)).to.equal(undefined)
      expect((await silently(harness, agent)).get('error')).to.equal('login_required')

      hostLogin = (req, res, account, startedAt) =>
        flows.finishLogin(req, res, { account, startedAt })
      const fresh = createUserAgent()
      expect((await harness.signIn(fresh, user.username)).location).to.match(/[?&]code=/)
    })

    it('lets the link of a blocked login verify, and sign nobody in', async () => {
      const user = await addUnverified(harness)
      await resetWhileChecking(user)
      const agent = createUserAgent()
      const { url } = await harness.party.begin()
      const answer = await harness.login(agent, url, user.username)
      expect(answer.mode).to.equal('blocked')
      await expectNothingChanged(harness, { user, agent }, answer)
      // The first mail was the one with the reset link.
      const { link } = await harness.mail.mailTo(user.email ?? '', 2)
      expect(link).to.include('/verify-email?')
      await expectOnlyVerified(harness, { user, agent }, await agent.get(link))
    })
  })

  it('refuses to attach to a provider whose adapter is not flows.adapter(…)', async () => {
    const issuer = harness.oauthUrl
    const interactions = { policy: flows.policy(interactionPolicy.base()) }
    const other = await startHarness()
    for (const adapter of [
      undefined,
      memoryAdapter(),
      class {
        find = async () => undefined
        findByUid = async () => undefined
        findByUserCode = async () => undefined
        upsert = async () => {}
        consume = async () => {}
        destroy = async () => {}
        revokeByGrantId = async () => {}
      },
      other.flows.adapter(memoryAdapter()),
    ]) {
      const provider = new Provider(issuer, { interactions, ...(adapter && { adapter }) })
      expect(() => flows.attach(provider)).to.throw(TypeError, /flows\.adapter.*memoryAdapter\(\)/)
    }
    await other.close()
    const login = await blockedLogin(harness)
    await expectStillWorks(harness, login)
    expect(await isVerified(harness, login.user)).to.equal(true)
  })
})
