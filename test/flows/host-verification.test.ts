import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { adminOf } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, type Harness, onEachStore, suiteHarness } from '../support/harness.ts'
import { jobs } from '../support/jobs.ts'
import { withoutMail } from '../support/observe.ts'
import { expectExpired, PASSWORD, type Person } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import { expectPage } from '../support/user-agent.ts'
import { words } from '../support/words.ts'

const HOUR_MS = 3_600_000
const NEW = 'a brand new password'

let named = 0

function newAddress(): string {
  named += 1
  return `moved-${named}@users.example`
}

const mailsTo = (h: Harness, address: string) => h.mail.mails.filter(({ to }) => to[0] === address)

/** What became of a mail, once that is decided. */
const outcome = (h: Harness, mailId: string | undefined) =>
  eventually('the outcome of the mail', async () => {
    const { state, reason } = await adminOf(h).mailOutcome({ mail_id: mailId ?? '' })
    return state !== 'waiting' && (reason ?? state)
  })

/** It verifies, and leads to no session. */
async function verifies(person: Person, link: string) {
  await person.isOnlyVerified(await person.in().opensLink(link))
}

async function expectTypeError(call: () => Promise<unknown>, words: RegExp) {
  const error: unknown = await call().catch((error: unknown) => error)
  expect(error).to.be.instanceOf(TypeError)
  expect(String(error)).to.match(words)
}

onEachStore('flows.sendVerification(user, parameters) (3.8)', (technology) => {
  const h = suiteHarness({ technology })

  it('mails a link that verifies, and does not say that somebody signs in', async () => {
    const ann = await h.addUnverified()
    const { mailId } = await h.flows.sendVerification(ann)
    const { link, kind, mail } = await ann.mail(1)
    expect(kind).to.equal('email_verification')
    const text = mail.text?.replaceAll('\n', ' ')
    expect(text).to.include(words['mail.email-verification.lead_entered'])
    expect(await outcome(h, mailId)).to.equal('sent')
    expect(ann.events('email_verification_requested')).to.have.length(1)
    expect(ann.events('email_login_blocked')).to.deep.equal([])
    await verifies(ann, link)
  })

  it('answers the same for every account and for none, and the admin API says what became of each', async () => {
    const accounts: [expected: string, user: Person | string][] = [
      ['sent', await h.addUnverified()],
      ['already_verified', await h.addVerified()],
      ['disabled', await h.addUnverified({ disabled: true })],
      ['no_address', await h.addUnverified({ email: undefined })],
      ['bad_address', await h.addUnverified({ email: 'a@users.example, b@users.example' })],
      ['account_gone', 'nobody'],
      ['account_gone', ''],
    ]
    const mails = h.mail.mails.length
    for (const [expected, user] of accounts) {
      const asked = await h.flows.sendVerification(user)
      expect(Object.keys(asked)).to.deep.equal(['mailId'])
      expect(await outcome(h, asked.mailId), expected).to.equal(expected)
      const id = typeof user === 'string' ? user : user.id
      const requests = h.eventsOf('email_verification_requested')
      const { reason = 'sent' } = requests.findLast(({ accountId }) => accountId === id) ?? {}
      expect(reason).to.equal(expected)
    }
    expect(h.mail.mails).to.have.length(mails + 1)
  })
})

