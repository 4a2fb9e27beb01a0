import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import { secondAfter } from '../../src/ports/login-end.ts'
import { memoryStore, type AccountFlowsStore } from '../../src/index.ts'
import { silently } from '../support/blocked-login.ts'
import { partyOf } from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, CONFIDENTIAL, startHarness } from '../support/harness.ts'
import * as asked from '../support/oauth-requests.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { accountOf, addVerified, sessionId, setsSession, tokenOf } from '../support/person.ts'

const NEW = 'a new password'
const SECOND = {
  ...CLIENT,
  client_id: 'second',
  redirect_uris: ['https://second.example/cb'],
} as const satisfies ClientMetadata

describe('A reset, where the account is signed in in many places (SES-01, SES-06, SES-11)', () => {
  const h = suiteHarness({ clients: [CLIENT, CONFIDENTIAL, SECOND] })

  it('ends them all, of every client, leaves a neighbour alone, and signs nobody in', async () => {
    const [user, neighbour] = [await addVerified(h), await addVerified(h)]
    const parties = [h.party, await partyOf(h, SECOND)]
    const browsers = [createUserAgent(), createUserAgent(), createUserAgent()]
    const tokens = []
    for (const agent of browsers) {
      for (const party of parties) {
        const request = await party.begin(asked.OFFLINE)
        const page = await h.follow(agent, await agent.get(request.url))
        if (page.mode === 'login') {
          await h.follow(agent, await asked.postLogin(h, agent, user))
        }
        const { location = '' } = await asked.consent(h, agent)
        const { access_token, refresh_token = '' } = await party.exchange(request, location)
        const clientId = party.config.clientMetadata().client_id
        tokens.push({ access_token, refresh_token, clientId })
      }
      expect(await accountOf(h, agent)).to.equal(user.id)
    }
    const other = createUserAgent()
    await h.signIn(other, neighbour.username)
    expect(tokens).to.have.length(6)

    const link = await user.forgets()
    const [resetter] = browsers
    const form = { token: tokenOf(link), password: NEW, confirm_password: NEW }
    const before = sessionId(h, resetter ?? other)
    const done = await resetter?.post(`${h.oauthUrl}/reset-password`, form)
    expect(done?.mode).to.equal('done')
    expect(done?.headers.getSetCookie()).to.deep.equal([])
    expect(sessionId(h, resetter ?? other)).to.equal(before)

    for (const agent of browsers) {
      expect((await silently(h, agent)).get('error')).to.equal('login_required')
    }
    for (const { access_token, refresh_token, clientId } of tokens) {
      expect(await asked.userinfo(h, access_token)).to.equal(401)
      const again = { grant_type: 'refresh_token', client_id: clientId, refresh_token }
      const answer = await createUserAgent().post(`${h.oauthUrl}/token`, again)
      expect(JSON.parse(answer.text)['error']).to.equal('invalid_grant')
      expect(await h.provider.RefreshToken.find(refresh_token)).to.equal(undefined)
    }
    expect(await accountOf(h, other)).to.equal(neighbour.id)
    const back = await h.signIn(createUserAgent(), user.username, NEW)
    expect(back.location).to.include('code=')
    expect(setsSession(await createUserAgent().get(link))).to.equal(false)
  })
})

describe('A reset whose effects fail on the way (SES-08, SES-09, I7)', () => {
  /** Each fails once, at the named effect. */
  const failures: Record<string, (store: AccountFlowsStore, fail: () => Promise<void>) => void> = {
    'the token cannot be marked'({ resetTokens }, fail) {
      const { advance } = resetTokens
      resetTokens.advance = async (id, step, at) => {
        if (step === 'used') await fail()
        return advance(id, step, at)
      }
    },
    'OAuth sessions cannot be ended'({ cutoffs }, fail) {
      failEnd(cutoffs, 'oauth', fail)
    },
    'IdP sessions cannot be ended'({ cutoffs }, fail) {
      failEnd(cutoffs, 'idp', fail)
    },
    'the event cannot be recorded'({ audit }, fail) {
      const { record } = audit
      audit.record = async (event, keepMs) => {
        if (event.type === 'password_reset_completed') await fail()
        return record(event, keepMs)
      }
    },
  }

  function failEnd(
    cutoffs: AccountFlowsStore['cutoffs'],
    failing: 'oauth' | 'idp',
    fail: () => Promise<void>,
  ) {
    const { end } = cutoffs
    cutoffs.end = async (accountId, kind, ended) => {
      if (kind === failing) await fail()
      return end(accountId, kind, ended)
    }
  }

  it('is finished by itself, ends what was signed in, and is recorded once, whatever failed', () =>
    Promise.all(
      Object.entries(failures).map(([what, failing]) =>
        isFinished(failing).catch((error: unknown) => {
          throw new Error(`${what}: ${String(error)}`, { cause: error })
        }),
      ),
    ))

  async function isFinished(failing: (typeof failures)[string]) {
    let failed = 0
    const store = memoryStore()
    const { takeUnfinished } = store.resetTokens
    // Its lease has run out already.
    store.resetTokens.takeUnfinished = (at, leaseUntil) =>
      takeUnfinished(new Date(at.getTime() + 60_000), leaseUntil)
    failing(store, async () => {
      failed += 1
      if (failed === 1) throw new Error('the database hiccups')
    })
    const h = await startHarness({ flows: { store }, mayLogErrors: true })
    try {
      const user = await addVerified(h)
      const thief = createUserAgent()
      await h.signIn(thief, user.username)
      const link = await user.forgets()
      const answer = await h.reset(link, NEW)
      expect([answer.status, answer.mode]).to.deep.equal([500, 'error'])
      expect(answer.text).not.to.include('hiccups')
      await eventually('the reset is finished', async () => {
        await moveTime(1_000)
        return user.events('password_reset_completed').at(0)
      })
      await secondAfter(movableClock, new Date())
      expect(await user.hasPassword(NEW)).to.equal(true)
      expect((await silently(h, thief)).get('error')).to.equal('login_required')
      expect((await h.reset(link, 'another one')).mode).to.equal('invalid')
      const back = await h.signIn(createUserAgent(), user.username, NEW)
      expect(back.location).to.include('code=')
      expect(user.events('password_reset_completed')).to.have.length(1)
      expect(failed).to.equal(2)
    } finally {
      await h.close()
    }
  }
})
