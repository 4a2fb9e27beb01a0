import { expect } from 'chai'
import { it } from 'mocha'
import type { ResetToken, ResetTokenStore } from '../ports/index.ts'
import { after, atOnce, hour, minute, mustExist, sampleClaim, sampleResetToken } from './samples.ts'

export function itKeepsResetTokens(port: () => ResetTokenStore): void {
  async function issued(changes: Partial<ResetToken> = {}) {
    const token = sampleResetToken(changes)
    await port().issue(token)
    return token
  }

  async function claimed() {
    const { tokenHash } = await issued()
    return mustExist(await port().claim(tokenHash, sampleClaim()))
  }

  const requested = (at: number, mailJobId = 'job', attempt = 1) => ({
    requestedAt: after(at),
    mailJobId,
    attempt,
  })

  it('finds a token as it was saved, an empty parameter apart from an absent one', async () => {
    const token = await issued({ carried: { clientId: 'app', state: '' } })
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
    const claimAt = (at: Date) =>
      port().claim(tokenHash, sampleClaim({ at, leaseUntil: after(2 * hour) }))
    expect(await port().findUsable(tokenHash, expiresAt)).to.equal(undefined)
    expect(await claimAt(expiresAt)).to.equal(undefined)
    expect(await port().findUsable(tokenHash, before)).to.include({ tokenHash })
    expect(await claimAt(before)).to.include({ tokenHash })
  })

  it('invalidates every earlier unused token of the user, and of no other user', async () => {
    const earlier = await issued()
    const other = await issued({ userId: 'bob' })
    const newest = await issued()
    expect(await port().findUsable(earlier.tokenHash, after(1))).to.equal(undefined)
    expect(await port().claim(earlier.tokenHash, sampleClaim())).to.equal(undefined)
    expect(await port().findUsable(newest.tokenHash, after(1))).to.include({ id: newest.id })
    expect(await port().findUsable(other.tokenHash, after(1))).to.include({ id: other.id })
  })

  it('refuses a token that was requested before the newest one, whatever became of that', async () => {
    const late = sampleResetToken({ requestedAt: after(1) })
    const newest = await issued({ requestedAt: after(2) })
    expect(await port().issue(late)).to.equal(false)
    expect(await port().findUsable(late.tokenHash, after(3))).to.equal(undefined)
    expect(await port().findUsable(newest.tokenHash, after(3))).to.include({ id: newest.id })
    await port().claim(newest.tokenHash, sampleClaim({ at: after(3) }))
    expect(await port().issue(late)).to.equal(false)
    expect(await port().issue(sampleResetToken({ requestedAt: after(3) }))).to.equal(true)
    expect(await port().issue(sampleResetToken({ userId: 'bob' }))).to.equal(true)
  })

  it('orders requests of the same millisecond by their ids', async () => {
    const newest = await issued(requested(1, 'b'))
    expect(await port().issue(sampleResetToken(requested(1, 'a')))).to.equal(false)
    await port().invalidateLive('ann', requested(1, 'a'), after(2))
    expect(await port().findUsable(newest.tokenHash, after(2))).to.include({ id: newest.id })
    expect(await port().issue(sampleResetToken(requested(1, 'c')))).to.equal(true)
    expect(await port().findUsable(newest.tokenHash, after(2))).to.equal(undefined)
  })

  it('is not taken back by an earlier attempt for the same request, nor by what comes before any', async () => {
    const newest = await issued(requested(1, 'job', 2))
    expect(await port().issue(sampleResetToken(requested(1, 'job', 1)))).to.equal(false)
    for (const attempt of [0, 1]) {
      await port().invalidateLive('ann', requested(1, 'job', attempt), after(2))
      expect(await port().findUsable(newest.tokenHash, after(2))).to.include({ id: newest.id })
    }
    await port().invalidateLive('ann', requested(1, 'job', 2), after(2))
    expect(await port().findUsable(newest.tokenHash, after(2))).to.equal(undefined)
  })

  it('is issued anew for the same request, and the token before is dead', async () => {
    const [first, second] = [await issued(), await issued()]
    expect(await port().findUsable(first.tokenHash, after(1))).to.equal(undefined)
    expect(await port().findUsable(second.tokenHash, after(1))).to.include({ id: second.id })
  })

  it('leaves exactly one live token of 20 that are issued at once for one user', async () => {
    const tokens = await atOnce(() => issued())
    const found = await Promise.all(
      tokens.map(({ tokenHash }) => port().findUsable(tokenHash, after(1))),
    )
    expect(found.filter(Boolean)).to.have.length(1)
  })

  it('invalidates the live token when asked to, and can issue another one', async () => {
    const { tokenHash } = await issued()
    await port().invalidateLive('bob', requested(1), after(1))
    expect(await port().findUsable(tokenHash, after(1))).to.include({ tokenHash })
    await port().invalidateLive('ann', requested(-1), after(1))
    expect(await port().findUsable(tokenHash, after(1))).to.include({ tokenHash })
    await port().invalidateLive('ann', requested(0), after(1))
    expect(await port().findUsable(tokenHash, after(1))).to.equal(undefined)
    const next = await issued()
    expect(await port().findUsable(next.tokenHash, after(1))).to.include({ id: next.id })
  })

  it('lets one live token expire, or that of a user, and none that was claimed', async () => {
    for (const by of ['id', 'userId'] as const) {
      const [ann, bob] = [await issued(), await issued({ userId: 'bob' })]
      await port().revoke(by === 'id' ? { id: ann.id } : { userId: 'ann' }, after(1))
      expect(await port().findUsable(ann.tokenHash, after(1))).to.equal(undefined)
      expect(await port().findDead(ann.tokenHash, after(1))).to.include({ reason: 'expired' })
      expect(await port().findUsable(bob.tokenHash, after(1))).to.include({ id: bob.id })
    }
    const reset = await claimed()
    await port().revoke({ id: reset.id }, after(2))
    await port().revoke({ userId: reset.userId }, after(2))
    expect(await port().takeUnfinished(after(minute), after(hour))).to.deep.equal(reset)
  })

  it('tells why a token is dead: used, invalidated or expired', async () => {
    const reasonOf = async ({ tokenHash }: ResetToken, at = after(2)) =>
      port().findDead(tokenHash, at)
    const { userId, email, passwordDigest, carried } = sampleResetToken()
    const about = { userId, email, passwordDigest, carried }
    const earlier = await issued()
    const token = await issued()
    expect(await reasonOf(earlier)).to.deep.equal({ ...about, reason: 'invalidated' })
    expect(await reasonOf(token)).to.equal(undefined)
    expect(await reasonOf(token, token.expiresAt)).to.deep.equal({ ...about, reason: 'expired' })
    await port().claim(token.tokenHash, sampleClaim())
    expect(await reasonOf(token)).to.deep.equal({ ...about, reason: 'used' })
    expect(await reasonOf(sampleResetToken())).to.equal(undefined)
  })

  it('gives a token to one of 20 that claim it at once, with the hash of that one', async () => {
    const token = await issued()
    const claims = await atOnce((caller) =>
      port().claim(token.tokenHash, sampleClaim({ newHash: `hash ${caller}` })),
    )
    const winners = claims.flatMap((claim, caller) => (claim ? [{ claim, caller }] : []))
    expect(winners).to.have.length(1)
    expect(winners[0]?.claim).to.deep.equal({
      ...token,
      claimedAt: after(1),
      claimedBy: sampleClaim().by,
      newHash: `hash ${winners[0]?.caller}`,
      usedAt: undefined,
    })
    expect(await port().findUsable(token.tokenHash, after(1))).to.equal(undefined)
  })

  it('either claims a token or invalidates it, when a new one is issued at the same time', async () => {
    const { tokenHash } = await issued()
    const [claim, next] = await Promise.all([port().claim(tokenHash, sampleClaim()), issued()])
    expect(await port().findUsable(next.tokenHash, after(1))).to.include({ id: next.id })
    const unfinished = await port().takeUnfinished(after(minute), after(2 * minute))
    expect(unfinished?.id).to.equal(claim?.id)
  })

  it('does not touch a claimed token when another one is issued', async () => {
    const { id } = await claimed()
    await issued()
    await port().invalidateLive('ann', requested(2), after(2))
    expect(await port().takeUnfinished(after(minute), after(hour))).to.include({ id })
  })

  it('gives an unfinished reset away once its lease ran out, to one of 20', async () => {
    const reset = await claimed()
    expect(await port().takeUnfinished(after(minute - 1), after(hour))).to.equal(undefined)
    const taken = await atOnce(() => port().takeUnfinished(after(minute), after(2 * minute)))
    expect(taken.filter(Boolean)).to.deep.equal([reset])
    expect(await port().takeUnfinished(after(2 * minute), after(hour))).to.deep.equal(reset)
  })

  it('never takes a token that nobody claimed', async () => {
    await issued()
    expect(await port().takeUnfinished(after(hour), after(2 * hour))).to.equal(undefined)
  })

  it('sets used_at once, and answers the one in force (3.3, effect 2)', async () => {
    const { id } = await claimed()
    expect(await port().markUsed(id, after(2))).to.deep.equal(after(2))
    expect(await port().markUsed(id, after(3))).to.deep.equal(after(2))
    const reset = await port().takeUnfinished(after(minute), after(hour))
    expect(reset).to.deep.include({ id, usedAt: after(2), newHash: undefined })
  })

  it('answers one used_at to 20 that set it at once', async () => {
    const { id } = await claimed()
    const answers = await atOnce((caller) => port().markUsed(id, after(caller)))
    expect(new Set(answers.map((answer) => answer.getTime()))).to.have.property('size', 1)
  })

  it('refuses to mark a token used that nobody claimed', async () => {
    const { id, tokenHash } = await issued()
    const refusal: unknown = await port()
      .markUsed(id, after(2))
      .catch((error) => error)
    expect(refusal).to.be.instanceOf(Error)
    expect(await port().findUsable(tokenHash, after(2))).to.include({ id })
  })

  it('is over once it is complete', async () => {
    const { id, tokenHash } = await claimed()
    await port().markUsed(id, after(2))
    await port().complete(id, after(3))
    await port().complete(id, after(4))
    expect(await port().takeUnfinished(after(hour), after(2 * hour))).to.equal(undefined)
    expect(await port().findUsable(tokenHash, after(4))).to.equal(undefined)
    expect(await port().markUsed(id, after(5))).to.deep.equal(after(2))
  })

  it('is over once it is rejected, because a newer password won', async () => {
    const { id, tokenHash } = await claimed()
    await port().reject(id, after(2))
    expect(await port().takeUnfinished(after(hour), after(2 * hour))).to.equal(undefined)
    expect(await port().findUsable(tokenHash, after(2))).to.equal(undefined)
    expect(await port().findDead(tokenHash, after(2))).to.include({ reason: 'invalidated' })
  })

  it('cannot be rejected any more once it is used', async () => {
    const { id } = await claimed()
    await port().markUsed(id, after(2))
    await port().reject(id, after(3))
    expect(await port().takeUnfinished(after(minute), after(hour))).to.include({ id })
  })
}
