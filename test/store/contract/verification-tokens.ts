import { expect } from 'chai'
import { it } from 'mocha'
import type { AccountFlowsStore, NewToken, Token } from '../../../src/store/index.ts'
import { after, atOnce, endIn, sampleVerificationToken } from './samples.ts'
import { expectToken, itFindsTokens } from './tokens.ts'

export function itKeepsVerificationTokens(
  port: () => AccountFlowsStore['verificationTokens'],
): void {
  async function issued(changes: Partial<NewToken> = {}) {
    const token = sampleVerificationToken(changes)
    await port().issue(token)
    return token
  }

  const use = (used: NewToken, at: Date) => port().use(used.userId, ({ id }) => id === used.id, at)

  const endOf = (token: NewToken, at?: number) => endIn(port(), token, at)

  const isTold = (token: NewToken, changes?: Partial<Token>) => expectToken(port(), token, changes)

  itFindsTokens(port, issued)

  it('is used once, and the other links of the user for this address expire with it', async () => {
    const [used, other] = [await issued(), await issued({ createdAt: after(1) })]
    const kept = [await issued({ email: 'other@example.com' }), await issued({ userId: 'bob' })]
    await use(used, after(2))
    await atOnce((caller) => use(used, after(3 + caller)))
    await isTold(used, { usedAt: after(2) })
    await isTold(other, { expiresAt: after(2) })
    for (const each of kept) await isTold(each)
  })

  it('is told as it is once it was used: void, if it was void before, and not by what ends it later', async () => {
    const [revoked, open] = [await issued(), await issued()]
    await port().expire(revoked.id, new Date(0))
    const used = await port().use('ann', () => true, after(1))
    const told = used.map(({ id, usedAt, expiresAt }) => [id, usedAt, expiresAt])
    expect(told).to.have.deep.members([
      [revoked.id, after(1), new Date(0)],
      [open.id, after(1), open.expiresAt],
    ])
    await port().revoke({ userId: 'ann' }, new Date(0))
    const again = await port().use('ann', ({ id }) => id === open.id, after(2))
    expect(again.map(({ expiresAt }) => expiresAt)).to.deep.equal([open.expiresAt])
  })

  it('revokes one link that nobody used, or all such of one user', async () => {
    for (const by of ['id', 'userId'] as const) {
      const used = await issued()
      await use(used, after(1))
      const [revoked, other, bobs] = [
        await issued(),
        await issued({ email: 'other@example.com' }),
        await issued({ userId: 'bob' }),
      ]
      await (by === 'id'
        ? port().expire(revoked.id, after(2))
        : port().revoke({ userId: 'ann' }, after(2)))
      await port().expire(used.id, after(2))
      await isTold(revoked, { expiresAt: after(2) })
      expect(await endOf(other, 2)).to.equal(by === 'id' ? 'alive' : 'expired')
      expect(await port().find(used.tokenHash)).to.deep.include({ expiresAt: used.expiresAt })
      expect(await endOf(used, 2)).to.equal('used')
      expect(await endOf(bobs, 2)).to.equal('alive')
    }
  })

  it('revokes all links of one mail job of the user, up to one attempt', async () => {
    const [one, another] = [await issued(), await issued({ attempt: 2 })]
    const others = [
      await issued({ mailJobId: 'another', requestedAt: after(-1) }),
      await issued({ userId: 'bob' }),
      await issued({ attempt: 3 }),
    ]
    await port().revoke({ userId: 'ann', upTo: { ...one, attempt: 2 } }, after(1))
    for (const token of [one, another]) expect(await endOf(token)).to.equal('expired')
    for (const token of others) expect(await endOf(token)).to.equal('alive')
  })
}
