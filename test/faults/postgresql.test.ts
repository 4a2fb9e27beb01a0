import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { opensForm } from '../support/example-server.ts'
import { SMTP_POINTS } from '../support/mail-server.ts'
import {
  describeWithPostgresql,
  newPostgresql,
  type PostgresServer,
} from '../support/postgresql.ts'
import { recordsIn, setColumn } from '../support/records.ts'
import { countingWrites, type HeldWrite } from './held-writes.ts'
import { several } from './load.ts'
import { itSurvivesOutages, type Outage } from './outages.ts'
import {
  addPerson,
  answered,
  isCompleted,
  passwordHashOf,
  type Person,
  postForgot,
  postReset,
} from './people.ts'
import { judgeReset, NEW_PASSWORD, noticeOf, prepareReset, type Reset } from './resets.ts'
import { randomTimes, SETTLED_WITHIN_MS, strikesAtMails } from './rounds.ts'
import {
  endLeases,
  endResetLeases,
  IS_SHORT,
  type PostgresqlService,
  scaled,
  suiteOnPostgresql,
} from './servers.ts'

const RANDOM_ROUNDS = scaled({ full: 60, short: 6 })
const MAIL_ROUNDS = scaled({ full: 6, short: 1 })
const AT_ONCE = 4
const OUTAGE_MS = scaled({ full: 30_000, short: 3_000 })

/** Of the write that a process had sent when it died. Late is after another one did all that was left. */
const FATES = ['is never done', 'is done late', 'is done']

/** Resets to which something happens, and what was wrong with them in the end. */
function tellResets(at: PostgresqlService, disturb: (writes: Writes) => Promise<void>) {
  const resets: Reset[] = []
  const wrong: string[] = []
  const outcomes: string[] = []

  before(async () => {
    const writes = await countingWrites(at.database)
    const reset = await prepareReset(at)
    let milliseconds = 0
    const count = await writes.count(async () => {
      const startedAt = performance.now()
      expect((await postReset(at, reset.link, NEW_PASSWORD)).mode).to.equal('done')
      await eventually('the last write', () => isCompleted(at, reset.link))
      milliseconds = performance.now() - startedAt
    })
    await disturb({
      ...writes,
      steps: Array.from({ length: count }, (_, of) => of + 1),
      milliseconds,
    })
    await several(resets, 4, async (each) => {
      const found = (is: boolean, kind: string, what: string) =>
        is && wrong.push(`${kind}: ${each.title}: ${what}`)
      outcomes.push(await judgeReset(each, found))
    })
    console.log(
      `resets on PostgreSQL: ${outcomes.length}, wrong ${wrong.length}, of ${count} writes`,
    )
  })

  it('is complete in the end or not begun, told once, and nothing comes back', () => {
    expect(wrong).to.deep.equal([])
    expect(outcomes).to.include.members(['complete', 'not begun'])
  })

  it('is told to the account by mail', async () => {
    for (const each of resets) await noticeOf(each)
  })

  return {
    async prepare(title: string): Promise<Reset> {
      const reset = await prepareReset(at, title)
      resets.push(reset)
      return reset
    },

    /** The status of the answer. `undefined`: there was none. */
    async post(reset: Reset): Promise<number | undefined> {
      const answer = await answered(postReset(at, reset.link, NEW_PASSWORD))
      reset.isTold = answer?.mode === 'done'
      return answer?.status
    },
  }
}

type Writes = Omit<Awaited<ReturnType<typeof countingWrites>>, 'count'> & {
  /** The numbers of those of a reset that nobody disturbs, and how long it took. */
  steps: number[]
  milliseconds: number
}

/** Until it is held up, or the reset is over without it. */
async function heldUp(write: HeldWrite, isOver: () => Promise<boolean>): Promise<void> {
  await eventually('the write has come', async () => (await write.waits()) || isOver())
}

