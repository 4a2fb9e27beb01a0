import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { AccountFlowsStore } from '../../../src/store/index.ts'
import { itAdministersMailJobs } from './administration.ts'
import { itKeepsClientLogouts } from './client-logouts.ts'
import { itForgetsAccounts } from './forget.ts'
import { itKeepsAuditEvents, itKeepsKeyRings, itKeepsSettings } from './records.ts'
import { itKeepsCutoffs, itKeepsPendingLogins } from './logins.ts'
import { itCountsHits, itKnowsWhatIsLeftToUse } from './limits.ts'
import { itKeepsNotMeTokens } from './not-me-tokens.ts'
import { itKeepsMailJobs } from './outbox.ts'
import { itKeepsResetTokens } from './reset-tokens.ts'
import { itKeepsVerificationTokens } from './verification-tokens.ts'

/** What the flows rely on, on each store; `create` opens an empty one for each test. */
export function itIsAnAccountFlowsStore(
  name: string,
  create: () => Promise<{ store: AccountFlowsStore; close(): Promise<void> }>,
): void {
  describe(`${name} is an AccountFlowsStore`, () => {
    let opened: Awaited<ReturnType<typeof create>>

    beforeEach(async () => {
      opened = await create()
      await opened.store.start()
    })

    afterEach(() => opened.close())

    describe('password reset tokens (2.1, 3.1, 3.3)', () =>
      itKeepsResetTokens(() => opened.store.resetTokens))
    describe('invitation tokens (2.6, 3.4)', () =>
      itKeepsResetTokens(() => opened.store.invitationTokens))
    describe('e-mail verification tokens (2.2, 3.2)', () =>
      itKeepsVerificationTokens(() => opened.store.verificationTokens))
    describe('tokens of "This wasn\'t me" (3.6)', () =>
      itKeepsNotMeTokens(() => opened.store.notMeTokens))
    describe('pending logins', () => itKeepsPendingLogins(() => opened.store.pendingLogins))
    describe('session cut-offs (2.4, 3.3)', () => itKeepsCutoffs(() => opened.store.cutoffs))
    describe('clients that are told', () => itKeepsClientLogouts(() => opened.store.clientLogouts))

    describe('the mail outbox', () => {
      itKeepsMailJobs(() => opened.store.outbox)
      itAdministersMailJobs(() => opened.store.outbox)
    })
    describe('audit events (6)', () => itKeepsAuditEvents(() => opened.store.audit))
    describe('all that is about one account', () => itForgetsAccounts(() => opened.store))
    describe('settings (2.5)', () => itKeepsSettings(() => opened.store.settings))
    describe('key rings', () => itKeepsKeyRings(() => opened.store.keyRings))

    describe('limits', () => {
      itCountsHits(() => opened.store.limits)
      itKnowsWhatIsLeftToUse(() => opened.store.outbox)
    })

    it('finds everything as it was started, if it can tell', async () => {
      const inspection = await opened.store.inspect()
      expect(inspection.wrongIndexes ?? []).to.deep.equal([])
    })
  })
}
