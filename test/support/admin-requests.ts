import { expect } from 'chai'
import type { Problem } from '../../src/admin/description.ts'
import { ADMIN_TOKEN, type Harness } from './harness.ts'

export const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` }

export interface SettingsRequest {
  /** As it is behind the `?`. */
  query?: string
  body?: unknown
  ifMatch?: string
}

/** What an admin asks of `{base_url}/admin/api/settings`. The harness may be one that starts later. */
export function settingsOf(h: Pick<Harness, 'baseUrl'>) {
  const ask =
    (method: string, path = '') =>
    ({ query, body, ifMatch }: SettingsRequest = {}) =>
      fetch(`${h.baseUrl}/admin/api/settings${path}${query === undefined ? '' : `?${query}`}`, {
        method,
        headers: {
          ...bearer,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(ifMatch !== undefined && { 'if-match': ifMatch }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
  const get = ask('GET')
  return {
    get,
    put: ask('PUT'),
    unset: ask('POST', '/unset'),

    async shown(): Promise<Record<string, string>> {
      const response = await get()
      expect(response.status).to.equal(200)
      return response.json()
    },

    async etag(): Promise<string> {
      return (await get()).headers.get('etag') ?? 'none'
    },
  }
}

/** RFC 9457, with no secret in it. */
export async function problemOf(response: Response, status: number): Promise<Problem> {
  const text = await response.text()
  expect(response.status, text).to.equal(status)
  expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
  expect(response.headers.get('cache-control')).to.equal('no-store')
  expect(text).not.to.include('canary').and.not.to.include(ADMIN_TOKEN)
  const problem = JSON.parse(text)
  expect(problem).to.include({ status })
  expect(problem.title).to.be.a('string').and.not.equal('')
  return problem
}