describeWithPostgresql('A reset on PostgreSQL whose process is killed (FLT-07, FLT-12)', () => {
  const at = suiteOnPostgresql()
  const { prepare, post } = tellResets(at, async ({ steps, milliseconds, hold }) => {
    for (const step of steps) {
      for (const fate of scaled({ full: FATES, short: FATES.slice((step - 1) % 3).slice(0, 1) })) {
        const reset = await prepare(`killed in write ${step}, which ${fate}`)
        const write = await hold(step)
        const posting = post(reset)
        await heldUp(write, () => isCompleted(at, reset.link))
        await at.kill()
        await posting
        if (fate === 'is done late') await goOnWithout(reset, write)
        else {
          await (fate === 'is done' ? write.letGo() : write.undo())
          await at.restart()
        }
      }
    }
    for (const time of randomTimes(RANDOM_ROUNDS, milliseconds)) {
      const reset = await prepare(`killed after ${time} ms`)
      const posting = post(reset)
      await sleep(time)
      await at.kill()
      await posting
      await at.restart()
    }
  })

  /** Another process does what the dead one left, and the host sets a password, while a write of the dead one is still to come. */
  async function goOnWithout({ link, title, person }: Reset, write: HeldWrite): Promise<void> {
    await endLeases(at)
    await at.start()
    const isSettled = async () => (await opensForm(link)) || isCompleted(at, link)
    await eventually(`settled: ${title}`, isSettled, SETTLED_WITHIN_MS)
    const [hash, ofHost] = [await passwordHashOf(at, person), 'a hash that the host has set']
    const setHash = (next: string) =>
      setColumn(at.database.pool, 'users', { id: person.id }, 'password_hash', next)
    await setHash(ofHost)
    await write.letGo()
    expect(await passwordHashOf(at, person), title).to.equal(ofHost)
    await setHash(hash)
    if (IS_SHORT) await endResetLeases(at)
  }
})

describeWithPostgresql('Mails whose process is killed, on PostgreSQL (FLT-06)', function () {
  const { strikes, reaches } = strikesAtMails()
  const at = suiteOnPostgresql(async () => ({ mail: { reaches } }))

  it('are all sent in the end, no job is left, and the newest link of each works', async () => {
    const owed: Person[] = []
    for (const point of Array.from({ length: MAIL_ROUNDS }, () => SMTP_POINTS).flat()) {
      const people = await several(Array.from({ length: AT_ONCE }), AT_ONCE, () => addPerson(at))
      const recipient = people[owed.length % AT_ONCE]?.email ?? ''
      strikes.add({ point, recipient, act: at.kill })
      await several(people, AT_ONCE, async (person) => {
        const answer = await answered(postForgot(at, person.username))
        if (answer?.mode === 'sent') owed.push(person)
      })
      await eventually(`killed: ${point}`, () => strikes.size === 0)
      await at.kill()
      await at.restart()
    }
    const isQuiet = async () => (await recordsIn(at.database, 'mail_outbox')).length === 0
    await eventually('no job is left', isQuiet, SETTLED_WITHIN_MS)
    expect(owed.length).to.be.at.least(MAIL_ROUNDS * SMTP_POINTS.length)
    for (const { email, username } of owed) {
      const links = at.mail.mails.flatMap(({ to, link }) => (to.includes(email) ? link : []))
      const opened = await several(links, 1, opensForm)
      expect(opened, username).to.deep.equal(links.map((_, index) => index === links.length - 1))
      const answer = await postReset(at, links.at(-1) ?? '', NEW_PASSWORD)
      expect(answer.mode, username).to.equal('done')
    }
  })
})

describeWithPostgresql('The example server whose PostgreSQL goes away', () => {
  let server: PostgresServer
  const at = suiteOnPostgresql(async () => {
    server = await newPostgresql()
    return { server, settings: { require_email_verification: 'true' } }
  })
  const outages: Outage<PostgresqlService>[] = [
    {
      kind: 'is crashed',
      async begin() {
        await server.crash()
        return server.start
      },
    },
    { kind: 'hangs', mayDoLater: true, begin: () => server.freeze() },
  ]
  itSurvivesOutages(at, OUTAGE_MS, outages, () => new URL(at.database.url).host)

  describe('in the middle of a reset (FLT-09)', () => {
    const { prepare, post } = tellResets(at, async ({ steps, hold }) => {
      for (const { kind, begin } of scaled({ full: outages, short: outages.slice(0, 1) })) {
        for (const step of steps) {
          const reset = await prepare(`PostgreSQL ${kind} in write ${step}`)
          const write = await hold(step)
          const posting = post(reset)
          await heldUp(write, () => isCompleted(at, reset.link))
          const end = await begin(at)
          // The answer does not wait for the last one.
          expect(await posting, reset.title).to.equal(step === steps.length ? 200 : 503)
          await end()
          await write.letGo()
          if (IS_SHORT) await endResetLeases(at)
        }
      }
    })
  })
})
