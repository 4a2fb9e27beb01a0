import type { Person } from '../support/person.ts'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import type { Adapter, ClientMetadata, Configuration } from 'oidc-provider'
import { expectNothingChanged } from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { CLIENT, PASSWORD } from '../support/harness.ts'
import {
  beginDevice,
  confirmDevice,
  consent,
  DEVICE_CLIENT,
  postLogin,
  type DeviceRequest,
} from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode } from '../support/waiting-window.ts'
import { accountOf, addUnverified, addVerified, setsSession, codeIn } from '../support/person.ts'

/** Nobody is asked for consent but the users of native clients. */
const NATIVE_DEVICE: ClientMetadata = {
  ...DEVICE_CLIENT,
  client_id: 'console',
  application_type: 'native',
}

const FEATURES: Configuration['features'] = {
  devInteractions: { enabled: false },
  deviceFlow: {
    enabled: true,
    successSource(ctx) {
      ctx.body = '<main data-page="device" data-mode="done">Go back to your device.</main>'
    },
  },
}

/** The person, the device that shows a code, and the login that waits for the link. */
interface DeviceLogin {
  user: Person
  agent: UserAgent
  device: DeviceRequest
  /** Uid of the provider's interaction. */
  interaction: string
  blocked: Answer
  link: string
  code: string
}

