import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { secondAfter } from '../../src/store/cutoffs.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD } from '../support/example-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { addPerson, countEvents, linkFor, opens, postReset, storedToken } from './people.ts'
import { itSurvivesOutages, type Outage, RECOVERY_MS } from './outages.ts'
import { isWriteTo } from './rounds.ts'
import { endResetLeases, IS_SHORT, OUTAGES, scaled, type Service, suiteService } from './servers.ts'

const OUTAGE_MS = scaled({ full: 30_000, short: 3_000 })
const NEW_PASSWORD = 'a brand new password'

/** One step of a reset, by the command that it sends. */
interface Step {
  title: string
  when: 'before' | 'after'
  collection: string
  nth?: number
  /** The answer does not wait for it. */
  isLater?: boolean
}

const STEPS: Step[] = [
  { title: 'the link is claimed', when: 'before', collection: 'password_reset_tokens' },
  { title: 'the link is claimed', when: 'after', collection: 'password_reset_tokens' },
  { title: 'the password is replaced', when: 'before', collection: 'users' },
  { title: 'the password is replaced', when: 'after', collection: 'users' },
  { title: 'the link is marked used', when: 'after', collection: 'password_reset_tokens', nth: 2 },
  { title: 'the sessions end', when: 'before', collection: 'session_cutoffs' },
  { title: 'the sessions end', when: 'after', collection: 'session_cutoffs' },
  { title: 'the event is logged', when: 'before', collection: 'audit_events' },
  { title: 'the event is logged', when: 'after', collection: 'audit_events' },
  {
    title: 'the reset is completed',
    when: 'after',
    collection: 'password_reset_tokens',
    nth: 3,
    isLater: true,
  },
]
const steps = scaled({ full: STEPS, short: STEPS.filter((_, index) => index % 3 === 0) })

const takingAway = Object.entries(OUTAGES).map(([kind, takeAway]): Outage<Service> => ({
  kind,
  async begin({ proxy }) {
    await takeAway(proxy)
    return proxy.restore
  },
}))

describeWithMongo('The example server while MongoDB is gone', () => {
  const at = suiteService({ settings: { require_email_verification: 'true' } })
  itSurvivesOutages(at, OUTAGE_MS, takingAway, () => new URL(at.proxy.uri).host)

  for (const [index, step] of steps.entries()) {
    it(`leaves a reset complete or not begun when it goes away ${step.when} ${step.title} (FLT-09)`, async () => {
      const person = await addPerson(at)
      const link = await linkFor(at, person, RECOVERY_MS)
      const outage = at.proxy.interrupt(
        { matches: isWriteTo(step.collection), when: step.when, nth: step.nth ?? 1 },
        at.proxy.sever,
      )
      const answer = await postReset(at, link, NEW_PASSWORD)
      expect((await outage.happened)?.collection).to.equal(step.collection)
      const expected = step.isLater ? [200, 'done'] : [503, 'unavailable']
      expect([answer.status, answer.mode]).to.deep.equal(expected)
      await at.proxy.restore()
      // The full form waits for it once.
      if (index > 1 || IS_SHORT) await endResetLeases(at)

      const isBegun = step.when === 'after' || index > 0
      await eventually('the reset is over', () => isSettled(link, isBegun), RECOVERY_MS)
      // What was signed in up to the second of the reset has ended.
      await secondAfter(systemClock, new Date())
      expect(await opens(at, person, NEW_PASSWORD)).to.equal(isBegun)
      expect(await opens(at, person, PASSWORD)).to.equal(!isBegun)
      const events = await countEvents(at, person, 'password_reset_completed')
      expect(events).to.equal(isBegun ? 1 : 0)
      const again = await postReset(at, link, 'another new password')
      expect(again.mode).to.equal(isBegun ? 'invalid' : 'done')
      expect(at.server.output()).not.to.match(/unhandled/i)
    })
  }

  async function isSettled(link: string, isBegun: boolean): Promise<boolean> {
    const { live_of, claimed_at, used_at, completed_at } = await storedToken(at, link)
    return isBegun
      ? used_at instanceof Date && completed_at instanceof Date
      : claimed_at === null && live_of !== undefined
  }
})
