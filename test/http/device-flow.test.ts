import { expect } from 'chai'
import { decodeJwt } from 'jose'
import type { Adapter, ClientMetadata } from 'oidc-provider'
import { expectPage, createUserAgent, press, type Answer } from '../support/user-agent.ts'
import { CLIENT, suiteHarness } from '../support/harness.ts'
import {
  beginDevice,
  confirmDevice,
  consent,
  DEVICE_CLIENT,
  pollDevice,
  polled,
  postLogin,
  type DeviceRequest,
} from '../support/oauth-requests.ts'
import { expectMode, setsSession, type Person } from '../support/person.ts'

/** Nobody is asked for consent but the users of native clients. */
const NATIVE_DEVICE: ClientMetadata = {
  ...DEVICE_CLIENT,
  client_id: 'console',
  application_type: 'native',
}

/** What the host shows at the end of the device flow. */
const DONE = '<main data-page="device" data-mode="done">Go back to your device.</main>'

const expectGoBack = (answer: Answer) => expectPage(answer, 200, 'device', 'done')

describe('A login in the device flow that waits for its verification link', () => {
  const h = suiteHarness({
    clients: [CLIENT, DEVICE_CLIENT, NATIVE_DEVICE],
    provider: {
      features: {
        devInteractions: { enabled: false },
        deviceFlow: { enabled: true, successSource: (ctx) => void (ctx.body = DONE) },
      },
    },
  })

  /** The person whose login waits, and the device that shows a code. */
  async function blockedDevice(client = DEVICE_CLIENT) {
    const [agent, device] = [createUserAgent(), await beginDevice(h, client)]
    const send = async () => new URL((await confirmDevice(h, agent, device)).url)
    return { login: await h.blockedLogin({ agent, send }), device }
  }

  async function expectSignedIn(user: Person, device: DeviceRequest, client = DEVICE_CLIENT) {
    const { id_token: idToken = '' } = await polled(h, device, client)
    expect(decodeJwt(idToken)).to.include({ sub: user.id, aud: client.client_id })
    expect(await pollDevice(h, device, client)).to.equal('invalid_grant')
  }

  const expectWaiting = async (device: DeviceRequest, client = DEVICE_CLIENT) =>
    expect(await pollDevice(h, device, client)).to.equal('authorization_pending')

  it('signs the device in when the link is opened, in the same browser and in another, and tells the window that waited that it is signed in', async () => {
    for (const isSame of [true, false]) {
      const { login, device } = await blockedDevice()
      await expectWaiting(device)
      expectMode(await login.goesOn(), 200, 'blocked')
      const there = isSame ? login : login.in()
      expectGoBack(await there.opensLink())
      for (const _time of [1, 2]) {
        const over = await login.goesOn()
        expectMode(over, 200, 'signed_in')
        expect(setsSession(over)).to.equal(false)
      }
      expect(await login.isVerified()).to.equal(true)
      expect(await there.account()).to.equal(login.id)
      await expectSignedIn(login, device)
    }
  })

  it('signs the device in by the code, where the link was opened elsewhere', async () => {
    await h.put({ email_link_confirmation: 'other_browser' })
    const { login, device } = await blockedDevice()
    const elsewhere = login.in()
    expectMode(await elsewhere.opensLink(), 200, 'elsewhere')
    await elsewhere.getsNothing()
    await expectWaiting(device)
    expectGoBack(await login.types())
    await expectSignedIn(login, device)
    expectMode(await login.goesOn(), 200, 'signed_in')
    await h.put({ email_link_confirmation: 'off' })
  })

  it('asks for the consent that the device needs, and signs it in after that', async () => {
    for (const isSame of [true, false]) {
      const { login, device } = await blockedDevice(NATIVE_DEVICE)
      const { agent, opensLink } = isSame ? login : login.in()
      const answer = await opensLink()
      expect(answer.status).to.equal(302)
      expectPage(await h.follow(agent, answer), 200, 'login', 'consent')
      await expectWaiting(device, NATIVE_DEVICE)
      expectGoBack(await consent(h, agent))
      await expectSignedIn(login, device, NATIVE_DEVICE)
    }
  })

  it('tells the device where the person cancels, and signs nobody in afterwards', async () => {
    const { login, device } = await blockedDevice()
    expect((await login.goesOn({ action: 'cancel' })).location).to.equal(undefined)
    expect(await login.account()).to.equal(undefined)
    expect(await pollDevice(h, device)).to.equal('access_denied')
    expectMode(await login.goesOn(), 400, 'ended')
    expectMode(await login.opensLink(), 200, 'verified')
    expect(await pollDevice(h, device)).to.equal('invalid_grant')
  })

  it('signs the device in with another account of the person, also where somebody else is signed in here meanwhile', async () => {
    const { login, device } = await blockedDevice()
    const user = await h.addVerified()
    await h.addSignedIn(login.agent)
    const answer = await login.goesOn({ action: 'other_account' })
    expect((await h.follow(login.agent, answer)).page).to.equal('login')
    await expectWaiting(device)
    // The provider signs out who was signed in, by a form that a browser sends by itself.
    const signsOut = await h.follow(login.agent, await postLogin(h, login.agent, user))
    expectGoBack(await h.follow(login.agent, await press(login.agent, signsOut, '/confirm')))
    await expectSignedIn(user, device)
    expect(await login.isVerified()).to.equal(false)
  })

  it('confirms the address, and says so without an error, after the code of the device ran out', async () => {
    const { login, device } = await blockedDevice()
    const { adapter } = h.provider.DeviceCode as unknown as { adapter: Adapter }
    const interaction = await h.provider.Interaction.find(login.interaction)
    await adapter.destroy(interaction?.deviceCode ?? '')
    const answer = await login.opensElsewhere()
    expectMode(answer, 200, 'verified')
    expect(setsSession(answer)).to.equal(false)
    expect(await login.isVerified()).to.equal(true)
    expectMode(await login.goesOn(), 200, 'verified')
    expect(await pollDevice(h, device)).to.equal('invalid_grant')

    const { agent } = login.in()
    const next = await beginDevice(h)
    await confirmDevice(h, agent, next)
    expectGoBack(await h.follow(agent, await postLogin(h, agent, login)))
    await expectSignedIn(login, next)
  })

  it('goes nowhere where the client may not use the device flow any more, until it may again (RED-15)', async () => {
    const { adapter } = h.provider.Client as unknown as { adapter: Adapter }
    const client: ClientMetadata = { ...DEVICE_CLIENT, client_id: 'box' }
    const change = (changes: Partial<ClientMetadata> = {}) =>
      adapter.upsert('box', { ...client, ...changes }, 3600)
    await change()
    const { login, device } = await blockedDevice(client)
    await change({ ...CLIENT, client_id: 'box' })
    for (const answer of [await login.opensElsewhere(), await login.goesOn()]) {
      expectMode(answer, 200, 'verified')
      expect(setsSession(answer)).to.equal(false)
    }
    await change()
    expectGoBack(await login.goesOn())
    await expectSignedIn(login, device, client)
  })
})
