import { expect } from 'chai'
import { it } from 'mocha'
import type { AccountFlowsStore, NotMeToken } from '../../../src/store/index.ts'
import { after, atOnce, hour, sampleNotMeToken } from './samples.ts'

export function itKeepsNotMeTokens(port: () => AccountFlowsStore['notMeTokens']): void {
  async function issued(changes: Partial<NotMeToken> = {}) {
    const token = sampleNotMeToken(changes)
    await port().issue(token)
    return { ...token, usedAt: undefined }
  }

  it('finds a token as it was saved, by its hash alone', async () => {
    const tokens = [await issued(), await issued({ kind: 'password_changed' })]
    for (const token of tokens) expect(await port().find(token.id)).to.deep.equal(token)
    for (const each of ['', 'a'.repeat(64), tokens[0]?.mailJobId ?? ''])
      expect(await port().find(each), each).to.equal(undefined)
  })

  it('is used once, at one time, where 20 use it at once; no other is', async () => {
    const [token, other] = [await issued(), await issued()]
    await port().use(token.id, after(1))
    await atOnce((caller) => port().use(token.id, after(hour + caller)))
    await port().use('unknown', after(1))
    expect(await port().find(token.id)).to.deep.equal({ ...token, usedAt: after(1) })
    expect(await port().find(other.id)).to.deep.equal(other)
  })

  it('answers one hash to 20 that block at once, and ever after', async () => {
    const [token, other] = [await issued(), await issued()]
    const noted = await atOnce((caller) => port().block(token.id, `$2b$${caller}`))
    expect(new Set(noted)).to.have.property('size', 1)
    expect(await port().block(token.id, 'late')).to.equal(noted[0])
    expect(await port().block(other.id, 'other')).to.equal('other')
    expect(await port().block('unknown', 'mine')).to.equal('mine')
    expect(JSON.stringify(await port().find(token.id))).not.to.include('$2b$')
  })
}
