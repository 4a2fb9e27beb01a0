import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { problemOf, settingsOf } from '../support/admin-requests.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { eventsOf } from '../support/observe.ts'

const CANARY = 'canary of the password'

describe('Settings, as an admin tries, unsets and sends them back (D27)', () => {
  let h: Harness
  let other: Harness
  let settings: ReturnType<typeof settingsOf>
  let round = 0

  before(async () => {
    const secrets = [randomBytes(32)]
    h = await startHarness({ flows: { secrets } })
    other = await startHarness({ flows: { secrets, store: h.store } })
    settings = settingsOf(h)
  })
  after(async () => {
    await other.close()
    await h.close()
  })

  beforeEach(() => h.put({ smtp_host: '127.0.0.1', smtp_username: 'm', smtp_password: CANARY }))

  const state = async () => [
    await h.store.settings.read(),
    await settings.shown(),
    await settings.etag(),
    await settingsOf(other).shown(),
    [...eventsOf(h, 'settings_changed'), ...eventsOf(other, 'settings_changed')].length,
  ]

  async function unchangedBy(work: () => Promise<unknown>) {
    const before = await state()
    await work()
    expect(await state()).to.deep.equal(before)
    round += 1
    await h.put({ smtp_from_name: `Name ${round}` })
    expect(await settingsOf(other).shown()).to.include({ smtp_from_name: `Name ${round}` })
  }

  describe('A dry run', () => {
    const dry = { query: 'dry_run=true' }

    it('answers what would be, with the ETag of what is, and changes nothing', () =>
      unchangedBy(async () => {
        const etag = await settings.etag()
        const body = { password_reset_expiration: '5h', smtp_from: 'x@idp.example' }
        const answer = await settings.put({ ...dry, body })
        expect([answer.status, answer.headers.get('etag')]).to.deep.equal([200, etag])
        const answered = await answer.json()
        expect(answered).to.deep.include({ ...(await settings.shown()), ...body })
      }))

    it('answers what unsetting would do, and changes nothing', () =>
      unchangedBy(async () => {
        const query = 'key=smtp_username&key=smtp_host&dry_run=true'
        const answered = await (await settings.unset({ query })).json()
        expect(answered).not.to.have.any.keys('smtp_username', 'smtp_host', 'smtp_password')
        expect(answered.warnings.join()).to.include('forgotten')
      }))

    it('tells that a password would be forgotten, and forgets none', () =>
      unchangedBy(async () => {
        const answer = await settings.put({ ...dry, body: { smtp_host: 'mail.example' } })
        const answered = await answer.json()
        expect(answered).to.include({ smtp_host: 'mail.example' })
        expect(answered).not.to.have.property('smtp_password')
        expect(answered.warnings.join()).to.include('forgotten')
      }))

    it('shows no secret that would be set', () =>
      unchangedBy(async () => {
        const answer = await settings.put({ ...dry, body: { smtp_password: `new ${CANARY}` } })
        const text = await answer.text()
        expect(JSON.parse(text)).to.include({ smtp_password: '***' })
        expect(text).not.to.include('canary')
      }))

    it('tells every problem, as without it', () =>
      unchangedBy(async () => {
        const body = { smtp_port: '0', smtp_form: 'x', password_reset_expiration: '1h' }
        const tried = await problemOf(await settings.put({ ...dry, body }), 400)
        const done = await problemOf(await settings.put({ body }), 400)
        expect(tried).to.deep.equal(done)
        expect(tried.errors?.map(({ key }) => key)).to.deep.equal(['smtp_port', 'smtp_form'])
        const query = 'key=smtp_form&dry_run=true'
        expect(await problemOf(await settings.unset({ query }), 400)).to.include({
          code: 'invalid_settings',
        })
      }))

    it('honours If-Match', () =>
      unchangedBy(async () => {
        const body = { smtp_port: '2525' }
        const ifMatch = await settings.etag()
        expect((await settings.put({ ...dry, body, ifMatch })).status).to.equal(200)
        const stale = await settings.put({ ...dry, body, ifMatch: '"another"' })
        expect(await problemOf(stale, 412)).to.include({ code: 'stale_settings' })
      }))

    it('is none with false', async () => {
      const body = { smtp_from_name: 'No dry run' }
      expect((await settings.put({ query: 'dry_run=false', body })).status).to.equal(200)
      expect(await settings.shown()).to.include(body)
    })

    for (const query of [
      'dryrun=true',
      'dry-run=true',
      'DRY_RUN=true',
      'dry_run=1',
      'dry_run=yes',
      'dry_run=True',
      'dry_run=',
      'dry_run',
      'dry_run=true&dry_run=true',
      'dry_run=true&dry_run=false',
      'dry_run[]=true',
      'dry_run=true&x=1',
      'dry_run%00=true',
      '__proto__=true',
      '=true',
    ]) {
      it(`misspelled as ?${query} is refused: 400, and nothing changes`, () =>
        unchangedBy(async () => {
          const body = { smtp_from_name: 'X' }
          const put = await problemOf(await settings.put({ query, body }), 400)
          expect(put).to.include({ code: 'invalid_request' })
          expect(put.errors).to.have.length(1)
          const unset = await settings.unset({ query: `key=smtp_username&${query}` })
          expect(await problemOf(unset, 400)).to.include({ code: 'invalid_request' })
          await problemOf(await settings.get({ query }), 400)
        }))
    }
  })

  describe('Unsetting', () => {
    it('gives defaults back, or no value where there is none, and is audited by name', async () => {
      await h.put({ password_reset_expiration: '5h', smtp_from_name: 'Somebody' })
      const events = eventsOf(h, 'settings_changed').length
      const query = 'key=password_reset_expiration&key=smtp_from_name'
      const answer = await settings.unset({ query })
      expect([answer.status, answer.headers.get('etag')]).to.deep.equal([
        200,
        await settings.etag(),
      ])
      const shown = await settings.shown()
      expect(await answer.json()).to.deep.equal(shown)
      expect(shown).to.include({ password_reset_expiration: '1h' })
      expect(shown).not.to.have.property('smtp_from_name')
      expect(await settingsOf(other).shown()).to.deep.equal(shown)
      const { values } = await h.store.settings.read()
      expect(values).not.to.have.any.keys('password_reset_expiration', 'smtp_from_name')
      const told = eventsOf(h, 'settings_changed').slice(events)
      expect(told.map(({ details }) => details)).to.deep.equal([
        { keys: ['password_reset_expiration', 'smtp_from_name'], actor: 'admin_token' },
      ])
    })

    it('forgets a secret', async () => {
      expect((await settings.unset({ query: 'key=smtp_password' })).status).to.equal(200)
      expect(await settings.shown()).not.to.have.property('smtp_password')
      expect((await h.store.settings.read()).values).not.to.have.property('smtp_password')
      expect(eventsOf(h, 'settings_changed').at(-1)?.details).to.deep.equal({
        keys: ['smtp_password'],
        actor: 'admin_token',
      })
    })

    it('forgets the password with its host, and it does not come back with it (D23)', async () => {
      const answer = await settings.unset({ query: 'key=smtp_host' })
      expect((await answer.json()).warnings.join()).to.include('forgotten')
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

    it('refuses what is no setting, with the settings beside it: 400, and nothing changes', async () => {
      for (const key of ['smtp_form', 'SMTP_HOST', ' smtp_host', '__proto__', 'constructor']) {
        await unchangedBy(async () => {
          const query = new URLSearchParams([
            ['key', 'smtp_username'],
            ['key', key],
          ])
          const problem = await problemOf(await settings.unset({ query: String(query) }), 400)
          expect(problem).to.include({ code: 'invalid_settings' })
          expect(problem.errors?.map((error) => error.key)).to.deep.equal([key])
        })
      }
    })

    it('refuses to be asked for nothing: 400, and nothing changes', () =>
      unchangedBy(async () => {
        for (const request of [
          {},
          { query: '' },
          { query: 'dry_run=true' },
          { query: 'keys=x' },
          { query: 'key=' },
          { query: 'key=smtp_username&key=' },
        ]) {
          const problem = await problemOf(await settings.unset(request), 400)
          expect(problem).to.include({ code: 'invalid_request' })
        }
      }))

    it('refuses a minimum or a maximum that its default would exclude, and changes nothing', async () => {
      await h.put({ validation_min_password_length: '4', validation_max_password_length: '6' })
      await unchangedBy(async () => {
        const query = 'key=validation_min_password_length'
        const problem = await problemOf(await settings.unset({ query }), 400)
        expect(problem.errors).to.deep.equal([
          {
            key: 'validation_min_password_length',
            expected: 'at most validation_max_password_length, which is 6',
            got: '"8"',
          },
        ])
      })
      const query = 'key=validation_min_password_length&key=validation_max_password_length'
      expect((await settings.unset({ query })).status).to.equal(200)
      expect(await settings.shown()).to.include({
        validation_min_password_length: '8',
        validation_max_password_length: '64',
      })
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
      const [before, events] = [
        await h.store.settings.read(),
        eventsOf(h, 'settings_changed').length,
      ]
      const body = { ...(await settings.shown()), smtp_from_name: `Name of ${before.version}` }
      expect((await settings.put({ body })).status).to.equal(200)
      const { smtp_from_name } = body
      const { values } = await h.store.settings.read()
      expect(values).to.deep.equal({ ...before.values, smtp_from_name })
      const told = eventsOf(h, 'settings_changed').slice(events)
      expect(told.map(({ details }) => details?.['keys'])).to.deep.equal([['smtp_from_name']])
    })
  })

  it('A refusal never shows a secret, or what came for a name that no setting has', () =>
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
        const text = await (await settings.put({ body })).text()
        expect(JSON.parse(text)).to.include({ status: 400, code: 'invalid_settings' })
        expect(text).not.to.include('canary')
      }
      const answer = await settings.put({ body: { smtp_port: 'a visible mistake' } })
      expect(await answer.text()).to.include('a visible mistake')
    }))

  describe('A warning is in the answer', () => {
    const warnings = async (body: Record<string, string>) =>
      String((await (await settings.put({ query: 'dry_run=true', body })).json()).warnings ?? '')

    it('where verification is required and SMTP is not configured', async () => {
      const on = { require_email_verification: 'true' }
      for (const missing of ['smtp_host', 'smtp_from']) {
        expect(await warnings({ ...on, [missing]: '' })).to.match(
          /require_email_verification.*cannot sign in/,
        )
      }
      expect(await warnings(on)).to.equal('')
      const off = { require_email_verification: 'false', smtp_host: '' }
      expect(await warnings(off))
        .to.include('SMTP is not configured')
        .and.not.include('sign in')
    })

    it('where only one of user name and password is given', async () => {
      expect(await warnings({ smtp_username: '' })).to.include('together')
      expect(await warnings({ smtp_password: '' })).to.include('together')
      expect(await warnings({ smtp_username: '', smtp_password: '' })).to.equal('')
      const query = 'key=smtp_password&dry_run=true'
      const answer = await (await settings.unset({ query })).json()
      expect(String(answer.warnings)).to.include('together')
    })
  })
})
