import { expect } from 'chai'
import { settingNamed } from '../../src/settings/table.ts'
import { bearer, problemOf, settingsOf } from '../support/admin-requests.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { eventsOf } from '../support/observe.ts'
import { badNames, badValues, goodValues } from '../support/settings-values.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

describe('PUT {base_url}/admin/api/settings refuses (2.5, 4.5, 5.1)', () => {
  const h = suiteHarness()
  const { shown, put } = settingsOf(h)
  const good = JSON.stringify({ email_verification_expiration: '5h' })

  before(() => h.put({ smtp_password: 'canary of the password', smtp_username: 'mailer' }))

  const send = (request: RequestInit, query = '') =>
    fetch(`${h.baseUrl}/admin/api/settings${query}`, { method: 'PUT', ...request })
  const state = async () => [await shown(), await h.store.settings.read()]

  /** Whatever is refused: nothing changed, and an honest request still works. */
  function itRefuses(title: string, work: () => Promise<unknown>) {
    it(title, async () => {
      const before = await state()
      await work()
      expect(await state()).to.deep.equal(before)
      const lifetime = (await shown())['password_reset_expiration'] === '2h' ? '3h' : '2h'
      await h.put({ password_reset_expiration: lifetime })
      expect(await shown()).to.include({ password_reset_expiration: lifetime })
    })
  }

  describe('whoever does not show the admin token: 401, WWW-Authenticate, and an event (ADM-01)', () => {
    const upper = ADMIN_TOKEN.toUpperCase()
    const shows = (authorization: string) => ({ authorization })
    const unauthorized: Record<string, Record<string, string>> = {
      'no header': {},
      'an empty header': shows(''),
      'no token': shows('Bearer'),
      'an empty token': shows('Bearer '),
      'Bearer undefined': shows('Bearer undefined'),
      'Bearer null': shows('Bearer null'),
      'another token of the same length': shows(`Bearer ${'x'.repeat(ADMIN_TOKEN.length)}`),
      'a part of it': shows(`Bearer ${ADMIN_TOKEN.slice(0, -1)}`),
      'its end': shows(`Bearer ${ADMIN_TOKEN.slice(1)}`),
      'more than it': shows(`Bearer ${ADMIN_TOKEN}x`),
      'it twice': shows(`Bearer ${ADMIN_TOKEN}${ADMIN_TOKEN}`),
      'it and another': shows(`Bearer ${ADMIN_TOKEN}, Bearer x`),
      'it in upper case': shows(`Bearer ${upper}`),
      'it with padding': shows(`Bearer ${ADMIN_TOKEN}=`),
      'it in quotes': shows(`Bearer "${ADMIN_TOKEN}"`),
      'it without a scheme': shows(ADMIN_TOKEN),
      'another scheme': shows(`Basic ${btoa(`admin:${ADMIN_TOKEN}`)}`),
      'it as a token of another scheme': shows(`Token ${ADMIN_TOKEN}`),
      'it in a cookie': {
        cookie: `access_token=${ADMIN_TOKEN}; Authorization=Bearer ${ADMIN_TOKEN}`,
      },
      'it in another header': {
        'x-admin-token': ADMIN_TOKEN,
        'x-authorization': `Bearer ${ADMIN_TOKEN}`,
      },
    }
    async function isRefused(response: Response) {
      expect(response.headers.get('www-authenticate')).to.match(/^Bearer/)
      expect(response.headers.has('access-control-allow-origin')).to.equal(false)
      await problemOf(response, 401)
    }
    for (const [what, headers] of Object.entries(unauthorized)) {
      itRefuses(what, async () => {
        const failed = eventsOf(h, 'admin_auth_failed').length
        await isRefused(await send({ headers: { ...headers, ...JSON_TYPE }, body: good }))
        await isRefused(await send({ method: 'GET', headers }))
        const events = eventsOf(h, 'admin_auth_failed').slice(failed)
        expect(events).to.have.length(2)
        for (const presented of [ADMIN_TOKEN.slice(1, -1), upper.slice(1, -1), 'Bearer']) {
          expect(JSON.stringify(events)).not.to.include(presented)
        }
      })
    }

    itRefuses('the token in the query or in the body (ADM-03)', async () => {
      const query = `?access_token=${ADMIN_TOKEN}&token=${ADMIN_TOKEN}`
      const body = JSON.stringify({ access_token: ADMIN_TOKEN, smtp_port: '26' })
      await isRefused(await send({ headers: JSON_TYPE, body: good }, query))
      await isRefused(await send({ method: 'GET' }, query))
      await isRefused(await send({ headers: JSON_TYPE, body }))
    })

    itRefuses('before it looks at the method or the body (ADM-07)', async () => {
      await isRefused(await send({ method: 'DELETE' }))
      await isRefused(await send({ body: 'x'.repeat(70_000) }))
    })

    it('but takes the scheme in any case (RFC 9110, 11.1)', async () => {
      const headers = { authorization: `bearer ${ADMIN_TOKEN}` }
      expect((await send({ method: 'GET', headers })).status).to.equal(200)
    })
  })

  describe('what is not one JSON object of at most 64 KiB (SET-07)', () => {
    const authorized = (
      body: string | Uint8Array<ArrayBuffer>,
      headers: Record<string, string> = JSON_TYPE,
    ) => send({ headers: { ...bearer, ...headers }, body })

    const texts = ['', ' ', 'null', '"smtp_port"', '26', 'true', '{', '{"smtp_port":"26"']
    for (const body of [...texts, '[]', '[{"smtp_port":"26"}]', "{'smtp_port':'26'}"]) {
      itRefuses(`such as ${JSON.stringify(body)}: 400`, async () =>
        problemOf(await authorized(body), 400),
      )
    }

    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data; boundary=b',
      'application/jsonx',
      'text/json',
    ]) {
      itRefuses(`such as ${type}: 415`, async () =>
        problemOf(await authorized(good, { 'content-type': type }), 415),
      )
    }

    itRefuses('such as a body without a type: 415', async () =>
      problemOf(await authorized(new TextEncoder().encode(good), {}), 415),
    )

    itRefuses('such as one byte more: 413; exactly 64 KiB are read', async () => {
      await problemOf(await authorized(good.padEnd(65_537)), 413)
      await problemOf(await authorized(JSON.stringify({ smtp_port: '0' }).padEnd(65_536)), 400)
    })

    for (const method of ['POST', 'PATCH', 'DELETE', 'OPTIONS']) {
      itRefuses(`such as ${method}: 405, and says which methods are allowed (ADM-12)`, async () => {
        const headers = { ...bearer, ...JSON_TYPE, 'x-http-method-override': 'PUT' }
        const response = await send({ method, headers, body: good })
        expect(response.headers.get('allow')).to.equal('GET, HEAD, PUT')
        await problemOf(response, 405)
      })
    }
  })

  describe('a body with one bad setting: 400 that names it, and applies none (SET-01, SET-03, SET-09, SET-10, MAIL-07, MAIL-08)', () => {
    const innocent = { password_reset_expiration: '4h', email_verification_expiration: '5h' }

    async function isRefused(bad: Record<string, unknown>) {
      const { errors = [] } = await problemOf(await put({ body: { ...innocent, ...bad } }), 400)
      const what = JSON.stringify(bad)
      expect(errors.map(({ key }) => key)).to.have.members(Object.keys(bad), what)
      for (const { expected } of errors) expect(expected).to.be.a('string').and.not.equal('')
    }

    for (const [key, values] of Object.entries(badValues)) {
      for (const value of values) {
        itRefuses(`${key}: ${JSON.stringify(value).slice(0, 60)}`, () =>
          isRefused({ [key]: value }),
        )
      }
    }

    for (const value of [26, 0, null, true, [], ['26'], { $gt: '' }, { smtp_port: '26' }, 1e400]) {
      itRefuses(`a value that is no string: ${JSON.stringify(value)}`, async () => {
        for (const key of ['smtp_port', 'require_email_verification', 'smtp_password']) {
          await isRefused({ [key]: value })
        }
      })
    }

    for (const key of badNames) {
      itRefuses(`a name that is none: ${JSON.stringify(key)}`, () => isRefused({ [key]: '26' }))
    }

    itRefuses('__proto__, as text or as an object with settings in it', async () => {
      for (const value of ['"x"', '{"smtp_port":"26"}', '{"isAdmin":"true"}']) {
        const body = `{"smtp_from":"b@idp.example","__proto__":${value}}`
        await problemOf(await send({ headers: { ...bearer, ...JSON_TYPE }, body }), 400)
      }
      expect(Reflect.get({}, 'smtp_port')).to.equal(undefined)
      expect(Reflect.get({}, 'isAdmin')).to.equal(undefined)
    })

    itRefuses('lists every bad key of one body (SET-06)', () =>
      isRefused({ smtp_port: '0', nonsense: 'x', smtp_host: 25, smtp_from: '@' }),
    )

    itRefuses(
      'a minimum above the maximum, of the same body or of the one in force (SET-05)',
      async () => {
        for (const bad of [
          { validation_min_password_length: '20', validation_max_password_length: '19' },
          { validation_min_password_length: '65' },
          { validation_max_password_length: '7' },
        ]) {
          const problem = await problemOf(await put({ body: { ...innocent, ...bad } }), 400)
          expect(JSON.stringify(problem)).to.include('validation_m')
        }
      },
    )
  })

  describe('but answers 200 to a good value, and it is in force:', () => {
    for (const [key, values] of Object.entries(goodValues)) {
      for (const value of values) {
        it(`${key}: ${JSON.stringify(value).slice(0, 60)}`, async () => {
          const { [key]: _, ...others } = await shown()
          const response = await put({ body: { [key]: value } })
          expect(response.status).to.equal(200)
          const { warnings: __, ...answered }: Record<string, unknown> = await response.json()
          const given = settingNamed(key)?.secret && value !== '' ? '***' : value
          const { warnings: ___, ...inForce } = await shown()
          expect(inForce).to.deep.equal(answered)
          if (key === 'smtp_host') delete others['smtp_password']
          expect(inForce).to.deep.include({ ...others, ...(given !== '' && { [key]: given }) })
          if (given === '') expect(inForce).not.to.have.property(key)
        })
      }
    }
  })
})
