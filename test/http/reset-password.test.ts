import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { expect } from 'chai'
import { hashQueueLimits } from '../../src/crypto/hash-queue.ts'
import type { Hashing, User } from '../../src/index.ts'
import { bcryptWork, turns } from '../support/bcrypt-work.ts'
import { eventually } from '../support/eventually.ts'
import {
  expectPage,
  linksOf,
  press,
  withoutId,
  createUserAgent,
  decodeEntities,
} from '../support/user-agent.ts'
import { CLIENT, type Harness, onEachStore, PASSWORD, suiteHarness } from '../support/harness.ts'
import { sha256, shapeOf, usableRecord } from '../support/observe.ts'
import { beforeFirst, instead } from '../support/records.ts'
import { OTHER_HASH, type Person, personAt, tokenOf } from '../support/person.ts'
import { byAnotherClock, moveTime } from '../support/time.ts'
import { expectTitle, words } from '../support/words.ts'

const NEW = 'a new password'
const agent = createUserAgent()

const completed = (user: Person) => user.events('password_reset_completed')

/** A user with a link, an hour later. */
async function userWithExpiredLink(h: Harness, parameters: Record<string, string> = {}) {
  const both = await h.userWithLink({}, parameters)
  await h.later(3_600_000)
  return both
}

/** Both methods refuse it, with no form on the page. */
async function expectRefused(h: Harness, link: string) {
  const answers = [await agent.get(link), await h.reset(link, NEW)]
  for (const answer of answers) {
    expectPage(answer, 400, 'reset-password', 'invalid')
    expect(answer.text).not.to.include('name="password"')
    expect(answer.headers.getSetCookie()).to.deep.equal([])
  }
  return answers
}

// Forms and tokens that are none are in test/http/refusals.test.ts.
describe('{oauth_path}/reset-password', () => {
  const h = suiteHarness()

  it('renders the form for a new password to whoever has a link, and does not say whose it is (4.3, ENU-08, PWD-16)', async () => {
    const { user, link } = await h.userWithLink()
    const page = await agent.get(link)
    expectPage(page, 200, 'reset-password', 'form')
    expect(page.hidden).to.deep.equal({ token: tokenOf(link), ui_locales: 'en' })
    expect(page.text).to.include('Use 8 to 64 characters.')
    for (const name of ['password', 'confirm_password']) {
      const [field = ''] = new RegExp(`<input[^>]* name="${name}"[^>]*>`).exec(page.text) ?? []
      expect(field).to.include('type="password"').and.include('autocomplete="new-password"')
      // A maxlength would cut silently what is pasted.
      expect(field).not.to.match(/value=|onpaste|maxlength=|pattern=|readonly/)
    }
    const refused = await h.reset(link, NEW, 'another one')
    expect(refused.mode).to.equal('password_mismatch')
    for (const { text } of [page, refused]) {
      for (const secret of [user.username, user.email ?? '', user.id, 'users.example'])
        expect(text.replaceAll(tokenOf(link), '')).not.to.include(secret)
    }
  })

  it('sets the password, and shows a success without a cookie and without signing in; only the new one signs in then (4.4, SES-06)', async () => {
    const { user, link } = await h.userWithLink({ emailVerified: false })
    const answer = await user.choosesPassword(NEW)
    expectPage(answer, 200, 'reset-password', 'done')
    expectTitle(answer, 'reset-password.done.title')
    expect(answer.text).not.to.include(NEW).and.not.to.include(tokenOf(link))
    expect(answer.headers.getSetCookie()).to.deep.equal([])
    expect((await user.starts()).page).to.equal('login')
    expect(await user.isVerified()).to.equal(false)
    expect((await h.users.findById(user.id))?.passwordHash).to.match(/^\$2b\$04\$/)

    await user.becomes({ emailVerified: true })
    expect((await user.signsIn(PASSWORD)).mode).to.equal('wrong')
    const { location = '' } = await user.signsIn(NEW)
    expect((await user.party.exchange(user.request, location)).claims()?.sub).to.equal(user.id)
  })
})

