import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { problemOf, settingsOf, type SettingsRequest } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { databaseOf, eventsOf } from '../support/observe.ts'

const CANARY = 'canary of the password'

onBothStores('Two admins who change settings (D27, RFC 9110)', (technology) => {
  let h: Harness
  let other: Harness
  let settings: ReturnType<typeof settingsOf>
  let elsewhere: ReturnType<typeof settingsOf>
  let round = 0

  before(async () => {
    const secrets = [randomBytes(32)]
    h = await startHarness({ technology, flows: { secrets } })
    other = await startHarness({ flows: { secrets, store: h.store } })
    settings = settingsOf(h)
    elsewhere = settingsOf(other)
    await h.put({ smtp_username: 'mailer', smtp_password: CANARY })
  })
  after(async () => {
    await other.close()
    await h.close()
  })

  const state = async () => [
    await h.store.settings.read(),
    await settings.shown(),
    await elsewhere.shown(),
    eventsOf(h, 'settings_changed').length,
  ]

  async function unchangedBy(work: () => Promise<unknown>) {
    const before = await state()
    await work()
    expect(await state()).to.deep.equal(before)
    await stillWorks()
  }

  async function stillWorks() {
    round += 1
    const body = { smtp_from_name: `Name ${round}` }
    const response = await settings.put({ body, ifMatch: await settings.etag() })
    expect(response.status).to.equal(200)
    expect(await elsewhere.shown()).to.include(body)
  }

  describe('see by the ETag', () => {
    it('whether anything changed, in every process alike', async () => {
      const etag = await settings.etag()
      expect(etag).to.match(/^"[\x21\x23-\x7e]+"$/)
      expect([await settings.etag(), await elsewhere.etag()]).to.deep.equal([etag, etag])
      const changed = await settings.put({ body: { smtp_from_name: 'Another' } })
      expect(changed.headers.get('etag')).not.to.equal(etag)
      expect(changed.headers.get('etag')).to.equal(await elsewhere.etag())
    })

    it('that a change to what was so already is none', async () => {
      const etag = await settings.etag()
      const body = { smtp_username: 'mailer', smtp_password: '***' }
      const answer = await settings.put({ body, ifMatch: etag })
      expect([answer.status, answer.headers.get('etag')]).to.deep.equal([200, etag])
      expect(await settings.etag()).to.equal(etag)
    })

    it('that a secret is another one, of which nothing else can be seen', async () => {
      const [shown, etag] = [await settings.shown(), await settings.etag()]
      await h.put({ smtp_password: `${CANARY} 2` })
      expect(await settings.shown()).to.deep.equal(shown)
      expect(await settings.etag()).not.to.equal(etag)
    })

    if (technology === 'mongodb') {
      it('that somebody edited the record by hand, also one that was never read since', async () => {
        const etag = await settings.etag()
        const record = databaseOf(h).collection<{ _id: string }>('settings')
        await record.updateOne({ _id: 'settings' }, { $set: { 'values.smtp_from_name': 'Hand' } })
        const stale = await settings.put({ body: { smtp_from_name: 'X' }, ifMatch: etag })
        expect(await problemOf(stale, 412)).to.include({ code: 'stale_settings' })
        expect(await settings.shown()).to.include({ smtp_from_name: 'Hand' })
        expect(await settings.etag()).not.to.equal(etag)
        await stillWorks()
      })
    }
  })

  describe('say with If-Match what they have seen, and', () => {
    const matching: Record<string, (etag: string) => string> = {
      'the right ETag': (etag) => etag,
      'any with *': () => '*',
      'a list with the right ETag': (etag) => `"other", ${etag},"another"`,
      'white space around it': (etag) => ` ${etag} `,
    }
    for (const [what, ifMatch] of Object.entries(matching)) {
      it(`are served with ${what}`, async () => {
        const body = { smtp_from_name: what.replaceAll('*', 'x') }
        const put = await settings.put({ body, ifMatch: ifMatch(await settings.etag()) })
        expect(put.status).to.equal(200)
        expect(await elsewhere.shown()).to.include(body)
        const query = 'key=smtp_from_name'
        const unset = await settings.unset({ query, ifMatch: ifMatch(await settings.etag()) })
        expect(unset.status).to.equal(200)
        expect(await elsewhere.shown()).not.to.have.property('smtp_from_name')
      })
    }

    const others: Record<string, (etag: string) => string> = {
      'another ETag': () => '"another"',
      'an empty ETag': () => '""',
      'nothing in it': () => '',
      'the right ETag as a weak one (RFC 9110, 13.1.1)': (etag) => `W/${etag}`,
      'the right ETag without quotes': (etag) => etag.replaceAll('"', ''),
      'the right ETag in other quotes': (etag) => etag.replaceAll('"', "'"),
      'a part of the right ETag': (etag) => `${etag.slice(0, -2)}"`,
      'the version alone': (etag) => etag.replace(/-.*/, '"'),
      'a list of others': () => '"a", "b"',
      '* in a list': () => '"a", *',
      '* in quotes': () => '"*"',
      garbage: () => '{"$ne":""}, __proto__,,,',
      'more than a screen of it': () => '"a",'.repeat(1_000),
    }
    for (const [what, ifMatch] of Object.entries(others)) {
      it(`are refused with ${what}: 412, and nothing changes`, () =>
        unchangedBy(async () => {
          const etag = ifMatch(await settings.etag())
          const requests: [(request: SettingsRequest) => Promise<Response>, SettingsRequest][] = [
            [settings.put, { body: { smtp_from_name: 'X' } }],
            [settings.put, { body: { smtp_from_name: 'X' }, query: 'dry_run=true' }],
            [settings.put, { body: { smtp_port: 'none' } }],
            [settings.put, { body: {} }],
            [settings.unset, { query: 'key=smtp_from_name' }],
            [elsewhere.put, { body: { smtp_from_name: 'X' } }],
          ]
          for (const [ask, request] of requests) {
            const problem = await problemOf(await ask({ ...request, ifMatch: etag }), 412)
            expect(problem).to.include({ status: 412, code: 'stale_settings' })
          }
        }))
    }

    it('are refused with what was right before somebody else changed something', async () => {
      const ifMatch = await settings.etag()
      await stillWorks()
      await unchangedBy(async () => {
        const put = await settings.put({ body: { smtp_from_name: 'X' }, ifMatch })
        expect(await problemOf(put, 412)).to.include({ code: 'stale_settings' })
      })
    })

    it('are not both served with one ETag at the same time: one is, of 20 too', async () => {
      for (const many of [2, 20]) {
        const ifMatch = await settings.etag()
        const events =
          eventsOf(h, 'settings_changed').length + eventsOf(other, 'settings_changed').length
        const answers = await Promise.all(
          Array.from({ length: many }, (_, index) =>
            (index % 2 ? settings : elsewhere).put({
              body: { smtp_from_name: `One of ${many}: ${index}` },
              ifMatch,
            }),
          ),
        )
        const served = answers.filter(({ status }) => status === 200)
        expect(served).to.have.length(1)
        expect(answers.filter(({ status }) => status === 412)).to.have.length(many - 1)
        const { smtp_from_name } = Object(await served[0]?.json())
        expect(await settings.shown()).to.include({ smtp_from_name })
        expect(served[0]?.headers.get('etag')).to.equal(await elsewhere.etag())
        const told =
          eventsOf(h, 'settings_changed').length + eventsOf(other, 'settings_changed').length
        expect(told - events).to.equal(1)
      }
    })
  })
})
