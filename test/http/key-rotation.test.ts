import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { adminOf, settingsOf } from '../support/admin.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { addUnverified } from '../support/person.ts'

const [OLD, NEW] = [randomBytes(32), randomBytes(32)]
/** The rings of all processes, one step after the other. */
const STEPS: Record<string, [before: Buffer[], after: Buffer[]]> = {
  'the new key goes to the end': [[OLD], [OLD, NEW]],
  'the new key goes to the front': [
    [OLD, NEW],
    [NEW, OLD],
  ],
  'the old key goes': [[NEW, OLD], [NEW]],
}
const SKIPPED = [[OLD], [NEW, OLD]] as const

onBothStores('Keys that are rotated in steps, process by process', (technology) => {
  let running: Harness[] = []
  afterEach(async () => {
    for (const h of running.toReversed()) await h.close()
    running = []
  })

  const first = () => running[0] as Harness

  /** One more process on the store of the first. */
  async function start(secrets: readonly Buffer[], mayLogErrors = false): Promise<Harness> {
    const shared = running.length > 0 && { store: first().store, users: first().users }
    const flows = { secrets: [...secrets], ...shared }
    const h = await startHarness({ ...(shared ? {} : { technology }), flows, mayLogErrors })
    running.push(h)
    return h
  }

  const stop = (h: Harness) => h.flows.stop({ withinMs: 2_000 })

  async function keysSaid(h: Harness) {
    const { checks } = await adminOf(h).runDoctor()
    return checks.find(({ step }) => step === 'keys')
  }

  /** Once the notes of this many processes are there. */
  const noted = (count: number) =>
    eventually(
      `${count} processes note their keys`,
      async () => (await first().store.keyRings.noted(60_000)).length === count,
    )

  async function expectLinksOpen(by: Harness, at: Harness) {
    // Whoever sends a mail signs its link.
    for (const other of running) if (other !== by) await stop(other)
    const user = await addUnverified(first())
    await by.put({ smtp_port: String(by.mail.port) })
    const link = await user.asksAgain()
    for (const other of running) if (other !== by) await other.flows.start()
    const answer = await createUserAgent().get(link.replace(by.oauthUrl, at.oauthUrl))
    expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
    expect(await user.isVerified()).to.equal(true)
  }

  async function expectSecretsOpen(by: Harness, at: Harness) {
    await by.put({ smtp_username: 'mailer', smtp_password: `of ${running.indexOf(by)}` })
    expect(await settingsOf(at).shown()).to.include({ smtp_password: '***' })
    const { checks } = await adminOf(at).runDoctor()
    expect(checks.find(({ step }) => step === 'settings')?.status).to.equal('ok')
    await by.put({ smtp_username: '', smtp_password: '' })
  }

  for (const [step, [before, after]] of Object.entries(STEPS)) {
    it(`while ${step}: what either process signs and seals, the other takes (SIG-17)`, async () => {
      const [former, next] = [await start(before), await start(after)]
      for (const [by, at] of [
        [former, next],
        [next, former],
      ] as const) {
        await expectLinksOpen(by, at)
        await expectSecretsOpen(by, at)
      }
    })
  }

  it('are told apart by doctor, which says when the next step may be taken (SIG-17)', async () => {
    const rings = [[OLD], ...Object.values(STEPS).map(([, after]) => after)]
    let processes = [await start([OLD]), await start([OLD])]
    await noted(2)
    const alone = await keysSaid(processes[0] as Harness)
    const [, oldId = ''] =
      /^All 2 processes sign with the key ([\w-]{11})\.$/.exec(alone?.message ?? '') ?? []
    expect(alone?.status).to.equal('ok')

    const said: string[] = []
    for (const ring of rings.slice(1)) {
      const [one, two] = processes as [Harness, Harness]
      await stop(one)
      const other = await start(ring)
      await noted(2)
      const between = await keysSaid(other)
      expect(between?.status).to.equal('warning')
      expect(await keysSaid(two)).to.deep.equal(between)
      await stop(two)
      processes = [other, await start(ring)]
      await noted(2)
      const done = await keysSaid(other)
      expect(done?.status).to.equal('ok')
      said.push(between?.message ?? '', done?.message ?? '')
    }
    const newId = /the key ([\w-]{11})\.$/.exec(said.at(-1) ?? '')?.[1] ?? ''
    expect(newId).not.to.be.oneOf(['', oldId])
    const half = [newId, oldId].toSorted().map((id) => `${id} in 1 of 2 processes`)
    expect(said).to.deep.equal([
      `Every process knows the keys that sign. Of the other keys: ${newId} in 1 of 2 processes.`,
      `All 2 processes sign with the key ${oldId}, and also verify with ${newId}.`,
      `Every process knows all keys, but the first keys differ: ${half.join(', ')}.`,
      `All 2 processes sign with the key ${newId}, and also verify with ${oldId}.`,
      `Every process knows the keys that sign. Of the other keys: ${oldId} in 1 of 2 processes.`,
      `All 2 processes sign with the key ${newId}.`,
    ])
    const stored = JSON.stringify([said, await first().store.keyRings.noted(60_000)])
    for (const key of [OLD, NEW]) {
      for (const form of ['hex', 'base64', 'base64url'] as const)
        expect(stored).not.to.include(key.toString(form).slice(0, 16))
    }
  })

  it('fail at doctor where the first step was left out, and in no process that takes it back (SIG-17)', async () => {
    const [one, two] = [await start(SKIPPED[0], true), await start(SKIPPED[1], true)]
    await noted(2)
    for (const h of [one, two]) {
      const said = await keysSaid(h)
      expect(said?.status).to.equal('failed')
      expect(said?.message).to.match(/^A process lacks a key .*: [\w-]{11} in 1 of 2 processes\.$/)
      expect(said?.advice).to.include('at the end of the ring')
    }
    await stop(two)
    await noted(1)
    expect((await keysSaid(one))?.status).to.equal('ok')
    await expectLinksOpen(one, one)
  })
})

describe('The keys of a process', () => {
  const h = suiteHarness()

  const messageOf = async () => {
    const { checks } = await adminOf(h).runDoctor()
    return checks.find(({ step }) => step === 'keys')?.message
  }

  it('are noted as long as it runs, and those of one that was killed for a few minutes (SIG-17)', async () => {
    await h.store.keyRings.note('killed', ['another-key'])
    expect(await messageOf()).to.include('in 1 of 2 processes')
    await moveTime(300_000)
    expect(await messageOf()).to.match(/^The one process signs with the key [\w-]{11}\.$/)
    await eventually('it has noted them again', async () => {
      const [only, ...others] = await h.store.keyRings.noted(60_000)
      return only !== undefined && others.length === 0
    })
  })

  it("are nobody's once it has stopped, and those of whoever starts again", async () => {
    await h.flows.stop({ withinMs: 2_000 })
    expect(await h.store.keyRings.noted(60_000)).to.deep.equal([])
    await h.flows.start()
    await eventually(
      'it notes them',
      async () => (await h.store.keyRings.noted(60_000)).length === 1,
    )
  })
})
