import { expect } from 'chai'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { adminSettingsSuite, bearer, plainProblemOf } from '../support/admin-settings-suite.ts'
import { eventsOf } from '../support/observe.ts'

const JSON_TYPE = 'application/json'

describe('PUT {base_url}/admin/api/settings refuses (4.5, 5.1)', () => {
  const { harness, url, itRefuses } = adminSettingsSuite()
  const good = JSON.stringify({ email_verification_expiration: '5h' })

  const put = (body: string, headers: Record<string, string> = {}) =>
    fetch(url(), {
      method: 'PUT',
      headers: { ...bearer, 'content-type': JSON_TYPE, ...headers },
      body,
    })

  describe('whoever does not show the admin token: 401, WWW-Authenticate, and an event (ADM-01)', () => {
    const upper = ADMIN_TOKEN.toUpperCase()
    const unauthorized: Record<string, Record<string, string>> = {
      'no header': {},
      'an empty header': { authorization: '' },
      'no token': { authorization: 'Bearer' },
      'an empty token': { authorization: 'Bearer ' },
      'Bearer undefined': { authorization: 'Bearer undefined' },
      'Bearer null': { authorization: 'Bearer null' },
      'another token of the same length': {
        authorization: `Bearer ${'x'.repeat(ADMIN_TOKEN.length)}`,
      },
      'a part of it': { authorization: `Bearer ${ADMIN_TOKEN.slice(0, -1)}` },
      'its end': { authorization: `Bearer ${ADMIN_TOKEN.slice(1)}` },
      'more than it': { authorization: `Bearer ${ADMIN_TOKEN}x` },
      'it twice': { authorization: `Bearer ${ADMIN_TOKEN}${ADMIN_TOKEN}` },
      'it and another': { authorization: `Bearer ${ADMIN_TOKEN}, Bearer x` },
      'it in upper case': { authorization: `Bearer ${upper}` },
      'it with padding': { authorization: `Bearer ${ADMIN_TOKEN}=` },
      'it in quotes': { authorization: `Bearer "${ADMIN_TOKEN}"` },
      'it without a scheme': { authorization: ADMIN_TOKEN },
      'another scheme': { authorization: `Basic ${btoa(`admin:${ADMIN_TOKEN}`)}` },
      'it as a token of another scheme': { authorization: `Token ${ADMIN_TOKEN}` },
      'it in a cookie': {
        cookie: `access_token=${ADMIN_TOKEN}; Authorization=Bearer ${ADMIN_TOKEN}`,
      },
      'it in another header': {
        'x-admin-token': ADMIN_TOKEN,
        'x-authorization': `Bearer ${ADMIN_TOKEN}`,
      },
    }
    async function isRefused(response: Response) {
      expect(response.status).to.equal(401)
      expect(response.headers.get('www-authenticate')).to.match(/^Bearer/)
      expect(response.headers.has('access-control-allow-origin')).to.equal(false)
      await plainProblemOf(response)
    }
    for (const [what, headers] of Object.entries(unauthorized)) {
      itRefuses(what, async () => {
        const failed = eventsOf(harness(), 'admin_auth_failed').length
        const type = { 'content-type': JSON_TYPE }
        await isRefused(
          await fetch(url(), { method: 'PUT', headers: { ...headers, ...type }, body: good }),
        )
        await isRefused(await fetch(url(), { headers }))
        const events = eventsOf(harness(), 'admin_auth_failed').slice(failed)
        expect(events).to.have.length(2)
        for (const presented of [ADMIN_TOKEN.slice(1, -1), upper.slice(1, -1), 'Bearer']) {
          expect(JSON.stringify(events)).not.to.include(presented)
        }
      })
    }

    itRefuses('the token in the query or in the body (ADM-03)', async () => {
      const headers = { 'content-type': JSON_TYPE }
      const query = `${url()}?access_token=${ADMIN_TOKEN}&token=${ADMIN_TOKEN}`
      const body = JSON.stringify({ access_token: ADMIN_TOKEN, smtp_port: '26' })
      await isRefused(await fetch(query, { method: 'PUT', headers, body: good }))
      await isRefused(await fetch(query))
      await isRefused(await fetch(url(), { method: 'PUT', headers, body }))
    })

    itRefuses('before it looks at the method or the body (ADM-07)', async () => {
      await isRefused(await fetch(url(), { method: 'DELETE' }))
      await isRefused(await fetch(url(), { method: 'PUT', body: 'x'.repeat(70_000) }))
    })

    it('but takes the scheme in any case (RFC 9110, 11.1)', async () => {
      const response = await fetch(url(), { headers: { authorization: `bearer ${ADMIN_TOKEN}` } })
      expect(response.status).to.equal(200)
    })
  })

  describe('what is not one JSON object of at most 64 KiB (SET-07)', () => {
    for (const body of [
      '',
      ' ',
      '[]',
      '[{"smtp_port":"26"}]',
      'null',
      '"smtp_port"',
      '26',
      'true',
      '{',
      '{"smtp_port":"26"',
      "{'smtp_port':'26'}",
    ]) {
      itRefuses(`such as ${JSON.stringify(body)}: 400`, async () => {
        const response = await put(body)
        expect(response.status).to.equal(400)
        await plainProblemOf(response)
      })
    }

    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data; boundary=b',
      'application/jsonx',
      'text/json',
    ]) {
      itRefuses(`such as ${type}: 415`, async () => {
        const response = await put(good, { 'content-type': type })
        expect(response.status).to.equal(415)
        await plainProblemOf(response)
      })
    }

    itRefuses('such as a body without a type: 415', async () => {
      const response = await fetch(url(), {
        method: 'PUT',
        headers: bearer,
        body: Buffer.from(good),
      })
      expect(response.status).to.equal(415)
    })

    itRefuses('such as one byte more: 413; exactly 64 KiB are read', async () => {
      const tooLarge = await put(good.padEnd(65_537))
      expect(tooLarge.status).to.equal(413)
      await plainProblemOf(tooLarge)
      const response = await put(JSON.stringify({ smtp_port: '0' }).padEnd(65_536))
      expect(response.status).to.equal(400)
    })

    for (const method of ['POST', 'PATCH', 'DELETE', 'OPTIONS']) {
      itRefuses(`such as ${method}: 405, and says which methods are allowed (ADM-12)`, async () => {
        const response = await fetch(url(), {
          method,
          headers: { ...bearer, 'content-type': JSON_TYPE, 'x-http-method-override': 'PUT' },
          body: good,
        })
        expect(response.status).to.equal(405)
        expect(response.headers.get('allow')).to.equal('GET, HEAD, PUT')
        await plainProblemOf(response)
      })
    }
  })
})
