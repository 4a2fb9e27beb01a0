import type { Person } from '../support/person.ts'
import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { expectPage } from '../support/expect-page.ts'
import { PASSWORD } from '../support/harness.ts'
import { databaseOf, dump, sha256, usableRecord } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, decodeEntities } from '../support/user-agent.ts'
import { expectTitle, words } from '../support/words.ts'
import { tokenOf, userWithLink } from '../support/person.ts'

/** What to look for in the writes of a reset, in their order. */
const STEPS: Record<string, string> = {
  'password_reset_tokens.claimed_at': 'the token is claimed',
  'users.password_hash': '1 the password is replaced',
  'password_reset_tokens.used_at': '2 the token is marked used',
  'session_cutoffs.oauth_at': '3 the OAuth sessions end',
  'session_cutoffs.idp_at': '4 the IdP sessions end',
  audit_events: '5 password_reset_completed',
  'password_reset_tokens.completed_at': 'all is done',
}

describe('{oauth_path}/reset-password', () => {
  const agent = createUserAgent()
  const h = suiteHarness()

  describe('GET with the token of a link (4.3)', () => {
    it('renders the new-password form', async () => {
      const { link } = await userWithLink(h)
      const page = await agent.get(link)
      expect(page.status).to.equal(200)
      expect([page.page, page.mode]).to.deep.equal(['reset-password', 'form'])
      expect(page.hidden).to.deep.equal({ token: tokenOf(link), ui_locales: 'en' })
      expect(page.text).to.include('Use 8 to 64 characters.')
      for (const name of ['password', 'confirm_password']) {
        const [field = ''] = new RegExp(`<input[^>]* name="${name}"[^>]*>`).exec(page.text) ?? []
        expect(field).to.include('type="password"').and.include('autocomplete="new-password"')
      }
    })

    it('does not say whose it is (ENU-08)', async () => {
      const { user, link } = await userWithLink(h)
      const refused = await h.reset(link, 'a new password', 'another one')
      expect(refused.mode).to.equal('password_mismatch')
      for (const { text } of [await agent.get(link), refused]) {
        for (const secret of [user.username, user.email ?? '', user.id, 'users.example']) {
          expect(text.replaceAll(tokenOf(link), '')).not.to.include(secret)
        }
      }
    })
  })

  describe('POST with a valid form applies the effects of a reset (4.4, 3.3)', () => {
    it('and shows a success message, without a cookie and without signing in (SES-06)', async () => {
      const { user, link } = await userWithLink(h, { emailVerified: false })
      const own = createUserAgent()
      const form = { token: tokenOf(link), password: 'a new password' }
      const answer = await own.post(`${h.oauthUrl}/reset-password`, {
        ...form,
        confirm_password: form.password,
      })
      expect(answer.status).to.equal(200)
      expect([answer.page, answer.mode]).to.deep.equal(['reset-password', 'done'])
      expectTitle(answer, 'reset-password.done.title')
      expect(answer.text).not.to.include(form.password).and.not.to.include(form.token)
      expect(answer.headers.getSetCookie()).to.deep.equal([])
      const { url } = await h.party.begin()
      expect((await h.follow(own, await own.get(url))).page).to.equal('login')
      expect((await h.users.findById(user.id))?.emailVerified).to.equal(false)
    })

    it('so that the old password is refused and the new one signs in', async () => {
      const { user, link } = await userWithLink(h)
      await h.reset(link, 'a new password')
      const stored = await h.users.findById(user.id)
      expect(stored?.passwordHash).to.match(/^\$2b\$04\$/)
      expect((await h.signIn(createUserAgent(), user.username)).mode).to.equal('wrong')
      const request = await h.party.begin()
      const own = createUserAgent()
      const answer = await h.login(own, request.url, user.username, 'a new password')
      const { location = '' } = await h.follow(own, answer)
      const tokens = await h.party.exchange(request, location)
      expect(tokens.claims()?.sub).to.equal(user.id)
    })
  })
})

