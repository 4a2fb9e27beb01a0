import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import {
  databaseOf,
  eventsOf,
  hasPassword,
  sha256,
  tokenOf,
  usableRecord,
} from '../support/observe.ts'
import { userWithLink } from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

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
      expect(page.hidden).to.deep.equal({ token: tokenOf(link) })
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
    it('and shows a success message, without a cookie and without signing in (D7, SES-06)', async () => {
      const { user, link } = await userWithLink(h, { emailVerified: false })
      const own = createUserAgent()
      const form = { token: tokenOf(link), password: 'a new password' }
      const answer = await own.post(`${h.oauthUrl}/reset-password`, {
        ...form,
        confirm_password: form.password,
      })
      expect(answer.status).to.equal(200)
      expect([answer.page, answer.mode]).to.deep.equal(['reset-password', 'done'])
      expect(answer.text).to.include('Your password was changed')
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
        const seen = [hasPassword(h, user, 'a new password'), h.store.cutoffs.read(user.id)]
        Promise.all(seen).then(([is, ends]) => resolve([is === true, ends]), reject)
      })
    })
    await h.reset(link, 'a new password')
    // Repeated, it changes nothing and tells what is in force.
    const usedAt = await h.store.resetTokens.markUsed(record?.id ?? '', new Date())
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

  it('exactly once when one link is posted 20 times at once (RACE-01)', async () => {
    const { user, link } = await userWithLink(h)
    const passwords = Array.from({ length: 20 }, (_, i) => `new password ${i}`)
    const answers = await Promise.all(passwords.map((password) => h.reset(link, password)))
    const modes = answers.map(({ status, mode }) => `${status} ${mode}`)
    const winner = modes.indexOf('200 done')
    expect(modes.toSorted()).to.deep.equal(['200 done', ...Array(19).fill('400 invalid')])
    for (const [i, password] of passwords.entries()) {
      expect(await hasPassword(h, user, password), password).to.equal(i === winner)
    }
    expect(eventsOf(h, 'password_reset_completed', user)).to.have.length(1)
  })
})
