import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { problemOf, settingsOf, type SettingsRequest } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness, type Technology } from '../support/harness.ts'
import { databaseOf, eventsOf } from '../support/observe.ts'

const CANARY = 'canary of the password'

/** Two processes on one store, and what is the same in both as long as nobody changed anything. */
function twoProcesses(technology: Technology = 'memory') {
  const h = {} as Harness
  const other = {} as Harness
  const [settings, elsewhere] = [settingsOf(h), settingsOf(other)]
  let round = 0

  before(async () => {
    const secrets = [randomBytes(32)]
    Object.assign(h, await startHarness({ technology, flows: { secrets } }))
    Object.assign(other, await startHarness({ flows: { secrets, store: h.store } }))
    await h.put({ smtp_username: 'm', smtp_password: CANARY })
  })
  after(async () => {
    await other.close()
    await h.close()
  })

  const told = () => [...eventsOf(h, 'settings_changed'), ...eventsOf(other, 'settings_changed')]

  const state = async () => [
    await h.store.settings.read(),
    await settings.shown(),
    await settings.etag(),
    await elsewhere.shown(),
    told().length,
  ]

  async function stillWorks() {
    round += 1
    const body = { smtp_from_name: `Name ${round}` }
    const response = await settings.put({ body, ifMatch: await settings.etag() })
    expect(response.status).to.equal(200)
    expect(await elsewhere.shown()).to.include(body)
  }

  async function unchangedBy(work: () => Promise<unknown>) {
    const before = await state()
    await work()
    expect(await state()).to.deep.equal(before)
    await stillWorks()
  }

  return { h, settings, elsewhere, told, stillWorks, unchangedBy }
}

