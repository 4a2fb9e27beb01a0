import { expect } from 'chai'
import { it } from 'mocha'
import type { VerificationToken, VerificationTokenStore } from '../ports/index.ts'
import { after, atOnce, sampleVerificationToken } from './samples.ts'

export function itKeepsVerificationTokens(port: () => VerificationTokenStore): void {
  async function issued(changes: Partial<VerificationToken> = {}) {
    const token = sampleVerificationToken(changes)
    await port().issue(token)
    return token
  }

  it('finds a token as it was saved, with a pending login and without', async () => {
    for (const token of [await issued(), await issued({ pendingLoginId: undefined, carried: {} })])
      expect(await port().findUsable(token.tokenHash, after(1))).to.deep.equal(token)
  })

  it('finds nothing by another hash, be it empty', async () => {
    await issued()
    expect(await port().findUsable('0'.repeat(64), after(1))).to.equal(undefined)
    expect(await port().findUsable('', after(1))).to.equal(undefined)
  })

  it('is usable until a millisecond before it expires, and not when it expires', async () => {
    const { tokenHash, expiresAt } = await issued()
    const before = new Date(expiresAt.getTime() - 1)
    expect(await port().findUsable(tokenHash, before)).to.include({ tokenHash })
    expect(await port().findUsable(tokenHash, expiresAt)).to.equal(undefined)
  })

  it('tells when the last usable token expires, of whomever it is', async () => {
    expect(await port().latestExpiry(after(1))).to.equal(undefined)
    const [soon, late, revoked, used] = [
      await issued({ expiresAt: after(1_000) }),
      await issued({ userId: 'bob', expiresAt: after(2_000) }),
      await issued({ expiresAt: after(3_000) }),
      await issued({ userId: 'cleo', expiresAt: after(4_000) }),
    ]
    await port().revoke({ id: revoked.id }, after(1))
    await port().markUsed(used, after(1))
    expect(await port().latestExpiry(after(2))).to.deep.equal(late.expiresAt)
    expect(await port().latestExpiry(soon.expiresAt)).to.deep.equal(late.expiresAt)
    expect(await port().latestExpiry(late.expiresAt)).to.equal(undefined)
  })

  it('keeps all links of a user alive side by side', async () => {
    const tokens = await atOnce(() => issued())
    for (const { id, tokenHash } of tokens)
      expect(await port().findUsable(tokenHash, after(1))).to.include({ id })
  })

  it('cannot be used again, and the other links of the user for this address expire', async () => {
    const [used, other] = [await issued(), await issued()]
    const kept = [await issued({ email: 'other@example.com' }), await issued({ userId: 'bob' })]
    await atOnce((caller) => port().markUsed(used, after(caller)))
    expect(await port().findUsable(used.tokenHash, after(1))).to.equal(undefined)
    expect(await port().findUsable(other.tokenHash, after(20))).to.equal(undefined)
    expect(await port().findDead(used.tokenHash, after(20))).to.include({ reason: 'used' })
    expect(await port().findDead(other.tokenHash, after(20))).to.include({ reason: 'expired' })
    for (const { id, tokenHash } of [...kept, await issued()]) {
      expect(await port().findUsable(tokenHash, after(20))).to.include({ id })
    }
  })

  it('tells why a token is dead: used or expired', async () => {
    const token = await issued()
    const { tokenHash, expiresAt, userId, email, passwordDigest, carried, pendingLoginId } = token
    const about = { userId, email, passwordDigest, carried, pendingLoginId }
    expect(await port().findDead(tokenHash, after(1))).to.equal(undefined)
    expect(await port().findDead(tokenHash, expiresAt)).to.deep.equal({
      ...about,
      reason: 'expired',
    })
    await port().markUsed(token, after(1))
    expect(await port().findDead(tokenHash, after(1))).to.deep.equal({ ...about, reason: 'used' })
    expect(await port().findDead('0'.repeat(64), after(1))).to.equal(undefined)
  })

  it('revokes one link that nobody used', async () => {
    const used = await issued()
    await port().markUsed(used, after(1))
    const [revoked, other] = [await issued(), await issued()]
    await port().revoke({ id: revoked.id }, after(2))
    await port().revoke({ id: used.id }, after(2))
    expect(await port().findUsable(revoked.tokenHash, after(2))).to.equal(undefined)
    expect(await port().findUsable(other.tokenHash, after(2))).to.include({ id: other.id })
    expect(await port().findDead(revoked.tokenHash, after(2))).to.include({ reason: 'expired' })
    expect(await port().findDead(used.tokenHash, after(2))).to.include({ reason: 'used' })
  })

  it('revokes all links of one user that nobody used', async () => {
    const [used, bobs] = [await issued(), await issued({ userId: 'bob' })]
    await port().markUsed(used, after(1))
    const tokens = [await issued(), await issued({ email: 'other@example.com' })]
    await port().revoke({ userId: 'ann' }, after(2))
    for (const { tokenHash } of tokens) {
      expect(await port().findUsable(tokenHash, after(2))).to.equal(undefined)
    }
    expect(await port().findDead(used.tokenHash, after(2))).to.include({ reason: 'used' })
    expect(await port().findUsable(bobs.tokenHash, after(2))).to.include({ id: bobs.id })
  })

  it('revokes all links of one mail job of the user, up to one attempt', async () => {
    const [one, another] = [await issued(), await issued({ attempt: 2 })]
    const others = [
      await issued({ mailJobId: 'another' }),
      await issued({ userId: 'bob' }),
      await issued({ attempt: 3 }),
    ]
    await port().revokeOf('ann', { ...one, attempt: 2 }, after(1))
    for (const { tokenHash } of [one, another]) {
      expect(await port().findUsable(tokenHash, after(1))).to.equal(undefined)
    }
    for (const { id, tokenHash } of others) {
      expect(await port().findUsable(tokenHash, after(1))).to.include({ id })
    }
  })

  it('knows whether a later request of the user was served, also once its link is used', async () => {
    const request = { requestedAt: after(5), mailJobId: 'b', attempt: 2 }
    await port().markUsed(await issued(request), after(6))
    for (const [earlier, mailJobId, attempt] of [
      [4, 'z', 9],
      [5, 'a', 9],
      [5, 'b', 1],
    ] as const) {
      const older = { requestedAt: after(earlier), mailJobId, attempt }
      expect(await port().hasLater('ann', older)).to.equal(true)
      expect(await port().hasLater('bob', older)).to.equal(false)
    }
    expect(await port().hasLater('ann', request)).to.equal(false)
    expect(await port().hasLater('ann', { ...request, requestedAt: after(6) })).to.equal(false)
  })
}
