import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { accountOf, addVerified, setsSession, silently } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, CONFIDENTIAL, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'

const NEW_PASSWORD = 'a new password, longer'
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const OFFLINE = { scope: 'openid email offline_access', prompt: 'consent' }

const TV = {
  client_id: 'tv',
  redirect_uris: [],
  response_types: [],
  grant_types: [DEVICE_CODE],
  token_endpoint_auth_method: 'none',
} as const

onBothStores('What a password reset ends (3.3, effects 3 and 4)', (technology) => {
  let h: Harness
  let ann: Awaited<ReturnType<typeof prepare>>
  /** In the same state, and with the same requests afterwards: the test of the tests. */
  let bob: Awaited<ReturnType<typeof prepare>>
  let machine: string

  before(async () => {
    const clients = [CLIENT, CONFIDENTIAL, TV].map((client) => ({ ...client }))
    h = await startHarness({ technology, clients } as never)
    ann = await prepare(await addVerified(h))
    bob = await prepare(await addVerified(h))
    const { client_id, client_secret } = CONFIDENTIAL
    machine = (await post('/token', { grant_type: 'client_credentials', client_id, client_secret }))[
      'access_token'
    ] as string
    const done = await h.reset(await h.resetLink(ann.user), NEW_PASSWORD)
    expect([done.status, done.mode]).to.deep.equal([200, 'done'])
  })

  after(() => h.close())

  async function prepare(user: User) {
    const session = createUserAgent()
    await h.signIn(session, user.username)
    const code = await h.party.begin()
    const codeAnswer = await session.get(code.url)
    const parkedInSession = await h.party.begin(OFFLINE)
    await h.follow(session, await session.get(parkedInSession.url))
    return { user, session }
  }

  async function post(path: string, form: Record<string, string>) {
    const answer = await createUserAgent().post(h.oauthUrl + path, form)
    return JSON.parse(answer.text) as Record<string, unknown>
  }
})