/** Which of these methods are called from now on, and how far a token is said to be. */
function callsOf(methods: [part: object, name: string][]): string[] {
  const calls: string[] = []
  for (const [part, name] of methods) {
    const real = Reflect.get(part, name) as (...of: unknown[]) => unknown
    Reflect.set(part, name, (...of: unknown[]) => {
      calls.push(name === 'advance' ? `advance ${String(of[1])}` : name)
      return real(...of)
    })
  }
  return calls
}

onEachStore('A reset', (technology) => {
  const h = suiteHarness({ technology, mayLogErrors: true })

  it('1 password, 2 used_at, 3 and 4 sessions, before 5 password_reset_completed', async () => {
    const { user, link } = await h.userWithLink()
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
    const times = { idpAt: usedAt, oauthAt: usedAt, exactAt: undefined }
    expect(await atEvent).to.deep.equal([true, { id: user.id, ...times, ends: [record?.id] }])

    const events = h.events.filter(({ accountId }) => accountId === user.id)
    expect(events.map(({ type }) => type)).to.deep.equal([
      'password_reset_requested',
      'password_reset_mail_sent',
      'password_reset_completed',
    ])
    expect(Number(events[2]?.at)).to.be.at.least(usedAt.getTime())
    expect(events[2]?.id).to.equal(`completed:${record?.id}`)
  })

  it('has its effects in the order of section 3.3, after the claim', async () => {
    const { link } = await h.userWithLink()
    const { store } = h
    const isCompleted = async () =>
      (await store.resetTokens.find(sha256(tokenOf(link))))?.completedAt !== undefined
    const calls = callsOf([
      [store.resetTokens, 'claim'],
      [h.users, 'replacePasswordHash'],
      [store.resetTokens, 'advance'],
      [store.cutoffs, 'end'],
      [store.outbox, 'add'],
      [store.audit, 'record'],
    ])
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    await eventually('it is completed, once its answer was sent', isCompleted)
    const effects = ['replacePasswordHash', 'advance used', 'end', 'record']
    expect(calls).to.deep.equal(['claim', ...effects, 'advance completed'])
  })

  it('is not complete before the owner is sure to be told, and is recorded once', async () => {
    await h.put({ password_changed_email: 'true' })
    const { user, link } = await h.userWithLink()
    const mails = user.mailCount()
    const gone = () => () => Promise.reject(new Error('the outbox is gone'))
    const answer = await instead(h.store.outbox, 'add', gone, async () => {
      const refused = await h.reset(link, NEW)
      expect((await h.store.resetTokens.find(sha256(tokenOf(link))))?.completedAt).to.equal(
        undefined,
      )
      return refused
    })
    expect([answer.status, answer.mode]).to.deep.equal([500, 'error'])
    expectTitle(await agent.get(link), 'reset-password.invalid.used.title')
    await eventually('the owner is told', async () => {
      await moveTime(1_000)
      return user.mailCount() > mails
    })
    expect(completed(user)).to.have.length(1)
    await h.put({ password_changed_email: 'false' })
  })

  it('is not done where the address changes once the link was looked up', async () => {
    const { user, link } = await h.userWithLink()
    const answer = await instead(
      h.store.resetTokens,
      'find',
      (find) => async (hash) => {
        const found = await find(hash)
        await user.becomes({ email: `new-${user.email}` })
        return found
      },
      () => h.reset(link, NEW),
    )
    expect([answer.status, answer.mode]).to.deep.equal([400, 'invalid'])
    expect(user.events('password_reset_rejected', 'account_changed')).to.have.length(1)
    expectTitle(await agent.get(link), 'reset-password.invalid.changed.title')
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    await user.becomes({ email: user.email })
    await user.getsBackIn()
  })
})