onBothStores('A reset', (technology) => {
  const h = suiteHarness({ technology })

  it('1 password, 2 used_at, 3 and 4 sessions, before 5 password_reset_completed', async () => {
    const { user, link } = await userWithLink(h)
    const record = await usableRecord(h, link)
    const atEvent = new Promise<[boolean, unknown]>((resolve, reject) => {
      h.flows.events.on('audit', ({ type, accountId }) => {
        if (type !== 'password_reset_completed' || accountId !== user.id) return
        const seen = [user.hasPassword('a new password'), h.store.cutoffs.read(user.id)]
        Promise.all(seen).then(([is, ends]) => resolve([is === true, ends]), reject)
      })
    })
    await h.reset(link, 'a new password')
    // Repeated, it changes nothing and tells what is in force.
    const token = await h.store.resetTokens.advance(record?.id ?? '', 'used', new Date())
    const usedAt = token?.usedAt ?? new Date(NaN)
    expect(await atEvent).to.deep.equal([true, { idpAt: usedAt, oauthAt: usedAt }])

    const events = h.events.filter(({ accountId }) => accountId === user.id)
    expect(events.map(({ type }) => type)).to.deep.equal([
      'password_reset_requested',
      'password_reset_mail_sent',
      'password_reset_completed',
    ])
    expect(Number(events[2]?.at)).to.be.at.least(usedAt.getTime())
    expect(events[2]?.id).to.equal(`completed:${record?.id}`)
  })

  if (technology === 'mongodb') {
    it('in that order also as MongoDB sees it', async () => {
      const { link } = await userWithLink(h)
      await databaseOf(h).command({ profile: 2 })
      await h.reset(link, 'a new password')
      await databaseOf(h).command({ profile: 0 })
      const writes = await databaseOf(h)
        .collection('system.profile')
        .find({ op: { $in: ['update', 'insert', 'remove', 'command'] } })
        .sort({ $natural: 1 })
        .toArray()
      const steps = writes.flatMap(({ ns, op, command }) => {
        const isWrite = op !== 'command' || 'findAndModify' in command || 'findandmodify' in command
        const change = JSON.stringify(command.u ?? command.update ?? command)
        const step = Object.keys(STEPS).find((name) => {
          const [collection, field = ''] = name.split('.')
          return ns === `${databaseOf(h).databaseName}.${collection}` && change.includes(field)
        })
        return isWrite && step ? [STEPS[step]] : []
      })
      expect(steps).to.deep.equal(Object.values(STEPS))
    })

    it('with used_at set, and no hash left in the token record', async () => {
      const { user, link } = await userWithLink(h)
      await h.reset(link, 'a new password')
      const token_hash = sha256(tokenOf(link))
      const record = await databaseOf(h).collection('password_reset_tokens').findOne({ token_hash })
      expect(record).to.include({ user_id: user.id, invalidated_at: null })
      expect(record?.['used_at']).to.be.an.instanceof(Date)
      expect(record?.['completed_at']).to.be.at.least(record?.['used_at'])
      expect(record).not.to.have.any.keys('new_hash', 'live', 'lease_until')
      const stored = await databaseOf(h).collection('users').findOne({ username: user.username })
      expect(JSON.stringify(record)).not.to.include(stored?.['password_hash'])
      expect(stored?.['password_changed_at']).to.be.an.instanceof(Date)
    })
  }
})

const NEW = 'a new password'
const MISMATCH = 'password_mismatch'

