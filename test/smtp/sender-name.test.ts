import { expect } from 'chai'
import { suiteHarness } from '../support/suite-harness.ts'

describe('The setting smtp_from_name', () => {
  const h = suiteHarness()

  before(async () => {
    await h.addUser({ username: 'ann', email: 'ann@users.example', emailVerified: true })
  })

  async function senderOf(settings: Record<string, string>, count: number) {
    await h.put(settings)
    await h.forgot('ann')
    const { mail } = await h.mail.mailTo('ann@users.example', count)
    return mail.from?.value
  }

  const address = 'accounts@idp.example'

  it('is shown before the address of every mail, and only the address without it', async () => {
    expect(await senderOf({}, 1)).to.deep.equal([{ name: '', address }])
    expect(await senderOf({ smtp_from_name: 'Ärzte & Co' }, 2)).to.deep.equal([
      { name: 'Ärzte & Co', address },
    ])
    expect(await senderOf({ smtp_from_name: '' }, 3)).to.deep.equal([{ name: '', address }])
  })

  it('is one name, whatever is written in it', async () => {
    const name = 'A" <evil@evil.example>, "B'
    expect(await senderOf({ smtp_from_name: name }, 4)).to.deep.equal([{ name, address }])
  })
})