describe('flows.sendVerification(user, parameters)', () => {
  const h = suiteHarness()

  it('asks the same of the store for every account and for none, and looks nobody up (ENU-14)', async () => {
    const ann = await h.addUnverified()
    const accounts = [
      ann,
      await h.addVerified(),
      await h.addUnverified({ disabled: true }),
      await h.addUnverified({ email: undefined }),
      'nobody',
    ]
    // Otherwise the commands of the workers would be seen.
    await h.flows.stop()
    const { get, find, swap } = h.records
    let commands: string[] = []
    const told = (command: string, name: string) => void commands.push(`${command} ${name}`)
    h.records.get = (kind, ids) => (told('get', kind.name), get(kind, ids))
    h.records.find = (kind, query) => (told('find', kind.name), find(kind, query))
    h.records.swap = (kind, all) => (told('swap', kind.name), swap(kind, all))
    for (const [name, method] of Object.entries<(...of: never[]) => unknown>({ ...h.users }))
      Object.assign(h.users, {
        [name]: (...of: never[]) => (told(name, 'users'), method(...of)),
      })
    const seen: string[][] = []
    for (const user of accounts) {
      await h.flows.sendVerification(user)
      seen.push(commands)
      commands = []
    }
    expect(seen[0]).to.include('swap mail_outbox')
    expect(seen[0]?.join()).not.to.include('users')
    for (const others of seen) expect(others).to.deep.equal(seen[0])
    await h.flows.start()
    await verifies(ann, (await ann.mail(1)).link)
  })

  it('carries a client to its registered address alone', async () => {
    const [redirectUri] = CLIENT.redirect_uris
    const carried = { clientId: CLIENT.client_id, redirectUri, state: 'a state' }
    const [ann, bob] = [await h.addUnverified(), await h.addUnverified()]
    await h.flows.sendVerification(ann.id, carried)
    await h.flows.sendVerification(bob.id, { ...carried, redirectUri: 'https://evil.example/cb' })
    const [genuine, forged] = [await ann.mail(1), await bob.mail(1)]
    const { searchParams } = new URL(genuine.link)
    expect(searchParams.get('client_id')).to.equal(CLIENT.client_id)
    expect(searchParams.get('state')).to.equal('a state')
    expect(genuine.mail.text).to.include(CLIENT.client_name)
    expect(forged.link).not.to.match(/client_id|evil/)
    expect(forged.mail.text).not.to.include(CLIENT.client_name)
    await verifies(bob, forged.link)
  })

  it('says that somebody signs in only while the login of that client waits', async () => {
    const login = await h.blockedLogin()
    const { redirectUri, state } = login.request
    const ask = () =>
      h.flows.sendVerification(login, { clientId: CLIENT.client_id, redirectUri, state })
    const said = async (count: number) =>
      (await login.mail(count)).mail.text?.replaceAll('\n', ' ').match(/is signing in|entered/)?.[0]
    await ask()
    expect(await said(2)).to.equal('is signing in')
    await login.goesOn({ action: 'cancel' })
    await ask()
    expect(await said(3)).to.equal('entered')
    await verifies(login, (await login.mail(3)).link)
  })

  it('writes in the language of the account', async () => {
    const ann = await h.addUnverified({ locale: 'de' })
    await h.flows.sendVerification(ann)
    expect((await ann.mail(1)).mail.subject).to.equal('E-Mail-Adresse bestätigen')
  })

  it('throws a TypeError for what is no id and no text, and asks for nothing', async () => {
    const ann = await h.addUnverified()
    await withoutMail(h, async () => {
      for (const user of [undefined, null, 42, {}, { id: 42 }, ['nobody']])
        await expectTypeError(() => h.flows.sendVerification(user as never), /a user, or its id/)
      for (const call of ['sendVerification', 'invite'] as const) {
        for (const parameters of ['client', ['a'], null, 42])
          await expectTypeError(() => h.flows[call](ann, parameters as never), /must be an object/)
        const parameters = { clientId: 42 } as never
        const told = new RegExp(`^TypeError: ${call}: clientId must be a text$`)
        await expectTypeError(() => h.flows[call](ann, parameters), told)
      }
    })
    await h.flows.sendVerification(ann)
    await verifies(ann, (await ann.mail(1)).link)
  })
})

describe('The link of flows.sendVerification, with email_link_confirmation at other_browser', () => {
  const h = suiteHarness({ settings: { email_link_confirmation: 'other_browser' } })

  it('verifies nothing by itself, says to sign in, and works where the password was typed', async () => {
    const ann = await h.addUnverified()
    await h.flows.sendVerification(ann)
    const { link } = await ann.mail(1)
    const page = await ann.opensLink(link)
    expectPage(page, 200, 'verify-email', 'elsewhere')
    expect(page.text)
      .to.include(words['verify-email.elsewhere.sign_in.lead'])
      .and.not.include(words['verify-email.elsewhere.over.title'])
    expect(await ann.isVerified()).to.equal(false)
    await ann.isBlocked()
    await ann.comesBack(await ann.opensLink(link))
  })
})