describe('The form for a new password (4.4, 8)', () => {
  const h = suiteHarness()
  let user: Person
  let link: string

  before(async () => {
    ;({ user, link } = await h.userWithLink())
  })

  const SHORT = words['reset-password.password_too_short.refusal']?.replace(/{.*}/, '8 characters')
  const DIFFER = words['reset-password.password_mismatch.refusal']
  const INVALID = words['reset-password.password_invalid.refusal']
  const tooLong = (excess: string) =>
    words['reset-password.password_too_long.refusal']
      ?.replace('{max_characters}', '64 characters')
      .replace('{excess}', excess)

  for (const [what, told, password, confirm] of [
    ['too short, and they differ', [SHORT, DIFFER], 'short', 'shirt'],
    ['of 73 bytes, and they differ', [tooLong('9'), DIFFER], 'a'.repeat(73), NEW],
    ['with NUL, and they differ', [INVALID, DIFFER], 'long enough\0', NEW],
    ['of 40 Cyrillic letters', [tooLong('4')], 'я'.repeat(40), 'я'.repeat(40)],
  ] as const) {
    it(`tells all that is wrong with passwords ${what}, each beside its field`, async () => {
      const { text } = await h.reset(link, password, confirm)
      const shown = text.match(/(?<=class="hint fault"[^>]*>)[^<]+/g) ?? []
      expect(shown.map(decodeEntities)).to.deep.equal(told)
      expect(await user.hasPassword(PASSWORD)).to.equal(true)
    })
  }

  it('sets a good one by the same link after that', async () => {
    expect(completed(user)).to.deep.equal([])
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(completed(user)).to.have.length(1)
  })

  // Others are in test/attacks/passwords.test.ts.
  it('sets exactly the password that was typed: of letters that are not encoded', async () => {
    const form = `token=${tokenOf(await user.forgets())}&password=schön und lang&confirm_password=schön und lang`
    expect((await agent.post(`${h.oauthUrl}/reset-password`, form)).mode).to.equal('done')
    expect(await user.hasPassword('schön und lang')).to.equal(true)
  })

  it('follows validation_min_password_length and validation_max_password_length, at both ends', async () => {
    await h.put({ validation_min_password_length: '10', validation_max_password_length: '12' })
    expect((await user.opensLink(await user.forgets())).text).to.include('Use 10 to 12 characters.')
    const short = await user.choosesPassword('a'.repeat(9))
    expect(short.mode).to.equal('password_too_short')
    expect(short.text).to.include('at least 10 characters')
    const long = await user.choosesPassword('a'.repeat(13))
    expect(long.mode).to.equal('password_too_long')
    expect(long.text).to.include('at most 12 characters')
    for (const length of [10, 12]) await user.getsBackIn('a'.repeat(length))
  })

  it('never takes more than 72 bytes, whatever the maximum', async () => {
    await h.put({ validation_max_password_length: '72' })
    const tooLarge = await h.reset(await user.forgets(), `${'a'.repeat(71)}é`)
    expect(tooLarge.mode).to.equal('password_too_long')
    await user.getsBackIn('a'.repeat(72))
  })
})

onEachStore('{oauth_path}/reset-password refuses a token that is', (technology) => {
  const h = suiteHarness({ technology })

  it('expired, though its record is still there (TOK-06)', async () => {
    const { user, link } = await h.userWithLink()
    await h.later(3_000_000)
    const { link: newer } = await h.userWithLink()
    await h.later(600_000)
    await expectRefused(h, link)
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(completed(user)).to.deep.equal([])
    const record = await h.store.resetTokens.find(sha256(tokenOf(link)))
    expect(record).to.include({ userId: user.id, usedAt: undefined })
    expect((await agent.get(newer)).status).to.equal(200)
    await user.getsBackIn()
  })

  it('of an account whose password changes while the reset runs: the newer one wins (TOK-18)', async () => {
    const runs = Array.from({ length: 6 }, async (_, run) => {
      const { user, link } = await h.userWithLink()
      const change = async () => {
        await turns(run * 20)
        await user.becomes({ passwordHash: OTHER_HASH })
      }
      const [answer] = await Promise.all([h.reset(link, NEW), change()])
      expect((await h.users.findById(user.id))?.passwordHash).to.equal(OTHER_HASH)
      expect((await h.reset(link, NEW)).status).to.equal(400)
      expect(completed(user)).to.have.length(answer.status === 200 ? 1 : 0)
    })
    await Promise.all(runs)
  })

  for (const minutes of [3, -3]) {
    it(`none of that, by a clock that was ${minutes} minutes from ours: it works`, async () => {
      const { user, link } = await h.userWithLink()
      const { mode } = await byAnotherClock(minutes * 60_000, () => h.reset(link, NEW))
      expect(mode).to.equal('done')
      expect(await user.hasPassword(NEW)).to.equal(true)
    })
  }

  it('of a deleted user: it changes nothing, and is no 5xx (TOK-17)', async () => {
    const { user, link } = await h.userWithLink()
    expect((await agent.get(link)).mode).to.equal('form')
    await user.isDeleted()
    const replaced = beforeFirst(h.users, 'replacePasswordHash', () => {})
    await expectRefused(h, link)
    expect(replaced()).to.equal(0)
    expect(completed(user)).to.deep.equal([])
  })
})

