import { expect } from 'chai'
import { ADMIN_TOKEN } from './harness.ts'
import { suiteHarness } from './suite-harness.ts'

export const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` }

/** One harness for a suite about `{base_url}/admin/api/settings`, and what its tests ask of it. */
export function adminSettingsSuite() {
  const h = suiteHarness()
  before(() => h.put({ smtp_password: 'canary of the password', smtp_username: 'mailer' }))

  const url = () => `${h.baseUrl}/admin/api/settings`
  const state = async () => [await shown(), await h.store.settings.read()]

  async function shown(): Promise<Record<string, string>> {
    const response = await fetch(url(), { headers: bearer })
    expect(response.status).to.equal(200)
    return response.json()
  }

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

  return { harness: () => h, url, state, shown, itRefuses }
}

/** RFC 9457, with no secret in it. */
export async function plainProblemOf(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
  expect(response.headers.get('cache-control')).to.equal('no-store')
  const text = await response.text()
  expect(text).not.to.include('canary').and.not.to.include(ADMIN_TOKEN)
  const problem = JSON.parse(text)
  expect(problem).to.include({ status: response.status })
  expect(problem.title).to.be.a('string').and.not.equal('')
  return problem
}
