import { expect } from 'chai'
import { it } from 'mocha'
import { randomUUID } from 'node:crypto'
import { linkKinds, MAIL_KINDS } from '../../../src/contract/mail-kinds.ts'
import type { AccountFlowsStore } from '../../../src/store/index.ts'
import {
  after,
  claimOne,
  hour,
  minute,
  mustExist,
  sampleClaim,
  sampleClientLogout,
  sampleMailJob,
  sampleNotMeToken,
  samplePendingLogin,
  sampleResetToken,
  sampleVerificationToken,
} from './samples.ts'

const NOTHING = {
  mails: 0,
  ...Object.fromEntries(
    linkKinds.map((kind) => [MAIL_KINDS[kind].link.tokens.replace('Tokens', 'Links'), 0]),
  ),
  notMeLinks: 0,
  waitingLogins: 0,
  clientLogouts: 0,
  events: 0,
  underWay: 0,
}

export function itForgetsAccounts(store: () => AccountFlowsStore): void {
  /** One record of each kind. */
  async function recorded(userId: string) {
    const login = samplePendingLogin({ accountId: userId })
    const [reset, invitation] = [sampleResetToken({ userId }), sampleResetToken({ userId })]
    const verification = sampleVerificationToken({ userId, pendingLoginId: login.id })
    const mail = sampleMailJob({ accountId: userId, identifier: undefined })
    await store().outbox.add(mail)
    await store().resetTokens.issue(reset)
    await store().verificationTokens.issue(verification)
    await store().invitationTokens.issue(invitation)
    const notMe = sampleNotMeToken({ userId })
    await store().notMeTokens.issue(notMe)
    await store().pendingLogins.save(login, 10)
    await store().clientLogouts.add([
      sampleClientLogout({ accountId: userId, state: 'not_notified' }),
    ])
    const event = { id: randomUUID(), type: 'email_login_blocked', at: after(0) } as const
    await store().audit.record({ ...event, accountId: userId }, hour)
    await store().cutoffs.end(userId, { id: 'end', at: after(1), idpAt: after(0) })
    return { login, reset, invitation, mail, notMe }
  }

  /** How much is left of an account. */
  async function leftOf(accountId: string) {
    const { outbox, resetTokens, verificationTokens, invitationTokens, clientLogouts, audit } =
      store()
    return [
      (await outbox.list({ accountId, limit: 10 }, after(1))).length,
      (await resetTokens.ofUser(accountId, 10)).length,
      (await verificationTokens.ofUser(accountId, 10)).length,
      (await invitationTokens.ofUser(accountId, 10)).length,
      (await clientLogouts.find({ accountId })).length,
      (await audit.list({ accountId, limit: 10 })).length,
    ]
  }

  const forget = (accountId: string, at = 2) =>
    store().forget(accountId, after(at), `hash of ${accountId}`)

  it('removes what is about one account and tells how much; of others nothing, and no cut-off', async () => {
    const ann = await recorded('ann')
    const bob = await recorded('bob')
    const one = { resetLinks: 1, verificationLinks: 1, invitationLinks: 1, notMeLinks: 1 }
    const others = { mails: 1, waitingLogins: 1, clientLogouts: 1, events: 1 }
    expect(await forget('ann')).to.deep.equal({ ...NOTHING, ...one, ...others })
    expect(await leftOf('ann')).to.deep.equal([0, 0, 0, 0, 0, 0])
    expect(await store().pendingLogins.find({ id: ann.login.id })).to.equal(undefined)
    const { resetTokens, pendingLogins, cutoffs } = store()
    expect(await resetTokens.find(ann.reset.tokenHash)).to.equal(undefined)
    expect(await store().notMeTokens.find(ann.notMe.id)).to.equal(undefined)
    expect(await store().notMeTokens.find(bob.notMe.id)).to.include({ userId: 'bob' })
    const times = { idpAt: after(0), oauthAt: after(1), exactAt: undefined }
    expect(await cutoffs.read('ann')).to.deep.equal({ id: 'ann', ...times, ends: ['end'] })

    expect(await leftOf('bob')).to.deep.equal([1, 1, 1, 1, 1, 1])
    expect(await pendingLogins.find({ id: bob.login.id })).to.include({ accountId: 'bob' })
  })

  it('leaves a reset that is being finished, which is finished; then it is removed', async () => {
    const { reset, invitation } = await recorded('ann')
    await store().invitationTokens.claim(invitation, sampleClaim())
    expect(await forget('ann')).to.include({ invitationLinks: 0, resetLinks: 1, underWay: 1 })
    await store().invitationTokens.advance(invitation.id, 'rejected', after(2))
    expect(await forget('ann')).to.deep.equal({ ...NOTHING, invitationLinks: 1 })
    await store().resetTokens.issue(reset)
    await store().resetTokens.claim(reset, sampleClaim())
    expect(await forget('ann')).to.include({ resetLinks: 0, underWay: 1 })
    const taken = mustExist(
      await store().resetTokens.takeUnfinished(after(minute), after(2 * minute)),
    )
    expect(taken).to.include({ id: reset.id, newHash: 'next' })
    await store().resetTokens.advance(reset.id, 'used', after(minute))
    expect(await forget('ann')).to.include({ resetLinks: 0, underWay: 1 })
    await store().resetTokens.advance(reset.id, 'completed', after(minute))
    expect(await forget('ann')).to.deep.equal({ ...NOTHING, resetLinks: 1 })
  })

  it('leaves client logouts that are still to be told; each goes once it is over', async () => {
    const { clientLogouts } = store()
    const claim = (at: number) => clientLogouts.claim(10, after(at), after(at + 1), [])
    for (const clientId of ['app', 'other'])
      await clientLogouts.add([sampleClientLogout({ clientId })])
    const before = await claim(1)
    const left = { ...NOTHING, underWay: 2 }
    expect(await forget('ann')).to.deep.equal(left)
    for (const job of before) await clientLogouts.settle(job, { retryAt: after(2), reason: 'down' })
    expect(await forget('ann', hour)).to.deep.equal(left)
    const [sent, dead] = await claim(2)
    expect([sent?.isForgotten, dead?.isForgotten]).to.deep.equal([true, true])
    await clientLogouts.settle(mustExist(sent), { state: 'sent', at: after(2) })
    expect(await clientLogouts.find({ accountId: 'ann' })).to.have.length(1)
    await clientLogouts.settle(mustExist(dead), { state: 'dead', at: after(2) })
    expect(await clientLogouts.find({ accountId: 'ann' })).to.deep.equal([])
    expect(await forget('ann')).to.deep.equal(NOTHING)
  })

  it('leaves a mail that a worker holds, until its lease ends', async () => {
    const { mail } = await recorded('ann')
    const { outbox } = store()
    const held = mustExist(await claimOne(outbox, 'resolve', 1, minute - 1))
    expect(held.id).to.equal(mail.id)
    expect(await forget('ann')).to.include({ mails: 0, underWay: 1 })
    expect(await outbox.isHeld(held)).to.equal(true)
    expect(await forget('ann', 2 * minute)).to.deep.equal({ ...NOTHING, mails: 1 })
    expect(await outbox.resolve(held, 'ann', after(2 * minute))).to.equal(false)
  })
}
