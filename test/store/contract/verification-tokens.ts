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

  const endOf = (token: NewToken, at?: number) => endIn(port(), token, at)

  const isTold = (token: NewToken, changes?: Partial<Token>) => expectToken(port(), token, changes)

  itFindsTokens(port, issued)

  it('is used once, and the other links of the user for this address expire with it', async () => {
    const [used, other] = [await issued(), await issued({ createdAt: after(1) })]
    const kept = [await issued({ email: 'other@example.com' }), await issued({ userId: 'bob' })]
    await port().use(used, after(2))
    await atOnce((caller) => port().use(used, after(3 + caller)))
    await isTold(used, { usedAt: after(2) })
    await isTold(other, { expiresAt: after(2) })
    for (const each of kept) await isTold(each)
  })

  it('revokes one link that nobody used, or all such of one user', async () => {
    for (const by of ['id', 'userId'] as const) {
      const used = await issued()
      await port().use(used, after(1))
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