describe('Settings, as an admin tries, unsets and sends them back', () => {
  const { h, settings, elsewhere, told, unchangedBy } = twoProcesses()
  const stored = async () => (await h.store.settings.read()).values

  beforeEach(() => h.put({ smtp_host: '127.0.0.1', smtp_username: 'm', smtp_password: CANARY }))

  describe('A dry run', () => {
    const dry = { query: 'dry_run=true' }

    it('answers what would be, with the ETag of what is, and changes nothing', () =>
      unchangedBy(async () => {
        const etag = await settings.etag()
        const body = { password_reset_expiration: '5h', smtp_from: 'x@idp.example' }
        const answer = await settings.put({ ...dry, body })
        expect([answer.status, answer.headers.get('etag')]).to.deep.equal([200, etag])
        expect(await answer.json()).to.deep.include({ ...(await settings.shown()), ...body })
      }))

    it('tells that a password would be forgotten, by setting or by unsetting its host, and forgets none', () =>
      unchangedBy(async () => {
        const query = 'key=smtp_username&key=smtp_host&dry_run=true'
        const unset = await (await settings.unset({ query })).json()
        expect(unset).not.to.have.any.keys('smtp_username', 'smtp_host')
        const smtp_host = 'mail.example'
        const put = await (await settings.put({ ...dry, body: { smtp_host } })).json()
        expect(put).to.include({ smtp_host })
        for (const answered of [unset, put]) {
          expect(answered).not.to.have.property('smtp_password')
          expect(answered.warnings.join()).to.include('was deleted')
        }
      }))

    it('shows no secret that would be set', () =>
      unchangedBy(async () => {
        const answer = await settings.put({ ...dry, body: { smtp_password: `new ${CANARY}` } })
        const text = await answer.text()
        expect(JSON.parse(text)).to.include({ smtp_password: '***' })
        expect(text).not.to.include('canary')
      }))

    it('refuses a setting that is given a value and unset at once, dry or not', () =>
      unchangedBy(async () => {
        for (const query of ['unset=smtp_password', 'unset=smtp_password&dry_run=true']) {
          const body = { smtp_password: '***', smtp_username: 'x' }
          const { errors = [] } = await problemOf(await settings.put({ query, body }), 400)
          expect(errors).to.have.length(1)
          expect(errors[0]).to.include({ key: 'smtp_password' })
        }
      }))

    it('tells every problem, as without it', () =>
      unchangedBy(async () => {
        const body = { smtp_port: '0', smtp_form: 'x', password_reset_expiration: '1h' }
        const tried = await problemOf(await settings.put({ ...dry, body }), 400)
        const done = await problemOf(await settings.put({ body }), 400)
        expect(tried).to.deep.equal(done)
        expect(tried.errors?.map(({ key }) => key)).to.deep.equal(['smtp_port', 'smtp_form'])
        const unset = await settings.unset({ query: 'key=smtp_form&dry_run=true' })
        expect(await problemOf(unset, 400)).to.include({ code: 'invalid_settings' })
      }))

    it('honours If-Match', () =>
      unchangedBy(async () => {
        const request = { ...dry, body: { smtp_port: '2525' }, ifMatch: await settings.etag() }
        expect((await settings.put(request)).status).to.equal(200)
        const stale = await settings.put({ ...request, ifMatch: '"another"' })
        expect(await problemOf(stale, 412)).to.include({ code: 'stale_settings' })
      }))

    it('is none with false', async () => {
      const body = { smtp_from_name: 'No dry run' }
      expect((await settings.put({ query: 'dry_run=false', body })).status).to.equal(200)
      expect(await settings.shown()).to.include(body)
    })

    const misspelled = [
      'dryrun=true dry-run=true DRY_RUN=true dry_run=1 dry_run=yes dry_run=True dry_run= dry_run',
      'dry_run=true&dry_run=true dry_run=true&dry_run=false dry_run[]=true dry_run=true&x=1',
      'dry_run%00=true __proto__=true =true',
    ]
    for (const query of misspelled.join(' ').split(' ')) {
      it(`misspelled as ?${query} is refused: 400, and nothing changes`, () =>
        unchangedBy(async () => {
          const put = await settings.put({ query, body: { smtp_from_name: 'X' } })
          const problem = await problemOf(put, 400)
          expect(problem).to.include({ code: 'invalid_request' })
          expect(problem.errors).to.have.length(1)
          const unset = await settings.unset({ query: `key=smtp_username&${query}` })
          expect(await problemOf(unset, 400)).to.include({ code: 'invalid_request' })
          await problemOf(await settings.get({ query }), 400)
        }))
    }
  })

  describe('Unsetting', () => {
    it('gives defaults back, or no value where there is none, and is audited by name', async () => {
      await h.put({ password_reset_expiration: '5h', smtp_from_name: 'Somebody' })
      const events = told().length
      const query = 'key=password_reset_expiration&key=smtp_from_name'
      const answer = await settings.unset({ query })
      const { status, headers } = answer
      expect([status, headers.get('etag')]).to.deep.equal([200, await settings.etag()])
      const shown = await settings.shown()
      expect(await answer.json()).to.deep.equal(shown)
      expect(shown).to.include({ password_reset_expiration: '1h' })
      expect(shown).not.to.have.property('smtp_from_name')
      expect(await elsewhere.shown()).to.deep.equal(shown)
      expect(await stored()).not.to.have.any.keys('password_reset_expiration', 'smtp_from_name')
      const details = told().map((event) => event.details)
      expect(details.slice(events)).to.deep.equal([
        { keys: ['password_reset_expiration', 'smtp_from_name'], actor: 'admin_token' },
      ])
    })

    it('forgets a secret', async () => {
      expect((await settings.unset({ query: 'key=smtp_password' })).status).to.equal(200)
      expect(await settings.shown()).not.to.have.property('smtp_password')
      expect(await stored()).not.to.have.property('smtp_password')
      const details = { keys: ['smtp_password'], actor: 'admin_token' }
      expect(eventsOf(h, 'settings_changed').at(-1)?.details).to.deep.equal(details)
    })

    it('forgets the password with its host, and it does not come back with it', async () => {
      const answer = await settings.unset({ query: 'key=smtp_host' })
      expect((await answer.json()).warnings.join()).to.include('was deleted')
      await h.put({ smtp_host: '127.0.0.1' })
      expect(await settings.shown()).not.to.have.property('smtp_password')
    })

    it('of what has no value changes nothing, and is not audited', async () => {
      await settings.unset({ query: 'key=smtp_from_name' })
      await unchangedBy(async () => {
        const query = 'key=smtp_from_name&key=smtp_from_name&key=resend_cooldown'
        expect((await settings.unset({ query })).status).to.equal(200)
      })
    })

    it('refuses what is no setting, with the settings beside it: 400, and nothing changes', () =>
      unchangedBy(async () => {
        for (const key of ['smtp_form', 'SMTP_HOST', ' smtp_host', '__proto__', 'constructor']) {
          const query = `key=smtp_username&${new URLSearchParams({ key })}`
          const problem = await problemOf(await settings.unset({ query }), 400)
          expect(problem).to.include({ code: 'invalid_settings' })
          expect(problem.errors?.map((error) => error.key)).to.deep.equal([key])
        }
      }))

    it('refuses to be asked for nothing: 400, and nothing changes', () =>
      unchangedBy(async () => {
        const queries = ['', 'dry_run=true', 'keys=x', 'key=', 'key=smtp_username&key=']
        for (const request of [{}, ...queries.map((query) => ({ query }))]) {
          const problem = await problemOf(await settings.unset(request), 400)
          expect(problem).to.include({ code: 'invalid_request' })
        }
      }))

    it('refuses a minimum or a maximum that its default would exclude, and changes nothing', async () => {
      const [min, max] = ['validation_min_password_length', 'validation_max_password_length']
      await h.put({ [min]: '4', [max]: '6' })
      await unchangedBy(async () => {
        const problem = await problemOf(await settings.unset({ query: `key=${min}` }), 400)
        expect(problem.errors).to.deep.equal([
          { key: min, expected: `at most ${max}, which is 6`, got: '"8"' },
        ])
      })
      expect((await settings.unset({ query: `key=${min}&key=${max}` })).status).to.equal(200)
      expect(await settings.shown()).to.include({ [min]: '8', [max]: '64' })
    })
  })

  describe('What GET answered, sent back,', () => {
    it('changes nothing, keeps the secret, and is not audited', () =>
      unchangedBy(async () => {
        const response = await settings.get()
        const ifMatch = response.headers.get('etag') ?? ''
        const body = await response.json()
        expect(body).to.include({ smtp_password: '***', email_verification_expiration: '24h' })
        const answer = await settings.put({ body, ifMatch })
        expect([answer.status, answer.headers.get('etag')]).to.deep.equal([200, ifMatch])
        expect(await answer.json()).to.deep.include(body)
      }))

    it('with one change changes that one alone', async () => {
      const [before, events] = [await h.store.settings.read(), told().length]
      const smtp_from_name = `Name of ${before.version}`
      const body = { ...(await settings.shown()), smtp_from_name }
      expect((await settings.put({ body })).status).to.equal(200)
      expect(await stored()).to.deep.equal({ ...before.values, smtp_from_name })
      const keys = told().map(({ details }) => details?.['keys'])
      expect(keys.slice(events)).to.deep.equal([['smtp_from_name']])
    })
  })

  it('A refusal never shows a secret, or what came for an unknown name', () =>
    unchangedBy(async () => {
      for (const body of [
        { smtp_password: `${CANARY}\n` },
        { smtp_password: CANARY.repeat(30) },
        { smtp_password: [CANARY] },
        { smtp_pasword: CANARY },
        { SMTP_PASSWORD: CANARY },
        { smtp_pass: { word: CANARY } },
        { smtp_password: CANARY, smtp_port: 'x' },
      ]) {
        const problem = await problemOf(await settings.put({ body }), 400)
        expect(problem).to.include({ code: 'invalid_settings' })
      }
      const answer = await settings.put({ body: { smtp_port: 'a visible mistake' } })
      expect(await answer.text()).to.include('a visible mistake')
    }))

  describe('A warning is in the answer', () => {
    const warningsOf = async (asked: Promise<Response>) =>
      String((await (await asked).json()).warnings ?? '')
    const warnings = (body: Record<string, string>) =>
      warningsOf(settings.put({ query: 'dry_run=true', body }))

    it('where verification is required and SMTP is not configured', async () => {
      const on = { require_email_verification: 'true' }
      for (const missing of ['smtp_host', 'smtp_from']) {
        const warned = await warnings({ ...on, [missing]: '' })
        expect(warned).to.match(/require_email_verification.*cannot sign in/)
      }
      expect(await warnings(on)).to.equal('')
      const off = await warnings({ require_email_verification: 'false', smtp_host: '' })
      expect(off).to.include('SMTP is not configured').and.not.include('sign in')
    })

    it('where only one of user name and password is given', async () => {
      expect(await warnings({ smtp_username: '' })).to.include('only one of')
      expect(await warnings({ smtp_password: '' })).to.include('only one of')
      expect(await warnings({ smtp_username: '', smtp_password: '' })).to.equal('')
      const query = 'key=smtp_password&dry_run=true'
      expect(await warningsOf(settings.unset({ query }))).to.include('only one of')
    })
  })
})

