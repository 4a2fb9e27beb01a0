import type { Person } from '../support/person.ts'
import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT } from '../support/harness.ts'
import { usableRecord } from '../support/observe.ts'
import { OTHER_HASH } from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode, windowOf } from '../support/waiting-window.ts'
import { expectTitle } from '../support/words.ts'
import { addUnverified, addVerified, blockedLogin } from '../support/person.ts'

const NEW = 'a new password'

onBothStores('The setting reset_verifies_email (3.3)', (technology) => {
  const h = suiteHarness({
    technology,
    settings: { reset_verifies_email: 'true' },
    mayLogErrors: true,
  })

  const verified = (user: Person) => user.events('email_verification_completed')
  const completed = (user: Person) => user.events('password_reset_completed')

  it('verifies the address that the link went to, after the effects of the reset, and says who did it', async () => {
    const user = await addUnverified(h)
    const neighbour = await addUnverified(h, { email: user.email })
    await h.forgot(user.username, {
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
    })
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect((await createUserAgent().get(link)).mode).to.equal('form')
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
    const signedIn = await h.signIn(createUserAgent(), user.username, NEW)
    expect(signedIn.location).to.include('code=')
  })

  it('says nothing of an address that was verified before, and does nothing while it is off', async () => {
    const before = await addVerified(h)
    expect((await h.reset(await before.forgets(), NEW)).mode).to.equal('done')
    expect(completed(before)).to.have.length(1)
    expect(verified(before)).to.deep.equal([])
    await h.put({ reset_verifies_email: 'false' })
    try {
      const user = await addUnverified(h)
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
      const user = await addUnverified(h, { email })
      const link = await user.forgets()
      const { replacePasswordHash } = h.users
      h.users.replacePasswordHash = async (id, expected, next) => {
        const isReplaced = await replacePasswordHash(id, expected, next)
        await user.becomes({ ...change, passwordHash: next })
        return isReplaced
      }
      try {
        expect((await h.reset(link, NEW)).mode).to.equal('done')
      } finally {
        h.users.replacePasswordHash = replacePasswordHash
      }
      expect(await user.hasPassword(NEW)).to.equal(true)
      expect(await user.isVerified()).to.equal(false)
      expect(verified(user)).to.deep.equal([])
    })
  }

  it('verifies nothing by a reset that is refused in the end, or by a link that is over', async () => {
    const user = await addUnverified(h)
    const link = await user.forgets()
    await user.becomes({ passwordHash: OTHER_HASH })
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    expect(await user.isVerified()).to.equal(false)
    expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')
    expect(await user.isVerified()).to.equal(true)
  })

  it('lets no login go on that waited: the reset has ended it, and its link has nothing left to do', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    expect((await h.reset(await login.forgets(), NEW)).mode).to.equal('done')
    expectMode(await window.goOn(), 400, 'ended')
    const page = await login.opensElsewhere()
    expectMode(page, 400, 'expired')
    expectTitle(page, 'verify-email.expired.used.title')
    expect((await h.signIn(createUserAgent(), login.username, NEW)).location).to.include('code=')
  })

  describe('is done by whoever finishes the reset', () => {
    const failures: Record<string, (fail: () => void) => () => void> = {
      'where the address cannot be marked'(fail) {
        const { markEmailVerified } = h.users
        h.users.markEmailVerified = async (...of) => {
          fail()
          return markEmailVerified(...of)
        }
        return () => (h.users.markEmailVerified = markEmailVerified)
      },
      'where it was marked, and the event cannot be recorded'(fail) {
        const { record } = h.store.audit
        h.store.audit.record = async (event, keepMs) => {
          if (event.type === 'email_verification_completed') fail()
          return record(event, keepMs)
        }
        return () => (h.store.audit.record = record)
      },
    }
    for (const [what, failing] of Object.entries(failures)) {
      it(what, async () => {
        const user = await addUnverified(h)
        const link = await user.forgets()
        const { takeUnfinished } = h.store.resetTokens
        // Its lease has run out already.
        h.store.resetTokens.takeUnfinished = (at, until) =>
          takeUnfinished(new Date(at.getTime() + 60_000), until)
        let failed = 0
        const restore = failing(() => {
          failed += 1
          if (failed === 1) throw new Error('the database hiccups')
        })
        try {
          const answer = await h.reset(link, NEW)
          expect([answer.status, answer.mode]).to.deep.equal([500, 'error'])
          await eventually('the reset is finished', async () => {
            await moveTime(1_000)
            return verified(user).at(0)
          })
        } finally {
          restore()
          h.store.resetTokens.takeUnfinished = takeUnfinished
        }
        expect(await user.isVerified()).to.equal(true)
        expect(verified(user)).to.have.length(1)
        expect(completed(user)).to.have.length(1)
        expect(await usableRecord(h, link)).to.equal(undefined)
        expect(failed).to.equal(2)
      })
    }
  })
})
