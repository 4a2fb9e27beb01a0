import { expect } from 'chai'
import { ADMIN_TOKEN, startHarness, type Harness, type Technology } from './harness.ts'

export const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` }

/** One harness for a suite about `{base_url}/admin/api/settings`, and what its tests ask of it. */
export function adminSettingsSuite(technology: Technology) {
  let h: Harness

  before(async () => {
    h = await startHarness({ technology })
    await h.put({ smtp_password: 'canary of the password', smtp_username: 'mailer' })
  })
  after(() => h.close())

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
