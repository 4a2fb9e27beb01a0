import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { adminSettingsSuite, bearer } from '../support/admin-settings-suite.ts'
import { badNames, badValues, goodValues } from '../support/settings-values.ts'

const JSON_TYPE = 'application/json'

onBothStores('PUT {base_url}/admin/api/settings checks every value (2.5, 4.5)', (technology) => {
  const { harness, url, shown, itRefuses } = adminSettingsSuite(technology)
  const put = (body: string) =>
    fetch(url(), { method: 'PUT', headers: { ...bearer, 'content-type': JSON_TYPE }, body })

  /** RFC 9457, with no secret in it. */
  async function problemOf(response: Response): Promise<Record<string, unknown>> {
    expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
    expect(response.headers.get('cache-control')).to.equal('no-store')
    const text = await response.text()
    expect(text).not.to.include('canary').and.not.to.include(ADMIN_TOKEN)
    const problem = JSON.parse(text)
    expect(problem).to.include({ status: response.status })
    expect(problem.title).to.be.a('string').and.not.equal('')
    return problem
  }

  describe('a body with one bad setting: 400 that names it, and applies none (D27, SET-01, SET-03, SET-09, SET-10, MAIL-07, MAIL-08)', () => {
    const innocent = { password_reset_expiration: '4h', email_verification_expiration: '5h' }

    async function isRefused(body: string, keys: string[]) {
      const response = await put(body)
      expect(response.status, body).to.equal(400)
      const { errors } = await problemOf(response)
      if (!Array.isArray(errors)) throw new TypeError(`no errors for ${body}`)
      expect(
        errors.map(({ key }) => key),
        body,
      ).to.have.members(keys)
      for (const { expected } of errors) expect(expected).to.be.a('string').and.not.equal('')
    }

    for (const [key, values] of Object.entries(badValues)) {
      for (const value of values) {
        itRefuses(`${key}: ${JSON.stringify(value).slice(0, 60)}`, () =>
          isRefused(JSON.stringify({ ...innocent, [key]: value }), [key]),
        )
      }
    }

    for (const value of [26, 0, null, true, [], ['26'], { $gt: '' }, { smtp_port: '26' }, 1e400]) {
      itRefuses(`a value that is no string: ${JSON.stringify(value)}`, async () => {
        for (const key of ['smtp_port', 'require_email_verification', 'smtp_password']) {
          await isRefused(JSON.stringify({ ...innocent, [key]: value }), [key])
        }
      })
    }

    for (const key of badNames) {
      itRefuses(`a name that is none: ${JSON.stringify(key)}`, () =>
        isRefused(JSON.stringify({ ...innocent, [key]: '26' }), [key]),
      )
    }

    itRefuses('__proto__, as text or as an object with settings in it', async () => {
      for (const value of ['"x"', '{"smtp_port":"26"}', '{"isAdmin":"true"}']) {
        const response = await put(`{"smtp_from":"b@idp.example","__proto__":${value}}`)
        expect(response.status).to.equal(400)
        await problemOf(response)
      }
      expect(Reflect.get({}, 'smtp_port')).to.equal(undefined)
      expect(Reflect.get({}, 'isAdmin')).to.equal(undefined)
    })

    itRefuses('lists every bad key of one body (SET-06)', () =>
      isRefused(
        JSON.stringify({
          ...innocent,
          smtp_port: '0',
          nonsense: 'x',
          smtp_host: 25,
          smtp_from: '@',
        }),
        ['smtp_port', 'nonsense', 'smtp_host', 'smtp_from'],
      ),
    )

    itRefuses(
      'a minimum above the maximum, of the same body or of the one in force (SET-05)',
      async () => {
        for (const body of [
          { validation_min_password_length: '20', validation_max_password_length: '19' },
          { validation_min_password_length: '65' },
          { validation_max_password_length: '7' },
        ]) {
          const response = await put(JSON.stringify({ ...innocent, ...body }))
          expect(response.status).to.equal(400)
          expect(JSON.stringify(await problemOf(response))).to.include('validation_m')
        }
      },
    )
  })

  describe('a good value: 200, and it is in force', () => {
    for (const [key, values] of Object.entries(goodValues)) {
      for (const value of values) {
        it(`${key}: ${JSON.stringify(value).slice(0, 60)}`, async () => {
          await harness().put({ [key]: value })
          const inForce = (await shown())[key] ?? ''
          expect(inForce).to.equal(key === 'smtp_password' && value !== '' ? '***' : value)
        })
      }
    }
  })
})