describe('A reset link that does nothing says why, to whoever holds it', () => {
  const h = suiteHarness()
  const asksWith = (form: Record<string, string>) =>
    agent.post(`${h.oauthUrl}/forgot-password`, form)

  /** Opened or posted, it is refused for this reason, by which name it is recorded, or by another one. */
  async function isRefusedAs(reason: string, link: string, recorded = reason) {
    for (const answer of await expectRefused(h, link)) {
      expectTitle(answer, `reset-password.invalid.${reason}.title`)
      expect('token' in answer.hidden).to.equal(reason === 'expired')
    }
    const event = h.eventsOf('password_reset_rejected').at(-1)
    expect(event).to.include({ reason: recorded, address: '127.0.0.1', userAgent: 'node' })
  }

  /** Asked for a new link in its place, it is refused for this reason, and no mail is asked for. */
  const isNotRenewedAs = (reason: string, link: string) =>
    h.withoutJobs(async () => {
      const answer = await asksWith({ token: tokenOf(link) })
      expectPage(answer, 400, 'reset-password', 'invalid')
      expectTitle(answer, `reset-password.invalid.${reason}.title`)
    })

  it('expired: and a new mail is one click away, without typing a name, to the address of the account', async () => {
    const parameters = { client_id: CLIENT.client_id, redirect_uri: CLIENT.redirect_uris[0] }
    const { user, link } = await userWithExpiredLink(h, parameters)
    await isRefusedAs('expired', link)
    const page = await user.opensLink()
    expect(withoutId(page.hidden)).to.deep.equal({ token: tokenOf(link), ui_locales: 'en' })
    expect(page.text).not.to.include(user.username)

    const mails = h.mail.mails.length
    const sent = await user.presses('/forgot-password')
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    expect(sent.text).to.include('to the same email address').and.not.include(user.username)
    const { link: newer } = await user.mail(2)
    expect((await usableRecord(h, newer))?.parameters).to.deep.equal({
      clientId: parameters.client_id,
      redirectUri: parameters.redirect_uri,
    })
    await isRefusedAs('superseded', link, 'invalidated')
    expect((await h.reset(newer, NEW)).mode).to.equal('done')

    const { user: other, link: expired } = await userWithExpiredLink(h)
    const form = { token: tokenOf(expired), email: 'eve@evil.example', username: 'eve' }
    expect((await asksWith(form)).mode).to.equal('sent')
    await other.mail(2)
    const recipients = new Set(h.mail.mails.slice(mails).flatMap(({ to }) => to))
    expect([...recipients]).to.deep.equal([user.email, other.email])

    const { user: third } = await userWithExpiredLink(h, parameters)
    await third.opensLink()
    expect(shapeOf(await third.presses('/forgot-password'))).to.deep.equal(shapeOf(sent))
    await third.mail(2)
  })

  it('used: and it asks for nothing, and changes nothing, in another browser neither (TOK-11)', async () => {
    const { user, link } = await h.userWithLink()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    await isRefusedAs('used', link)
    await isNotRenewedAs('used', link)
    await h.later(3_600_000)
    await user.becomes({ disabled: true })
    await isRefusedAs('used', link)
    await user.becomes({ disabled: false })
    expect((await h.reset(link, 'another one')).status).to.equal(400)
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(completed(user)).to.have.length(1)
    await user.getsBackIn()
  })

  it('superseded by a newer link, also once that was used: and it asks for nothing (TOK-13)', async () => {
    const { user, link } = await h.userWithLink()
    const newer = await user.forgets()
    await isRefusedAs('superseded', link, 'invalidated')
    await isNotRenewedAs('superseded', link)
    expect(user.mailCount()).to.equal(2)
    expect((await h.reset(newer, NEW)).mode).to.equal('done')
    await isRefusedAs('superseded', link, 'invalidated')
    expect(await user.hasPassword(NEW)).to.equal(true)
  })

  it('changed: the page leads to a new link', async () => {
    const { user, link } = await h.userWithLink()
    await user.becomes({ disabled: true })
    expectTitle(await agent.get(link), 'reset-password.invalid.changed.title')
    await user.becomes({ disabled: false })
    expectTitle(await agent.get(link), 'reset-password.invalid.expired.title')
    const email = 'elsewhere@users.example'
    await user.becomes({ email })

    const address = linksOf(await agent.get(link)).find((each) => each.includes('/forgot-password'))
    const form = await agent.get(address ?? '')
    await press(agent, form, '/forgot-password', { typed: { identifier: user.username } })
    expect((await h.reset((await h.mail.mailTo(email)).link, NEW)).mode).to.equal('done')
  })

  const changes: [what: string, recorded: string, change: Partial<User>, back?: Partial<User>][] = [
    ['its address', 'account_changed', { email: 'new@users.example' }],
    ['the case of its address', 'account_changed', { email: 'NEW@users.example' }],
    ['its password', 'newer_password', { passwordHash: OTHER_HASH }],
    // Whatever met it while it was disabled has ended it.
    ['its enabled state', 'expired', { disabled: true }, { disabled: false }],
    ['having a password', 'newer_password', { passwordHash: undefined }, { passwordHash: 'again' }],
    ['having an address', 'account_changed', { email: undefined }, { email: 'back@users.example' }],
  ]
  for (const isExpired of [false, true]) {
    const state = isExpired ? 'that expired' : 'that was never posted'
    for (const [what, recorded, change, back = {}] of changes) {
      it(`changed, ${what}: a link ${state} asks for no new one either, changes nothing, and a new one works (TOK-16)`, async () => {
        const { user, link } = await (isExpired ? userWithExpiredLink(h) : h.userWithLink())
        await user.becomes(change)
        const before = await h.users.findById(user.id)
        await isNotRenewedAs('changed', link)
        await isRefusedAs('changed', link, isExpired ? 'expired' : recorded)
        expect(await h.users.findById(user.id)).to.deep.equal(before)
        expect(completed(user)).to.deep.equal([])
        await user.becomes(back)
        await personAt(h, { ...user, ...change, ...back }).getsBackIn()
      })
    }
  }

  it('changed, its password: POST ends no session of the account (3.3)', async () => {
    const { user, link } = await h.userWithLink()
    await user.signsIn()
    await user.becomes({ passwordHash: OTHER_HASH })
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    expect(await user.account()).to.equal(user.id)
  })

  it('to open one is no event; to post one is, and to ask for a new link with one that is no good', async () => {
    const { user, link } = await h.userWithLink()
    await user.forgets()
    await agent.get(link)
    expect(user.events('password_reset_rejected')).to.deep.equal([])
    await h.reset(link, NEW)
    await asksWith({ token: tokenOf(link) })
    const reasons = user.events('password_reset_rejected').map(({ reason }) => reason)
    expect(reasons).to.deep.equal(['invalidated', 'invalidated'])
    await user.getsBackIn()
  })
})