onEachStore('flows.emailChanged(accountId, before) (3.8)', (technology) => {
  const h = suiteHarness({ technology })

  it('mails a link to the new address and a notice to the verified one before, whose links are dead', async () => {
    const ann = await h.addVerified()
    const [old, address] = [await ann.forgets(), newAddress()]
    const { mailId, noticeId } = await ann.movesTo(address)
    const notice = await ann.mail(2)
    const { link, kind } = await h.mail.mailTo(address)
    expect([kind, notice.kind]).to.deep.equal(['email_verification', 'email_changed'])
    expect(notice.mail.subject).to.equal(words['mail.email-changed.subject'])
    for (const part of [notice.mail.text, String(notice.mail.html)])
      expect(part)
        .not.to.match(/https?:|href|not-me/)
        .and.not.include(address)
    expect([await outcome(h, mailId), await outcome(h, noticeId)]).to.deep.equal(['sent', 'sent'])
    expect(ann.events('email_changed')).to.have.length(1)
    expect(JSON.stringify(h.events)).not.to.match(/@users\.example/)
    const sent = ann.events('email_verification_mail_sent').map(({ details }) => details?.mail)
    expect(sent).to.have.members(['email_changed', undefined])

    expect((await ann.in().opensLink(old)).mode).to.equal('invalid')
    await verifies(ann, link)
    expect(await h.users.findById(ann.id)).to.include({ email: address, emailVerified: true })
  })

  it('leaves links and logins of an address dead, also once the account has it back (TOK-26)', async () => {
    const login = await h.blockedLogin()
    const { link, email = '' } = login
    const reset = await login.forgets()
    await login.movesTo(newAddress())
    await login.movesTo(email)
    expectPage(await login.types(), 400, 'verify-email', 'ended')
    expectExpired(await login.in().opensLink(link))
    expect((await login.in().choosesPassword(NEW, reset)).mode).to.equal('invalid')
    expect(await login.hasPassword(PASSWORD)).to.equal(true)
    expect(await login.isVerified()).to.equal(false)
    await verifies(login, (await login.mail(3)).link)
  })

  it('leaves a login dead that waited for the old address; an unverified one gets no notice', async () => {
    const [login, address] = [await h.blockedLogin(), newAddress()]
    const asked = await login.movesTo(address)
    expect(asked).to.have.all.keys('mailId')
    expectPage(await login.types(), 400, 'verify-email', 'ended')
    expectExpired(await login.in().opensLink())
    expect(await login.isVerified()).to.equal(false)
    await verifies(login, (await h.mail.mailTo(address)).link)
    expect(login.mailCount()).to.equal(1)
  })
})