describe('A login in the device flow that waits for its verification link', () => {
  const h = suiteHarness({
    clients: [CLIENT, DEVICE_CLIENT, NATIVE_DEVICE],
    provider: { features: FEATURES },
  })

  async function blockedDevice(client = DEVICE_CLIENT): Promise<DeviceLogin> {
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const device = await beginDevice(h, client)
    const page = await confirmDevice(h, agent, device)
    expect([page.page, page.mode]).to.deep.equal(['login', 'login'])
    const form = { username: user.username, password: PASSWORD }
    const blocked = await agent.post(`${h.oauthUrl}/login`, form)
    expectMode(blocked, 200, 'blocked')
    const { link, mail } = await h.mail.mailTo(user.email ?? '')
    const code = codeIn(mail) ?? ''
    const interaction = new URL(page.url).searchParams.get('interaction') ?? ''
    return { user, agent, device, interaction, blocked, link, code }
  }

  const tokenAnswer = async ({ device_code }: DeviceRequest, { client_id } = DEVICE_CLIENT) => {
    const answer = await createUserAgent().post(`${h.oauthUrl}/token`, {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      client_id: client_id ?? '',
      device_code,
    })
    return JSON.parse(answer.text) as { error?: string; id_token?: string }
  }

  /** What the host shows at the end of the device flow. */
  function expectGoBack(answer: Answer) {
    expectPage(answer, 200, 'device', 'done')
  }

  async function expectSignedIn({ device, user }: DeviceLogin, client = DEVICE_CLIENT) {
    const { id_token: idToken = '' } = await tokenAnswer(device, client)
    expect(decodeJwt(idToken)).to.include({ sub: user.id, aud: client.client_id })
    expect((await tokenAnswer(device, client)).error).to.equal('invalid_grant')
  }

  const expectWaiting = async ({ device }: DeviceLogin) =>
    expect((await tokenAnswer(device)).error).to.equal('authorization_pending')

  it('signs the device in when the link is opened, in the same browser and in another', async () => {
    for (const isSame of [true, false]) {
      const login = await blockedDevice()
      await expectWaiting(login)
      const agent = isSame ? login.agent : createUserAgent()
      expectGoBack(await agent.get(login.link))
      expect(await login.user.isVerified()).to.equal(true)
      expect(await accountOf(h, agent)).to.equal(login.user.id)
      await expectSignedIn(login)
    }
  })

  it('tells the window that waited that it is signed in, once the link has signed the device in', async () => {
    const login = await blockedDevice()
    expect((await login.goesOn()).mode).to.equal('blocked')
    expectGoBack(await createUserAgent().get(login.link))
    for (const _time of [1, 2]) {
      const over = await login.goesOn()
      expectPage(over, 200, 'verify-email', 'signed_in')
      expect(setsSession(over)).to.equal(false)
    }
    await expectSignedIn(login)
  })

  it('signs the device in by the code, where the link was opened elsewhere', async () => {
    await h.put({ email_link_confirmation: 'other_browser' })
    const login = await blockedDevice()
    const elsewhere = createUserAgent()
    const page = await elsewhere.get(login.link)
    expectMode(page, 200, 'elsewhere')
    await expectNothingChanged(h, { ...login, agent: elsewhere }, page)
    await expectWaiting(login)
    expectGoBack(await login.types(login.code))
    await expectSignedIn(login)
    const again = await login.goesOn()
    expectMode(again, 200, 'signed_in')
    await h.put({ email_link_confirmation: 'off' })
  })

  it('gives a browser without its cookie nothing, and the device neither', async () => {
    const login = await blockedDevice()
    await h.users.markEmailVerified(login.user.id, login.user.email ?? '')
    const stranger = await login.in(createUserAgent()).goesOn()
    expectMode(stranger, 400, 'ended')
    await expectWaiting(login)
    expectGoBack(await login.goesOn())
    await expectSignedIn(login)
  })

  it('asks for the consent that the device needs, and signs it in after that', async () => {
    for (const isSame of [true, false]) {
      const login = await blockedDevice(NATIVE_DEVICE)
      const agent = isSame ? login.agent : createUserAgent()
      const answer = await agent.get(login.link)
      expect(answer.status).to.equal(302)
      const question = await h.follow(agent, answer)
      expect([question.page, question.mode]).to.deep.equal(['login', 'consent'])
      const { error } = await tokenAnswer(login.device, NATIVE_DEVICE)
      expect(error).to.equal('authorization_pending')
      expectGoBack(await consent(h, agent))
      await expectSignedIn(login, NATIVE_DEVICE)
    }
  })

  it('tells the device where the person cancels, and signs nobody in afterwards', async () => {
    const login = await blockedDevice()
    const answer = await login.goesOn({ action: 'cancel' })
    expect(answer.location).to.equal(undefined)
    expect(await login.account()).to.equal(undefined)
    expect((await tokenAnswer(login.device)).error).to.equal('access_denied')
    expectMode(await login.goesOn(), 400, 'ended')
    expectMode(await login.agent.get(login.link), 200, 'verified')
    expect((await tokenAnswer(login.device)).error).to.equal('invalid_grant')
  })

  it('signs the device in with another account of the person', async () => {
    const login = await blockedDevice()
    const user = await addVerified(h)
    const answer = await login.goesOn({ action: 'other_account' })
    expect((await h.follow(login.agent, answer)).page).to.equal('login')
    await expectWaiting(login)
    expectGoBack(await h.follow(login.agent, await postLogin(h, login.agent, user)))
    await expectSignedIn({ ...login, user })
    expect(await login.user.isVerified()).to.equal(false)
  })

  it('confirms the address, and says so without an error, after the code of the device ran out', async () => {
    const login = await blockedDevice()
    const { adapter } = h.provider.DeviceCode as unknown as { adapter: Adapter }
    const interaction = await h.provider.Interaction.find(login.interaction)
    await adapter.destroy(interaction?.deviceCode ?? '')
    const answer = await createUserAgent().get(login.link)
    expectMode(answer, 200, 'verified')
    expect(setsSession(answer)).to.equal(false)
    expect(await login.user.isVerified()).to.equal(true)
    const window = await login.goesOn()
    expectMode(window, 200, 'verified')
    expect((await tokenAnswer(login.device)).error).to.equal('invalid_grant')

    const agent = createUserAgent()
    const device = await beginDevice(h)
    await confirmDevice(h, agent, device)
    expectGoBack(await h.follow(agent, await postLogin(h, agent, login.user)))
    await expectSignedIn({ ...login, device })
  })

  it('goes nowhere where the client may not use the device flow any more, until it may again (RED-15)', async () => {
    const { adapter } = h.provider.Client as unknown as { adapter: Adapter }
    const client: ClientMetadata = { ...DEVICE_CLIENT, client_id: 'box' }
    const change = (changes: Partial<ClientMetadata> = {}) =>
      adapter.upsert('box', { ...client, ...changes }, 3600)
    await change()
    const login = await blockedDevice(client)
    await change({ ...CLIENT, client_id: 'box' })
    for (const answer of [await createUserAgent().get(login.link), await login.goesOn()]) {
      expectMode(answer, 200, 'verified')
      expect(setsSession(answer)).to.equal(false)
    }
    await change()
    expectGoBack(await login.goesOn())
    await expectSignedIn(login, client)
  })
})
