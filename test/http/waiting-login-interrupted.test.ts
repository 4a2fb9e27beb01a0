import { expect } from 'chai'
import {
  blockedLogin,
  expectResumed,
  expectStillWorks,
  isVerified,
  sessionId,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { suiteHarnessBehindProxy } from '../support/harness-behind-proxy.ts'
import type { Moment } from '../support/mongo-proxy.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { expectMode, windowOf } from '../support/waiting-window.ts'

const LIMITS = { serverSelectionTimeoutMS: 5_000, socketTimeoutMS: 5_000 }

describeWithMongo(
  'A login that waits, when the database fails between two steps (D15) [full]',
  () => {
    const { h, proxy } = suiteHarnessBehindProxy(LIMITS, { mayLogErrors: true })

    /** The connection is lost at this write, and the page says that it can be tried again. */
    async function failing(
      collection: string,
      when: Moment['when'],
      work: () => Promise<Answer>,
    ): Promise<void> {
      const isWrite = (name: string) => ['insert', 'update', 'findAndModify'].includes(name)
      const outage = proxy.interrupt(
        { matches: (command) => command.collection === collection && isWrite(command.name), when },
        async () => {},
      )
      const answer = await work()
      expect((await outage.happened)?.collection).to.equal(collection)
      expect([answer.status, answer.mode]).to.deep.equal([503, 'unavailable'])
      expect(answer.location).to.equal(undefined)
      expect(answer.headers.getSetCookie()).to.deep.equal([])
    }

    /** Nothing is lost: a login that begins now goes through. */
    async function expectNextLoginWorks({ agent, user }: BlockedLogin) {
      const { location } = await h.signIn(agent, user.username)
      expect(location).to.match(/[?&]code=/)
    }

    it('before the address is verified: nothing is used, and the link does all of its work', async () => {
      const login = await blockedLogin(h)
      await failing('users', 'before', () => login.agent.get(login.link))
      expect(await isVerified(h, login.user)).to.equal(false)
      expect(await windowOf(h, login).status()).to.equal('waiting')
      await expectStillWorks(h, login)
    })

    for (const [collection, when, step] of [
      ['users', 'after', 'the address is verified, and nobody was told'],
      ['email_verification_tokens', 'before', 'before the token is marked used'],
      ['email_verification_tokens', 'after', 'the token is marked used'],
      ['pending_logins', 'before', 'before the windows are told'],
      ['pending_logins', 'after', 'the windows are told, and the answer is lost'],
    ] as const) {
      it(`${step}: the link says verified, and the button of the window goes on`, async () => {
        const login = await blockedLogin(h)
        const elsewhere = createUserAgent()
        await failing(collection, when, () => elsewhere.get(login.link))
        expect(await isVerified(h, login.user)).to.equal(true)
        expect(sessionId(h, elsewhere)).to.equal(undefined)
        const again = await elsewhere.get(login.link)
        expect(again.mode).to.be.oneOf(['verified', 'expired'])
        expect(again.location).to.equal(undefined)
        await expectResumed(h, login, await windowOf(h, login).goOn())
      })
    }

    it('in the browser that logged in, before the turn is taken: the window still has it', async () => {
      const login = await blockedLogin(h)
      await failing('pending_logins', 'before', () => login.agent.get(login.link))
      await expectResumed(h, login, await windowOf(h, login).goOn())
    })

    it('before the window takes its turn: it tries again', async () => {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      await createUserAgent().get(login.link)
      await failing('pending_logins', 'before', () => window.goOn())
      await expectResumed(h, login, await window.goOn())
    })

    for (const [collection, when, step] of [
      ['pending_logins', 'after', 'the turn is taken, and the answer is lost'],
      ['interaction', 'before', 'the turn is taken, and the provider was not reached'],
    ] as const) {
      it(`${step}: the window says that it went on already, and the next sign-in goes through`, async () => {
        const login = await blockedLogin(h)
        const window = windowOf(h, login)
        await createUserAgent().get(login.link)
        await failing(collection, when, () => window.goOn())
        expectMode(await window.goOn(), 400, 'continued')
        expect(sessionId(h, login.agent)).to.equal(undefined)
        await expectNextLoginWorks(login)
        expectMode(await window.goOn(), 200, 'signed_in')
      })
    }
  },
)