describe('flows.emailChanged(accountId, before)', () => {
  const h = suiteHarness()

  it('may be called by two at once, and again: links to the new address stay good', async () => {
    const [ann, address] = [await h.addVerified(), newAddress()]
    await ann.becomes({ email: address, emailVerified: false })
    const call = () => h.flows.emailChanged(ann.id, ann)
    await Promise.all([call(), call()])
    await call()
    await h.isIdle()
    const [first] = mailsTo(h, address)
    expect(ann.mailCount()).to.equal(3)
    await verifies(ann, first?.link ?? '')
    expect(await call()).to.have.all.keys('noticeId')
  })

  it('of two changes at once: mails each notice to the address before, and leaves one live address', async () => {
    const [ann, ...addresses] = [await h.addVerified(), newAddress(), newAddress()]
    await Promise.all(addresses.map((address) => ann.movesTo(address)))
    await h.isIdle()
    const { email = '' } = (await h.users.findById(ann.id)) ?? {}
    expect(mailsTo(h, ann.email ?? '').map(({ kind }) => kind)).to.deep.equal([
      'email_changed',
      'email_changed',
    ])
    for (const address of addresses.filter((address) => address !== email))
      for (const { link } of mailsTo(h, address)) expectExpired(await ann.in().opensLink(link))
    await verifies(ann, mailsTo(h, email).at(-1)?.link ?? '')
  })

  it('leaves a login that waits for the present address', async () => {
    const login = await h.blockedLogin()
    await h.flows.emailChanged(login.id, { email: newAddress(), emailVerified: true })
    await h.isIdle()
    expect((await login.types()).status).to.equal(302)
    expect(await login.isVerified()).to.equal(true)
  })

  it('tells the owner of the first of two changes, however small it was (RATE-30)', async () => {
    const ann = await h.addVerified()
    const before = { email: (ann.email ?? '').toUpperCase(), emailVerified: false }
    expect(await ann.movesTo(before.email)).to.have.all.keys('mailId', 'noticeId')
    await ann.becomes({ email: newAddress() })
    expect(await h.flows.emailChanged(ann.id, before)).to.have.all.keys('mailId')
    await h.isIdle()
    expect(mailsTo(h, ann.email ?? '').map(({ kind }) => kind)).to.deep.equal(['email_changed'])
  })

  it('tells the owner, also if another change at once has brought the address back (RATE-30)', async () => {
    const [ann, email] = [await h.addVerified(), newAddress()]
    await ann.becomes({ email, emailVerified: false })
    await ann.becomes({ email: ann.email, emailVerified: false })
    expect(await h.flows.emailChanged(ann.id, ann)).to.have.all.keys('mailId', 'noticeId')
    const other = { email, emailVerified: false }
    expect(await h.flows.emailChanged(ann.id, other)).to.have.all.keys('mailId')
    await h.isIdle()
    const mails = mailsTo(h, ann.email ?? '')
    expect(mails.filter(({ kind }) => kind === 'email_changed')).to.have.length(1)
    await verifies(ann, mails.findLast(({ kind }) => kind !== 'email_changed')?.link ?? '')
  })

  it('names nobody in the notice: a username can be the new address', async () => {
    const [username, email] = [newAddress(), newAddress()]
    const ann = await h.addVerified({ username, email })
    await ann.movesTo(username)
    const { kind, mail } = await ann.mail(1)
    expect(kind).to.equal('email_changed')
    for (const part of [mail.text ?? '', String(mail.html)]) {
      expect(part).to.include(words['mail.greeting_nameless'])
      expect(part.replaceAll('\u2060', '')).not.to.include(username)
    }
  })

  it('refuses the form of an old link that was open when the address changed', async () => {
    const [ann, address] = [await h.addVerified(), newAddress()]
    const link = await ann.forgets()
    expect((await ann.opensLink(link)).mode).to.equal('form')
    await ann.movesTo(address)
    await h.isIdle()
    expect((await ann.choosesPassword(NEW, link)).mode).to.equal('invalid')
    expect(await ann.hasPassword(PASSWORD)).to.equal(true)
    await h.forgot(ann.username)
    const next = await h.mail.mailTo(address, 2)
    expect((await ann.choosesPassword(NEW, next.link)).mode).to.equal('done')
  })

  it('leaves sessions as they are', async () => {
    const ann = await h.addSignedIn()
    await ann.becomes({ email: newAddress() })
    await h.flows.emailChanged(ann.id, ann)
    expect(await ann.account()).to.equal(ann.id)
  })

  const changes: Record<string, [after: Partial<User>, before: Partial<User>, mails: string[]]> = {
    'the new address is verified': [{}, {}, ['noticeId']],
    'the old address was not verified': [
      { emailVerified: false },
      { emailVerified: false },
      ['mailId'],
    ],
    'there was no address': [{ emailVerified: false }, { email: undefined }, ['mailId']],
    'there is no address any more': [{ email: undefined }, {}, ['noticeId']],
    'no mail can go to the new address': [
      { email: 'a@b.example, c@d.example', emailVerified: false },
      {},
      ['noticeId'],
    ],
    'no mail can go to the old address': [{}, { email: 'a@b.example\r\nBcc: c@d.example' }, []],
    'the account is disabled': [{ disabled: true, emailVerified: false }, {}, ['noticeId']],
    'only the case of letters changed': [
      { email: 'case@users.example', emailVerified: false },
      { email: 'Case@users.example' },
      ['noticeId', 'mailId'],
    ],
  }
  for (const [what, [after, before, mails]] of Object.entries(changes)) {
    it(`asks for ${mails.join() || 'no mail'} where ${what}`, async () => {
      const ann = await h.addVerified()
      await ann.becomes({ email: newAddress(), ...after })
      const { email, emailVerified } = { ...ann, ...before }
      const asked = await h.flows.emailChanged(ann.id, { email, emailVerified })
      expect(Object.keys(asked)).to.deep.equal(mails)
      for (const id of Object.values(asked)) expect(await outcome(h, id)).to.equal('sent')
      expect(ann.events('email_changed')).to.have.length(1)
      expect((await adminOf(h).listOutbox({ account_id: ann.id })).mails).to.deep.equal([])
    })
  }

  it('asks for no notice where the address is the same, nor without the user as it was', async () => {
    const ann = await h.addVerified()
    await h.withoutJobs(async () => {
      expect(await h.flows.emailChanged(ann.id, ann)).to.deep.equal({})
      expect(await h.flows.emailChanged(ann.id)).to.deep.equal({})
    })
    expect(await ann.movesTo(newAddress())).to.have.all.keys('mailId', 'noticeId')
  })

  it('does nothing for an unknown id, and throws a TypeError for what is no id and no user', async () => {
    const ann = await h.addVerified()
    await withoutMail(h, async () => {
      expect(await h.flows.emailChanged('nobody', ann)).to.deep.equal({})
      for (const id of [undefined, 42, ann])
        await expectTypeError(() => h.flows.emailChanged(id as never, ann), /by its id/)
      for (const before of [null, 'old@users.example', {}, { email: 'old@users.example' }])
        await expectTypeError(() => h.flows.emailChanged(ann.id, before as never), /as it was/)
    })
    expect(await ann.movesTo(newAddress())).to.have.all.keys('mailId', 'noticeId')
  })
})