onBothStores('Two admins who change settings (RFC 9110)', (technology) => {
  const { h, settings, elsewhere, told, stillWorks, unchangedBy } = twoProcesses(technology)

  describe('see by the ETag', () => {
    it('whether anything changed, in every process alike', async () => {
      const etag = await settings.etag()
      expect(etag).to.match(/^"[\x21\x23-\x7e]+"$/)
      expect([await settings.etag(), await elsewhere.etag()]).to.deep.equal([etag, etag])
      const changed = await settings.put({ body: { smtp_from_name: 'Another' } })
      expect(changed.headers.get('etag')).not.to.equal(etag)
      expect(changed.headers.get('etag')).to.equal(await elsewhere.etag())
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
    const body = { smtp_from_name: 'X' }
    const requests: [(request: SettingsRequest) => Promise<Response>, SettingsRequest][] = [
      [settings.put, { body }],
      [settings.put, { body, query: 'dry_run=true' }],
      [settings.put, { body: { smtp_port: 'none' } }],
      [settings.put, { body: {} }],
      [settings.unset, { query: 'key=smtp_from_name' }],
      [elsewhere.put, { body }],
    ]
    for (const [what, other] of Object.entries(others)) {
      it(`are refused with ${what}: 412, and nothing changes`, () =>
        unchangedBy(async () => {
          const ifMatch = other(await settings.etag())
          for (const [ask, request] of requests) {
            const problem = await problemOf(await ask({ ...request, ifMatch }), 412)
            expect(problem).to.include({ code: 'stale_settings' })
          }
        }))
    }

    it('are refused with what was right before somebody else changed something', async () => {
      const ifMatch = await settings.etag()
      await stillWorks()
      await unchangedBy(async () => {
        const stale = await settings.put({ body, ifMatch })
        expect(await problemOf(stale, 412)).to.include({ code: 'stale_settings' })
      })
    })

    it('are not both served with one ETag at the same time: one is, of 20 too', async () => {
      for (const many of [2, 20]) {
        const [ifMatch, events] = [await settings.etag(), told().length]
        const answers = await Promise.all(
          Array.from({ length: many }, (_, index) => {
            const smtp_from_name = `One of ${many}: ${index}`
            return (index % 2 ? settings : elsewhere).put({ body: { smtp_from_name }, ifMatch })
          }),
        )
        const served = answers.filter(({ status }) => status === 200)
        expect(served).to.have.length(1)
        expect(answers.filter(({ status }) => status === 412)).to.have.length(many - 1)
        const { smtp_from_name } = Object(await served[0]?.json())
        expect(await settings.shown()).to.include({ smtp_from_name })
        expect(served[0]?.headers.get('etag')).to.equal(await elsewhere.etag())
        expect(told()).to.have.length(events + 1)
      }
    })
  })
})