onEachStore('The setting reset_verifies_email (3.3)', (technology) => {
  const h = suiteHarness({
    technology,
    settings: { reset_verifies_email: 'true' },
    mayLogErrors: true,
  })

  const verified = (user: Person) => user.events('email_verification_completed')
  it('verifies the address that the link went to, after the effects of the reset, and says who did it', async () => {
    const user = await h.addUnverified()
    const neighbour = await h.addUnverified({ email: user.email })
    const { client_id, redirect_uris } = CLIENT
    const link = await user.forgets({ client_id, redirect_uri: redirect_uris[0] })
    expect((await user.opensLink()).mode).to.equal('form')
    expect(await user.isVerified()).to.equal(false)
    expect((await h.reset(link, NEW, 'another one')).mode).to.equal('password_mismatch')
    expect(await user.isVerified()).to.equal(false)
    const done = await h.reset(link, NEW)
    expect([done.status, done.mode]).to.deep.equal([200, 'done'])
    expect(done.headers.getSetCookie()).to.deep.equal([])
    expect(await user.isVerified()).to.equal(true)
    expect(await neighbour.isVerified()).to.equal(false)
    const [event, another] = verified(user)
    const [reset] = completed(user)
    expect(event).to.include({ clientId: CLIENT.client_id, address: reset?.address })
    expect(another).to.equal(undefined)
    expect(h.events.findIndex(({ id }) => id === reset?.id)).to.be.below(
      h.events.findIndex(({ id }) => id === event?.id),
    )
    expect((await user.signsIn(NEW)).location).to.include('code=')
  })

  it('says nothing of an address that was verified before, and does nothing while it is off', async () => {
    const before = await h.addVerified()
    expect((await h.reset(await before.forgets(), NEW)).mode).to.equal('done')
    expect(completed(before)).to.have.length(1)
    expect(verified(before)).to.deep.equal([])
    await h.put({ reset_verifies_email: 'false' })
    try {
      const user = await h.addUnverified()
      expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')
      expect(await user.isVerified()).to.equal(false)
      expect(verified(user)).to.deep.equal([])
    } finally {
      await h.put({ reset_verifies_email: 'true' })
    }
  })

  for (const [what, change] of Object.entries({
    'has another address': { email: 'elsewhere@users.example' },
    'has the address in other letters': { email: 'OTHER-LETTERS@users.example' },
    'is disabled': { disabled: true },
  })) {
    it(`verifies nothing where the account ${what} by then`, async () => {
      const email = 'other-letters@users.example'
      const user = await h.addUnverified({ email })
      const link = await user.forgets()
      const changing = (replace: typeof h.users.replacePasswordHash): typeof replace => {
        return async (id, expected, next) => {
          const isReplaced = await replace(id, expected, next)
          await user.becomes({ ...change, passwordHash: next })
          return isReplaced
        }
      }
      const reset = () => h.reset(link, NEW)
      expect((await instead(h.users, 'replacePasswordHash', changing, reset)).mode).to.equal('done')
      expect(await user.hasPassword(NEW)).to.equal(true)
      expect(await user.isVerified()).to.equal(false)
      expect(verified(user)).to.deep.equal([])
    })
  }

  it('verifies nothing by a reset that is refused in the end, or by a link that is over', async () => {
    const user = await h.addUnverified()
    const link = await user.forgets()
    await user.becomes({ passwordHash: OTHER_HASH })
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    expect(await user.isVerified()).to.equal(false)
    expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')
    expect(await user.isVerified()).to.equal(true)
  })

  describe('is done by whoever finishes the reset', () => {
    const hiccups = () => Promise.reject(new Error('the database hiccups'))
    const failures: Record<string, () => () => number> = {
      'where the address cannot be marked': () =>
        beforeFirst(h.users, 'markEmailVerified', hiccups),
      'where it was marked, and the event cannot be recorded': () =>
        beforeFirst(h.store.audit, 'record', hiccups, (event) =>
          JSON.stringify(event).includes('email_verification_completed'),
        ),
    }
    for (const [what, failing] of Object.entries(failures)) {
      it(what, async () => {
        const user = await h.addUnverified()
        const link = await user.forgets()
        const tries = failing()
        const answer = await h.reset(link, NEW)
        expect([answer.status, answer.mode]).to.deep.equal([500, 'error'])
        await eventually('the reset is finished', async () => {
          await moveTime(1_000)
          return verified(user).at(0)
        })
        expect(await user.isVerified()).to.equal(true)
        expect(verified(user)).to.have.length(1)
        expect(completed(user)).to.have.length(1)
        expect(await usableRecord(h, link)).to.equal(undefined)
        expect(tries()).to.equal(2)
      })
    }
  })
})

