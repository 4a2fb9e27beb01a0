import { expect } from 'chai'
import { type Harness, startHarness } from '../support/harness.ts'
import { byAnotherClock } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { addVerified } from '../support/person.ts'

const GRANT = 'urn:openid:params:grant-type:ciba'
const SECRET = 'a secret of the ciba client'
const authorization = `Basic ${Buffer.from(`ciba:${encodeURIComponent(SECRET)}`).toString('base64')}`

describe('A sign-in that the client asks for by itself (CIBA), and a reset', () => {
  let h: Harness
  let asked: { jti: string } | undefined

  before(async () => {
    h = await startHarness({
      clients: [
        {
          client_id: 'ciba',
          client_secret: SECRET,
          grant_types: [GRANT],
          redirect_uris: [],
          response_types: [],
          backchannel_token_delivery_mode: 'poll',
        },
      ],
      provider: {
        features: {
          devInteractions: { enabled: false },
          ciba: {
            enabled: true,
            deliveryModes: ['poll'],
            processLoginHintToken: async () => undefined,
            processLoginHint: async (_ctx: unknown, hint?: string) => hint,
            validateRequestContext: async () => {},
            validateBindingMessage: async () => {},
            verifyUserCode: async () => {},
            async triggerAuthenticationDevice(_ctx: unknown, request: { jti: string }) {
              asked = request
            },
          },
        },
      },
    })
  })
  after(() => h.close())

  async function post(path: string, form: Record<string, string>) {
    const { text } = await createUserAgent().post(`${h.oauthUrl}${path}`, form, { authorization })
    return JSON.parse(text) as Record<string, unknown>
  }

  async function ask(accountId: string) {
    const { auth_req_id: id } = await post('/backchannel', {
      scope: 'openid',
      login_hint: accountId,
    })
    return () => post('/token', { grant_type: GRANT, auth_req_id: String(id) })
  }

  /** As the host does once the person agreed on another device. */
  async function agree(accountId: string) {
    const grant = new h.provider.Grant({ accountId, clientId: 'ciba' })
    grant.addOIDCScope('openid')
    await grant.save()
    await h.provider.backchannelResult(asked?.jti ?? '', grant, {})
  }

  for (const skewMs of [0, 2_000]) {
    it(`is good right after it, by a clock that is ${skewMs} ms ahead (FLT-14)`, async () => {
      const { id, ...user } = await addVerified(h)
      const link = await h.resetLink({ id, ...user })
      await byAnotherClock(skewMs, () => h.reset(link, 'a brand new password'))
      const poll = await ask(id)
      await agree(id)
      expect(await poll()).to.include.keys('id_token')
    })

    it(`is ended by it where it was agreed to before, by a clock that is ${skewMs} ms ahead (FLT-14)`, async () => {
      const { id, ...user } = await addVerified(h)
      const link = await h.resetLink({ id, ...user })
      const poll = await ask(id)
      await byAnotherClock(skewMs, () => agree(id))
      await h.reset(link, 'a brand new password')
      expect(await poll()).to.include({ error: 'invalid_grant' })
    })
  }
})
