import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { expectPage } from '../support/expect-page.ts'
import { PASSWORD } from '../support/harness.ts'
import { dump, eventsOf, hasPassword, tokenOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a new password'
const MISMATCH = 'password_mismatch'

describe('The form of POST {oauth_path}/reset-password (4.4, 8)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()
  let user: User
  let link: string

  before(async () => {
    user = await h.addUser({ username: 'ann' })
    link = await h.resetLink(user)
  })

  const post = (fields: string) =>
    agent.post(`${h.oauthUrl}/reset-password`, `token=${tokenOf(link)}&${fields}`)
  const passwords = (password: string, confirm_password = password) =>
    new URLSearchParams({ password, confirm_password }).toString()

  describe('is refused, and leaves the token unspent (D8, TOK-12)', () => {
    const refused: Record<string, [mode: string, fields: string]> = {
      'passwords that differ': [MISMATCH, passwords(NEW, 'another password')],
      'passwords that differ in case': [MISMATCH, passwords(NEW, 'A new password')],
      'passwords that differ in a space at the end': [MISMATCH, passwords(NEW, `${NEW} `)],
      'composed and decomposed letters': [
        MISMATCH,
        passwords('passw\u00F6rter', 'passwo\u0308rter'),
      ],
      'no confirmation': [MISMATCH, 'password=a+new+password'],
      'a confirmation alone': [MISMATCH, 'confirm_password=a+new+password'],
      'no passwords': ['password_too_short', ''],
      'empty passwords': ['password_too_short', passwords('')],
      '7 characters': ['password_too_short', passwords('a'.repeat(7))],
      '7 emoji, which are 14 UTF-16 units': ['password_too_short', passwords('🔑'.repeat(7))],
      '65 characters': ['password_too_long', passwords('a'.repeat(65))],
      '73 bytes in 37 characters': ['password_too_long', passwords(`${'é'.repeat(36)}a`)],
      '19 emoji, which are 76 bytes': ['password_too_long', passwords('🔑'.repeat(19))],
      '30,000 characters': ['password_too_long', passwords('a'.repeat(30_000))],
      NUL: ['password_invalid', passwords('a new\0password')],
    }
    for (const [what, [mode, fields]] of Object.entries(refused)) {
      it(`for ${what}: 400 and the form again, with the reason and without the password`, async () => {
        const answer = await post(fields)
        expectPage(answer, 400, 'reset-password', mode)
        expect(answer.hidden).to.deep.equal({ token: tokenOf(link) })
        expect(answer.text).to.include('id="refusal"')
        const inputs = answer.text.match(/<input[^>]* type="password"[^>]*>/g) ?? []
        expect(inputs).to.have.length(2)
        for (const input of inputs) expect(input).not.to.include('value=')
        expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
        expect((await agent.get(link)).mode).to.equal('form')
      })
    }

    it('and after all of that the same link still sets a good password', async () => {
      expect(eventsOf(h, 'password_reset_completed', user)).to.deep.equal([])
      expect((await post(passwords(NEW))).mode).to.equal('done')
      expect(await hasPassword(h, user, NEW)).to.equal(true)
      expect(eventsOf(h, 'password_reset_completed', user)).to.have.length(1)
      expect(await dump(h)).not.to.include(NEW)
    })
  })

  // Spaces, case and other spellings of a letter are in test/attacks/passwords.test.ts.
  describe('sets exactly the password that was typed (D8)', () => {
    const accepted: Record<string, [password: string, others: string[]]> = {
      'of exactly the minimum of 8 characters': ['12345678', ['1234567', '123456789']],
      'of exactly the maximum of 64 characters': ['x'.repeat(64), ['x'.repeat(63)]],
      'of 8 emoji': ['🔑'.repeat(8), ['🔑'.repeat(7)]],
      'of 72 bytes in 18 emoji': ['🔑'.repeat(18), [`${'🔑'.repeat(17)}🔒`, '🔑'.repeat(17)]],
      'with signs of forms and markup': ['a+b&c=d%20"<é', ['a b&c=d%20"<é', 'a+b&c=d "<é']],
    }
    for (const [what, [password, others]] of Object.entries(accepted)) {
      it(what, async () => {
        link = await h.resetLink(user)
        expect((await post(passwords(password))).mode).to.equal('done')
        expect(await hasPassword(h, user, password)).to.equal(true)
        for (const other of others) expect(await hasPassword(h, user, other), other).to.equal(false)
      })
    }

    it('of letters that are not encoded', async () => {
      link = await h.resetLink(user)
      const answer = await post('password=schön und lang&confirm_password=schön und lang')
      expect(answer.mode).to.equal('done')
      expect(await hasPassword(h, user, 'schön und lang')).to.equal(true)
    })
  })

  describe('follows validation_min_password_length and validation_max_password_length', () => {
    before(() =>
      h.put({ validation_min_password_length: '10', validation_max_password_length: '12' }),
    )

    it('on the form, in the refusal and at both ends', async () => {
      link = await h.resetLink(user)
      expect((await agent.get(link)).text).to.include('Use 10 to 12 characters.')
      const short = await post(passwords('a'.repeat(9)))
      expect(short.mode).to.equal('password_too_short')
      expect(short.text).to.include('at least 10 characters')
      const long = await post(passwords('a'.repeat(13)))
      expect(long.mode).to.equal('password_too_long')
      expect(long.text).to.include('at most 12 characters')
      expect((await post(passwords('a'.repeat(10)))).mode).to.equal('done')
      link = await h.resetLink(user)
      expect((await post(passwords('a'.repeat(12)))).mode).to.equal('done')
      expect(await hasPassword(h, user, 'a'.repeat(12))).to.equal(true)
    })

    it('and never takes more than 72 bytes, whatever the maximum', async () => {
      await h.put({ validation_max_password_length: '72' })
      link = await h.resetLink(user)
      expect((await post(passwords(`${'a'.repeat(71)}é`))).mode).to.equal('password_too_long')
      expect((await post(passwords('a'.repeat(72)))).mode).to.equal('done')
      expect(await hasPassword(h, user, 'a'.repeat(72))).to.equal(true)
    })
  })
})