const LONG = 'more than bcrypt reads, '.repeat(10)

const derived = (password: string, salt: string) => scryptSync(password, salt, 32, { N: 16 })

/** What a host does that has scrypt, and what of it is under way. */
const work = { calls: [] as string[], running: 0, most: 0, fails: 0 }
const scrypt: Hashing = {
  async hash(password) {
    work.calls.push('hash')
    work.fails -= 1
    if (work.fails >= 0) throw new Error('no thread is left')
    const salt = randomBytes(16).toString('hex')
    return `scrypt:${salt}:${derived(password, salt).toString('hex')}`
  },

  async verify(password, hash) {
    work.calls.push('verify')
    work.running += 1
    work.most = Math.max(work.most, work.running)
    await turns(1)
    work.running -= 1
    const [, salt = '', stored = ''] = /^scrypt:(\w+):(\w+)$/.exec(hash) ?? []
    const isReadable = stored.length === 64
    return isReadable && timingSafeEqual(derived(password, salt), Buffer.from(stored, 'hex'))
  },
}

describe('A host that hashes with something else than bcrypt', () => {
  const h = suiteHarness({ flows: { hashing: scrypt }, mayLogErrors: true })
  const stored = async ({ id }: User) => h.users.findById(id)

  it('has its own hash stored by a reset, and signs in with the new password alone (3.3, TIM-06)', async () => {
    const { user, link } = await h.userWithLink({
      passwordHash: await scrypt.hash('the old password'),
    })
    expect(await h.flows.verifyPassword(await stored(user), 'the old password')).to.equal(true)
    const jobs = await bcryptWork(async () => {
      expect((await h.reset(link, NEW, 'another one')).mode).to.equal('password_mismatch')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      expect((await stored(user))?.passwordHash).to.match(/^scrypt:/)
      expect(await h.flows.verifyPassword(await stored(user), NEW)).to.equal(true)
      expect(await h.flows.verifyPassword(await stored(user), 'the old password')).to.equal(false)
    })
    expect(jobs).to.deep.equal([])
    expect((await h.reset(link, 'a later password')).mode).to.equal('invalid')
  })

  it('goes on with the next form of a link where the one before was refused, or its hashing failed (RATE-15)', async () => {
    const { user, link } = await h.userWithLink()
    work.fails = 1
    work.calls.splice(0)
    const passwords = ['the first password', 'the second password', 'the third password']
    const [refused, ...answers] = await Promise.all([
      h.reset(link, NEW, 'another password'),
      ...passwords.map((password) => h.reset(link, password)),
    ])
    expect(refused?.mode).to.be.oneOf(['password_mismatch', 'invalid'])
    const modes = answers.map(({ mode }) => mode)
    expect(modes).to.have.members(['error', 'done', 'invalid'])
    expect(work.calls).to.deep.equal(['hash', 'hash'])
    const password = passwords[modes.indexOf('done')] ?? ''
    expect(await h.flows.verifyPassword(await stored(user), password)).to.equal(true)
  })

  it('pays one comparison for everybody, known or not (TIM-06)', async () => {
    const user = await h.addUser({ username: 'ann', passwordHash: await scrypt.hash(LONG) })
    await h.flows.verifyPassword(undefined, NEW)
    const cases: [boolean, Parameters<typeof h.flows.verifyPassword>[0], string][] = [
      [true, user, LONG],
      [false, user, LONG.slice(0, 72)],
      [false, user, ''],
      [false, { ...user, disabled: true }, LONG],
      [false, { ...user, passwordHash: undefined }, LONG],
      [false, { ...user, passwordHash: 'no hash' }, LONG],
      [false, undefined, LONG],
      [false, undefined, 'x\uD800'],
    ]
    for (const [isRight, account, password] of cases) {
      work.calls.splice(0)
      expect(await h.flows.verifyPassword(account, password)).to.equal(isRight)
      expect(work.calls).to.deep.equal(['verify'])
    }
  })

  it('hashes in the same queue as with bcrypt (RATE-15)', async () => {
    const { atOnce, waiting } = hashQueueLimits(
      availableParallelism(),
      process.env['UV_THREADPOOL_SIZE'],
    )
    work.most = 0
    const posts = Array.from({ length: atOnce + waiting + 1 }, () =>
      h.flows.verifyPassword(undefined, NEW),
    )
    const outcomes = await Promise.allSettled(posts)
    expect(work.most).to.equal(atOnce)
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    expect(refused.at(-1)).to.have.nested.property('reason.code', 'ERR_OVERLOADED')
  })
})