describe('Many calls of a host at once (8) [full]', () => {
  const h = suiteHarness({ settings: { mails_per_account_per_hour: '3' } })
  const times = <T>(length: number, call: () => Promise<T>) =>
    Promise.all(Array.from({ length }, call))

  it('of sendVerification, a hundred, send no more mails than forms may; the first link works', async () => {
    const ann = await h.addUnverified()
    await times(100, () => h.flows.sendVerification(ann))
    const asked = () => ann.events('email_verification_requested')
    await eventually('all are decided', () => asked().length === 100, 120_000)
    await h.isIdle()
    // Three, and a spare. Of requests that wait long, only the newest gets its mail.
    expect(ann.mailCount()).to.be.within(1, 4)
    expect(asked().filter(({ reason }) => reason === undefined)).to.have.length.within(1, 4)
    await verifies(ann, (await ann.mail(1)).link)
  })

  it('of emailChanged, thirty, send no more, and at most 5 notices in an hour; the last one leaves after that', async () => {
    const [ann, address] = [await h.addVerified(), newAddress()]
    await ann.becomes({ email: address, emailVerified: false })
    await times(30, () => h.flows.emailChanged(ann.id, ann))
    await eventually('one notice waits', async () => (await jobs(h)).length === 1, 120_000)
    // Of those that come at once, one that waits can replace one that would have left.
    const notices = ann.mailCount()
    expect(notices).to.be.at.most(5)
    expect(mailsTo(h, address)).to.have.length.within(1, 4)
    await moveTime(HOUR_MS)
    await h.isIdle()
    expect(ann.mailCount()).to.equal(notices + 1)
    await verifies(ann, mailsTo(h, address)[0]?.link ?? '')
  })
})
