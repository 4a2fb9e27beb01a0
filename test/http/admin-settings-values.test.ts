import { expect } from 'chai'
import { adminSettingsSuite, bearer, plainProblemOf } from '../support/admin-settings-suite.ts'
import { badNames, badValues, goodValues } from '../support/settings-values.ts'

const JSON_TYPE = 'application/json'

describe('PUT {base_url}/admin/api/settings checks every value (2.5, 4.5)', () => {
  const { url, shown, itRefuses } = adminSettingsSuite()
  const put = (body: string) =>
    fetch(url(), { method: 'PUT', headers: { ...bearer, 'content-type': JSON_TYPE }, body })

  describe('a body with one bad setting: 400 that names it, and applies none (D27, SET-01, SET-03, SET-09, SET-10, MAIL-07, MAIL-08)', () => {
    const innocent = { password_reset_expiration: '4h', email_verification_expiration: '5h' }

    async function isRefused(body: string, keys: string[]) {
      const response = await put(body)
      expect(response.status, body).to.equal(400)
      const { errors } = await plainProblemOf(response)
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
        await plainProblemOf(response)
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
          expect(JSON.stringify(await plainProblemOf(response))).to.include('validation_m')
        }
      },
    )
  })

  describe('a good value: 200, and it is in force', () => {
    for (const [key, values] of Object.entries(goodValues)) {
      for (const value of values) {
        it(`${key}: ${JSON.stringify(value).slice(0, 60)}`, async () => {
          const { [key]: _, ...others } = await shown()
          const response = await put(JSON.stringify({ [key]: value }))
          expect(response.status).to.equal(200)
          const { warnings: __, ...answered }: Record<string, unknown> = await response.json()
          const given = key === 'smtp_password' && value !== '' ? '***' : value
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