describe('The form of POST {oauth_path}/reset-password (4.4, 8)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()
  let user: Person
  let link: string

  before(async () => {
    user = await h.addUser({ username: 'ann' })
    link = await user.forgets()
  })

  const post = (fields: string) =>
    agent.post(`${h.oauthUrl}/reset-password`, `token=${tokenOf(link)}&${fields}`)
  const passwords = (password: string, confirm_password = password) =>
    new URLSearchParams({ password, confirm_password }).toString()

  describe('is refused, and leaves the token unspent (TOK-12)', () => {
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
        const field = mode === MISMATCH ? 'confirm_password' : 'password'
        expect(answer.text).to.match(new RegExp(`class="hint fault" id="${field}-hint"`))
        const inputs = answer.text.match(/<input[^>]* type="password"[^>]*>/g) ?? []
        expect(inputs).to.have.length(2)
        for (const input of inputs) expect(input).not.to.include('value=')
        expect(await user.hasPassword(PASSWORD)).to.equal(true)
        expect((await agent.get(link)).mode).to.equal('form')
      })
    }

    const SHORT = words['reset-password.password_too_short.refusal']?.replace(
      /{.*}/,
      '8 characters',
    )
    const DIFFER = words['reset-password.password_mismatch.refusal']
    const tooLong = (excess: string) =>
      words['reset-password.password_too_long.refusal']
        ?.replace('{max_characters}', '64 characters')
        .replace('{excess}', excess)
    const faults: Record<string, [told: (string | undefined)[], fields: string]> = {
      'too short, and they differ': [[SHORT, DIFFER], passwords('short', 'shirt')],
      'of 73 bytes, and they differ': [[tooLong('9'), DIFFER], passwords('a'.repeat(73), NEW)],
      'that differ in a blank': [[DIFFER], passwords(NEW, ` ${NEW}`)],
      'of 40 Cyrillic letters': [[tooLong('4')], passwords('я'.repeat(40))],
    }
    for (const [what, [told, fields]] of Object.entries(faults)) {
      it(`for passwords ${what}: all that is wrong is told, each beside its field`, async () => {
        const { text } = await post(fields)
        const shown = text.match(/(?<=class="hint fault"[^>]*>)[^<]+/g) ?? []
        expect(shown.map(decodeEntities)).to.deep.equal(told)
        expect(await user.hasPassword(PASSWORD)).to.equal(true)
      })
    }

    it('and after all of that the same link still sets a good password', async () => {
      expect(user.events('password_reset_completed')).to.deep.equal([])
      expect((await post(passwords(NEW))).mode).to.equal('done')
      expect(await user.hasPassword(NEW)).to.equal(true)
      expect(user.events('password_reset_completed')).to.have.length(1)
      expect(await dump(h)).not.to.include(NEW)
    })
  })

  // Spaces, case and other spellings of a letter are in test/attacks/passwords.test.ts.
  describe('sets exactly the password that was typed', () => {
    const accepted: Record<string, [password: string, others: string[]]> = {
      'of exactly the minimum of 8 characters': ['12345678', ['1234567', '123456789']],
      'of exactly the maximum of 64 characters': ['x'.repeat(64), ['x'.repeat(63)]],
      'of 8 emoji': ['🔑'.repeat(8), ['🔑'.repeat(7)]],
      'of 72 bytes in 18 emoji': ['🔑'.repeat(18), [`${'🔑'.repeat(17)}🔒`, '🔑'.repeat(17)]],
      'with signs of forms and markup': ['a+b&c=d%20"<é', ['a b&c=d%20"<é', 'a+b&c=d "<é']],
    }
    for (const [what, [password, others]] of Object.entries(accepted)) {
      it(what, async () => {
        link = await user.forgets()
        expect((await post(passwords(password))).mode).to.equal('done')
        expect(await user.hasPassword(password)).to.equal(true)
        for (const other of others) expect(await user.hasPassword(other), other).to.equal(false)
      })
    }

    it('of letters that are not encoded', async () => {
      link = await user.forgets()
      const answer = await post('password=schön und lang&confirm_password=schön und lang')
      expect(answer.mode).to.equal('done')
      expect(await user.hasPassword('schön und lang')).to.equal(true)
    })
  })

  describe('follows validation_min_password_length and validation_max_password_length', () => {
    before(() =>
      h.put({ validation_min_password_length: '10', validation_max_password_length: '12' }),
    )

    it('on the form, in the refusal and at both ends', async () => {
      link = await user.forgets()
      expect((await agent.get(link)).text).to.include('Use 10 to 12 characters.')
      const short = await post(passwords('a'.repeat(9)))
      expect(short.mode).to.equal('password_too_short')
      expect(short.text).to.include('at least 10 characters')
      const long = await post(passwords('a'.repeat(13)))
      expect(long.mode).to.equal('password_too_long')
      expect(long.text).to.include('at most 12 characters')
      expect((await post(passwords('a'.repeat(10)))).mode).to.equal('done')
      link = await user.forgets()
      expect((await post(passwords('a'.repeat(12)))).mode).to.equal('done')
      expect(await user.hasPassword('a'.repeat(12))).to.equal(true)
    })

    it('and never takes more than 72 bytes, whatever the maximum', async () => {
      await h.put({ validation_max_password_length: '72' })
      link = await user.forgets()
      expect((await post(passwords(`${'a'.repeat(71)}é`))).mode).to.equal('password_too_long')
      expect((await post(passwords('a'.repeat(72)))).mode).to.equal('done')
      expect(await user.hasPassword('a'.repeat(72))).to.equal(true)
    })
  })
})
