import { expect } from 'chai'
import { it } from 'mocha'
import type { AccountFlowsStore, NewToken, Token } from '../../../src/store/index.ts'
import {
  after,
  atOnce,
  endIn,
  hour,
  issuedAs,
  minute,
  mustExist,
  sampleClaim,
  sampleResetToken,
} from './samples.ts'
import { expectToken, itFindsTokens } from './tokens.ts'

export function itKeepsResetTokens(port: () => AccountFlowsStore['resetTokens']): void {
  async function issued(changes: Partial<NewToken> = {}) {
    const token = sampleResetToken(changes)
    expect(await port().issue(token)).to.equal(true)
    return token
  }

  async function claimed() {
    const { id } = await issued()
    return mustExist(await port().claim({ id }, sampleClaim()))
  }

  /** What is told of one whose reset was decided. */
  const decided = (token: NewToken) => ({ ...issuedAs(token), claimedAt: after(1) })

  const endOf = (token: { tokenHash: string }, at?: number) => endIn(port(), token, at)

  const requested = (at: number, mailJobId = 'job', attempt = 1) => ({
    requestedAt: after(at),
    mailJobId,
    attempt,
  })

  const isTold = (token: NewToken, changes?: Partial<Token>) => expectToken(port(), token, changes)

  itFindsTokens(port, issued)

  it('invalidates every earlier unused token of the user, also of the same request, and of no other user (TOK-13)', async () => {
    const earlier = await issued()
    const other = await issued({ userId: 'bob' })
    const newest = await issued({ createdAt: after(1) })
    await isTold(earlier, { invalidatedAt: after(1) })
    expect(await port().claim(earlier, sampleClaim())).to.equal(undefined)
    for (const token of [newest, other]) await isTold(token)
  })

  it('refuses a token that was requested before the newest one, whatever became of that', async () => {
    const late = sampleResetToken({ requestedAt: after(1) })
    const newest = await issued({ requestedAt: after(2) })
    expect(await port().issue(late)).to.equal(false)
    expect(await endOf(late)).to.equal('unknown')
    expect(await endOf(newest)).to.equal('alive')
    await port().claim(newest, sampleClaim({ at: after(3) }))
    expect(await port().issue(late)).to.equal(false)
    expect(await port().issue(sampleResetToken({ requestedAt: after(3) }))).to.equal(true)
    expect(await port().issue(sampleResetToken({ userId: 'bob' }))).to.equal(true)
  })

  for (const [how, earlier, later] of [
    ['by their times', requested(1), requested(2)],
    ['of the same millisecond by their ids', requested(1, 'a'), requested(1, 'b')],
    ['of the same mail by their attempts', requested(1, 'job', 1), requested(1, 'job', 2)],
    ['after what comes before any attempt', requested(1, 'job', 0), requested(1, 'job', 1)],
  ] as const) {
    it(`orders requests ${how}: an earlier one is refused, and takes none back`, async () => {
      const newest = await issued(later)
      expect(await port().issue(sampleResetToken(earlier))).to.equal(false)
      await port().revoke({ userId: 'ann', upTo: earlier }, after(2))
      await port().revoke({ userId: 'bob', upTo: later }, after(2))
      await isTold(newest)
      await port().revoke({ userId: 'ann', upTo: later }, after(2))
      await isTold(newest, { invalidatedAt: after(2) })
      expect(await endOf(await issued(later))).to.equal('alive')
    })
  }

  it('leaves exactly one live token of 20 that are issued at once for one user', async () => {
    const tokens = await atOnce(() => issued())
    const ends = await Promise.all(tokens.map((token) => endOf(token)))
    expect(ends.filter((end) => end === 'alive')).to.have.length(1)
    expect(ends.filter((end) => end === 'invalidated')).to.have.length(19)
  })

  it('lets one live token expire, or that of a user, and none that was claimed', async () => {
    for (const by of ['id', 'userId'] as const) {
      const [ann, bob] = [await issued(), await issued({ userId: 'bob' })]
      await (by === 'id'
        ? port().expire(ann.id, after(1))
        : port().revoke({ userId: 'ann' }, after(1)))
      await isTold(ann, { expiresAt: after(1) })
      expect(await endOf(bob)).to.equal('alive')
    }
    const reset = await claimed()
    await port().expire(reset.id, after(2))
    await port().revoke({ userId: reset.userId }, after(2))
    expect(await port().takeUnfinished(after(minute), after(hour))).to.deep.equal(reset)
  })

  it('gives a token to one of 20 that claim it at once, with the hash of that one (RACE-04)', async () => {
    const token = await issued()
    const claims = await atOnce((caller) =>
      port().claim(token, sampleClaim({ newHash: `hash ${caller}` })),
    )
    const winners = claims.flatMap((claim, caller) => (claim ? [{ claim, caller }] : []))
    expect(winners).to.have.length(1)
    const newHash = `hash ${winners[0]?.caller}`
    const told = decided(token)
    expect(winners[0]?.claim).to.deep.equal({ ...told, claimedBy: sampleClaim().by, newHash })
    expect(await port().find(token.tokenHash)).to.deep.equal(told)
  })

  it('either claims a token or invalidates it, when a new one is issued at the same time (RACE-02)', async () => {
    const { id, tokenHash } = await issued()
    const [claim, next] = await Promise.all([port().claim({ id }, sampleClaim()), issued()])
    expect(await endOf(next)).to.equal('alive')
    const unfinished = await port().takeUnfinished(after(minute), after(2 * minute))
    expect(unfinished?.id).to.equal(claim?.id)
    expect(await endOf({ tokenHash })).to.equal(claim ? 'used' : 'invalidated')
  })

  it('gives an unfinished reset away once its lease ran out, to one of 20', async () => {
    const reset = await claimed()
    expect(await port().takeUnfinished(after(minute - 1), after(hour))).to.equal(undefined)
    const taken = await atOnce(() => port().takeUnfinished(after(minute), after(2 * minute)))
    expect(taken.filter(Boolean)).to.deep.equal([reset])
    expect(await port().takeUnfinished(after(2 * minute), after(hour))).to.deep.equal(reset)
  })

  it('tells of a reset when it was decided, used and completed, each once', async () => {
    const token = await issued()
    const { id, tokenHash } = token
    await port().claim({ id }, sampleClaim({ at: after(1) }))
    expect(await port().advance(id, 'completed', after(2)), 'before it is used').to.equal(undefined)
    const used = { ...decided(token), usedAt: after(2) }
    expect(await port().advance(id, 'used', after(2))).to.deep.equal(used)
    expect(await port().advance(id, 'used', after(3))).to.deep.equal(used)
    expect(await port().advance(id, 'rejected', after(3))).to.equal(undefined)
    const unfinished = await port().takeUnfinished(after(minute), after(hour))
    expect(unfinished).to.deep.include({ ...used, newHash: undefined })
    const completed = { ...used, completedAt: after(3) }
    expect(await port().advance(id, 'completed', after(3))).to.deep.equal(completed)
    for (const late of [after(4), after(5)]) {
      expect(await port().advance(id, 'used', late)).to.deep.equal(completed)
      expect(await port().advance(id, 'completed', late)).to.deep.equal(completed)
      expect(await port().advance(id, 'rejected', late)).to.equal(undefined)
      await port().expire(id, late)
      await port().revoke({ userId: 'ann', upTo: requested(9) }, late)
    }
    expect(await port().find(tokenHash)).to.deep.equal(completed)
    expect(await port().takeUnfinished(after(hour), after(2 * hour))).to.equal(undefined)
  })

  it('answers one time to 20 that mark it used at once (3.3, effect 2)', async () => {
    const { id } = await claimed()
    const answers = await atOnce((caller) => port().advance(id, 'used', after(caller)))
    const times = answers.map((answer) => mustExist(mustExist(answer).usedAt).getTime())
    expect(new Set(times)).to.have.property('size', 1)
  })

  it('takes no step of a token that nobody claimed, or that is unknown', async () => {
    const token = await issued()
    for (const step of ['used', 'rejected', 'completed'] as const) {
      expect(await port().advance(token.id, step, after(2))).to.equal(undefined)
      expect(await port().advance('unknown', step, after(2))).to.equal(undefined)
    }
    await isTold(token)
    expect(await port().takeUnfinished(after(hour), after(2 * hour))).to.equal(undefined)
  })

  it('is over once it is rejected, because a newer password won', async () => {
    const token = await issued()
    const { id, tokenHash } = token
    await port().claim({ id }, sampleClaim({ at: after(1) }))
    const rejected = { ...decided(token), invalidatedAt: after(2) }
    expect(await port().advance(id, 'rejected', after(2))).to.deep.equal(rejected)
    expect(await port().advance(id, 'rejected', after(3))).to.deep.equal(rejected)
    for (const step of ['used', 'completed'] as const)
      expect(await port().advance(id, step, after(3))).to.equal(undefined)
    expect(await port().find(tokenHash)).to.deep.equal(rejected)
    expect(await port().takeUnfinished(after(hour), after(2 * hour))).to.equal(undefined)
  })

  it('never tells the new password hash', async () => {
    const token = await issued()
    await port().claim(token, sampleClaim({ newHash: 'the new hash' }))
    const answers = [await port().find(token.tokenHash), await port().ofUser('ann', 1)]
    expect(JSON.stringify(answers)).to.include(token.id).and.not.include('the new hash')
  })
}
