import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createAdminClient } from '../../src/index.ts'
import { ADMIN_TOKEN, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('The old keys of a ring are needed (D13)', () => {
  let h: Harness

  before(async () => {
    const secrets = [randomBytes(32), randomBytes(32)]
    h = await startHarness({ flows: { secrets } })
  })
  after(() => h.close())

  it('until the last live verification link expires, whatever the setting is by now', async () => {
    const admin = createAdminClient(h.baseUrl, ADMIN_TOKEN)
    expect(await admin.rotateKeys()).to.deep.equal({ resealed: [], unreadable: [], keys: 2 })

    const ann = await h.addUser({
      username: 'ann',
      email: 'ann@users.example',
      emailVerified: false,
    })
    await admin.sendVerification({ id: ann.id })
    const { link } = await h.mail.mailTo('ann@users.example')
    await h.put({ email_verification_expiration: '1h' })
    const [token] = await h.store.verificationTokens.historiesOf(ann.id, 1)
    expect((await admin.rotateKeys()).old_keys_needed_until).to.equal(
      token?.expiresAt.toISOString(),
    )

    expect((await createUserAgent().get(link)).status).to.equal(200)
    expect(await admin.rotateKeys()).not.to.have.property('old_keys_needed_until')
  })
})
