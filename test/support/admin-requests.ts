import { expect } from 'chai'
import type { Problem } from '../../src/admin/api-types.ts'
import { ADMIN_TOKEN, type Harness } from './harness.ts'

export interface SettingsRequest {
  /** As it is behind the `?`. */
  query?: string
  body?: unknown
  ifMatch?: string
}

/** What an admin asks of `{base_url}/admin/api/settings`. */
export function settingsOf({ baseUrl }: Pick<Harness, 'baseUrl'>) {
  const ask =
    (method: string, path = '') =>
    ({ query, body, ifMatch }: SettingsRequest = {}) =>
      fetch(`${baseUrl}/admin/api/settings${path}${query === undefined ? '' : `?${query}`}`, {
        method,
        headers: {
          authorization: `Bearer ${ADMIN_TOKEN}`,
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

export async function problemOf(response: Response, status: number): Promise<Problem> {
  const text = await response.text()
  expect(response.status, text).to.equal(status)
  expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
  return JSON.parse(text)
}
