import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { adminOf, settingsOf } from '../support/admin.ts'
import {
  CLIENT,
  onEachStore,
  PASSWORD,
  startHarness,
  type Harness,
  suiteHarness,
} from '../support/harness.ts'
import { APP } from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import {
  expectPage,
  reasonOf,
  formsOf,
  linksOf,
  namesAround,
  press,
  createUserAgent,
  type Answer,
} from '../support/user-agent.ts'
import {
  codeOn,
  expectExpired,
  expectMode,
  personAt,
  resetForm,
  tokenOf,
  type Person,
} from '../support/person.ts'
import { moveTime } from '../support/time.ts'

const DAY_MS = 86_400_000

/** Asks for a new link with the form on the page that this person sees, and has it in the mail. */
async function asksWithForm(person: Person): Promise<string> {
  const before = person.mailCount()
  await person.sendsForm()
  return (await person.mail(before + 1)).link
}

type Change = (link: string) => string

/** What stands behind a link in a text, and is taken for a part of it. */
const ENDS = ['%3E', ')', '.', ',', '%22', "'", '%E2%80%9D', ').', ';', '!', '%20', '%0A', '%5D']

const plus =
  (text: string): Change =>
  (link) =>
    link + text

const withEnds = (ends: string[]) =>
  Object.fromEntries(ends.map((end) => [`with a trailing ${decodeURIComponent(end)}`, plus(end)]))

/** Wrapped at this column, in a way of the mail program. */
const wrapped =
  (column: number, by: string): Change =>
  (link) =>
    link.slice(0, column) + by + link.slice(column)

const quotedPrintable: Change = (link) => link.replaceAll('=', '=3D')

/** As the query may be written otherwise. */
const rewritten =
  (change: (pairs: string[][]) => string[][]): Change =>
  (link) => {
    const { origin, pathname, searchParams } = new URL(link)
    const pairs = [...searchParams].map((pair) => pair.map(encodeURIComponent))
    return `${origin}${pathname}?${change(pairs)
      .map((pair) => pair.join('='))
      .join('&')}`
  }
const inPercents = (text: string) =>
  [...Buffer.from(decodeURIComponent(text))].map((byte) => `%${byte.toString(16)}`).join('')

/** What changes no word of the link, or can be undone because token and signature say which reading was mailed. */
const MENDED: Record<string, Change> = {
  'with &amp; left in': (link) => link.replaceAll('&', '&amp;'),
  'with &amp;amp; left in': (link) => link.replaceAll('&', '&amp;amp;'),
  'wrapped in the token': wrapped(60, '%0A'),
  'wrapped in the middle': wrapped(120, '%0D%0A'),
  'wrapped and indented': wrapped(150, '%0D%0A%20%20'),
  'wrapped near the end': (link) => wrapped(link.length - 10, '%0A')(link),
  'with a space in the token': wrapped(60, '%20'),
  'with a plus in the signature': (link) => wrapped(link.length - 10, '+')(link),
  'with its plus turned into a space': (link) => link.replaceAll('+', '%20'),
  'with parameters of a campaign': plus('&utm_source=mail&utm_source=news&mc_eid=%ZZ'),
  'with a parameter of a campaign in front': (link) => link.replace('?', '?fbclid=abc&'),
  'with a fragment': plus('#:~:text=confirm'),
  'in another order': rewritten((pairs) => pairs.toReversed()),
  'percent-encoded': rewritten((pairs) => pairs.map((pair) => pair.map(inPercents))),
  ...withEnds([...ENDS, '*']),
}

const cutAfter =
  (name: string): Change =>
  (link) =>
    link.replace(new RegExp(`([?&]${name}=[^&]*).*$`), '$1')

/** What is lost is lost. */
const BROKEN: Record<string, Change> = {
  'cut in the middle of the token': (link) => link.replace(/(token=.{20}).*$/, '$1'),
  'cut after its token': cutAfter('token'),
  'cut after its client_id': cutAfter('client_id'),
  'cut after its redirect_uri': cutAfter('redirect_uri'),
  'cut after its scope': cutAfter('scope'),
  'cut after its state': cutAfter('state'),
  'cut in the middle of its signature': (link) => link.slice(0, -20),
  'without the last character': (link) => link.slice(0, -1),
  'without its query': (link) => link.split('?')[0] ?? '',
  'with an empty query': (link) => `${link.split('?')[0]}?`,
  'in lower case': (link) => link.toLowerCase(),
  'with text glued to its end': plus('Thanks'),
  'pasted twice in a row': (link) => link + link,
  'with an encoding that is none': (link) => link.replace('state=', 'state=%ZZ'),
  'in quoted-printable': quotedPrintable,
}

describe('A verification link that a mail program or a person changed', () => {
  const h = suiteHarness()

  describe('and that is mended', () => {
    let login: Person

    before(async () => {
      await h.put({ email_link_confirmation: 'other_browser' })
      login = await h.blockedLogin({ extra: { state: 'a b&c=d+é' } })
    })

    for (const [how, change] of Object.entries(MENDED)) {
      it(`is read as it was mailed ${how} (SIG-03)`, async () => {
        const page = await login.opensElsewhere(change(login.link))
        expect([page.status, page.mode, codeOn(page)]).to.deep.equal([200, 'elsewhere', login.code])
        const ahead = await createUserAgent().get(change(login.link), { purpose: 'prefetch' })
        const mailed = Object.fromEntries(new URL(login.link).searchParams)
        expect(ahead.hidden).to.deep.include(mailed)
      })
    }

    it('works with all of its words changed', async () => {
      await h.put({ email_link_confirmation: 'off' })
      const changed = wrapped(150, '%0D%0A%20%20')(login.link.replaceAll('&', '&amp;'))
      await login.comesBack(await login.opensElsewhere(changed))
    })
  })

  describe('and that is broken', () => {
    let login: Person

    before(async () => {
      login = await h.blockedLogin()
    })

    for (const [how, change] of Object.entries(BROKEN)) {
      it(`says that it is not complete ${how}, changes nothing, and leads on`, async () => {
        const elsewhere = login.in()
        const answer = await elsewhere.opensLink(change(login.link))
        expectExpired(answer)
        expect(reasonOf(answer)).to.equal('unknown')
        for (const each of [login, elsewhere]) await each.getsNothing(answer)
        const form = formsOf(answer).find(({ action }) => action.endsWith('/resend-verification'))
        expect(form?.fields).to.have.property('username', '')
      })
    }

    it('is not spent by any of that: as it was mailed it does all of its work', () =>
      login.stillGetsIn())

    it('leads to a link that verifies, starts no session, and ends the login that it was not mailed for', async () => {
      const cut = await h.blockedLogin()
      const elsewhere = cut.in()
      await elsewhere.opensLink(cut.link.split('?')[0])
      await elsewhere.isOnlyVerified(await elsewhere.opensLink(await asksWithForm(elsewhere)))
      expectMode(await cut.goesOn(), 400, 'ended')
    })
  })
})

const inToken =
  (text: string): Change =>
  (link) =>
    link.replace(/(token=.{10})/, `$1${text}`)

/** The token alone decides, and its characters are known. */
const MENDED_RESETS: Record<string, Change> = {
  'wrapped with %0A': inToken('%0A'),
  'wrapped with %0D%0A and indented': inToken('%0D%0A%20%20'),
  'with a space in it': inToken('%20'),
  'with a plus in it': inToken('+'),
  'with padding': plus('='),
  'with NUL': plus('%00'),
  'with a space in front': (link) => link.replace('token=', 'token=%20'),
  'with parameters of a campaign': plus('&utm_source=mail&utm_source=news&mc_eid=%ZZ'),
  'with &amp; before a parameter of a campaign': plus('&amp;utm_source=mail'),
  'with a parameter of a campaign and &amp; in front': (link) =>
    link.replace('?', '?utm_source=mail&amp;'),
  'with bytes that are no UTF-8 in front': (link) => link.replace('?', '?utm_source=%FF&'),
  'with a token in brackets beside it': plus('&token[]=x'),
  'with a fragment': plus('#top'),
  ...withEnds(ENDS),
}

const BROKEN_RESETS: Record<string, Change> = {
  'cut in the middle of the token': (link) => link.slice(0, -20),
  'cut before the token': (link) => link.slice(0, link.indexOf('token=')),
  'without its query': (link) => link.split('?')[0] ?? '',
  'pasted twice in a row': (link) => link + link,
  'with the token twice': (link) => `${link}&token=${tokenOf(link)}`,
  'with an encoding that is none': inToken('%ZZ'),
  'in quoted-printable': quotedPrintable,
}

describe('A reset link that a mail program or a person changed', () => {
  const h = suiteHarness()
  let user: Person

  before(async () => {
    user = await h.addVerified()
    await user.forgets()
  })

  for (const [how, change] of Object.entries(MENDED_RESETS)) {
    it(`opens the form ${how}`, async () => {
      const page = await user.opensElsewhere(change(user.link))
      expectPage(page, 200, 'reset-password', 'form')
      expect(page.hidden).to.deep.equal({ token: tokenOf(user.link), ui_locales: 'en' })
    })
  }

  for (const [how, change] of Object.entries(BROKEN_RESETS)) {
    it(`is not known ${how}, leads to the form for a new one, and is not spent`, async () => {
      const page = await user.opensElsewhere(change(user.link))
      expectPage(page, 400, 'reset-password', 'invalid')
      expect(reasonOf(page)).to.equal('unknown')
      expect(page.text).to.include('/forgot-password').and.not.include('name="password"')
      expect((await user.opensElsewhere()).mode).to.equal('form')
    })
  }

  it('does its work as it was mailed, after all of that', async () => {
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect((await user.choosesPassword('a new password')).mode).to.equal('done')
    expect(await user.hasPassword('a new password')).to.equal(true)
    await user.getsBackIn()
  })
})

const parameters = { ...APP, state: 'a b&c=d+é"<i>' }

const languageOf = ({ headers }: Answer) => headers.get('content-language')
/** Its reader's browser speaks French; the mail was German. */
const FRENCH = { 'accept-language': 'fr' }

onEachStore('A way to another link', (technology) => {
  const h = suiteHarness({ technology, flows: { brand: { name: 'Acme' } } })
  const agent = createUserAgent()
  const french = {
    ...agent,
    get: (url: string | URL) => agent.get(url, FRENCH),
    post: (url: string | URL, form: Record<string, string>) => agent.post(url, form, FRENCH),
  }

  /** In the language of the mail, and of the client, by its name. */
  function expectGerman(page: Answer, mode: string) {
    const shown = [page.mode, languageOf(page), ...namesAround(page)]
    expect(shown).to.deep.equal([mode, 'de', CLIENT.client_name, 'Acme'])
  }

  const typesPassword = (page: Answer, password: string) =>
    press(french, page, '/reset-password', { typed: { password, confirm_password: password } })

  /** A user, with the German mail that an app asked for. */
  async function hasGermanLink() {
    const user = await h.addVerified()
    await user.forgets({ ...parameters, ui_locales: 'de' })
    return user
  }

  async function nextMail(email = '', work: () => Promise<unknown>) {
    const before = h.mail.mails.filter(({ to }) => to.includes(email)).length
    await work()
    const mail = await h.mail.mailTo(email, before + 1)
    await h.isIdle()
    return mail
  }

  /** Follows the page's link to the form, which goes on with all of it in German, and asks there. */
  async function asksAgain(page: Answer, username: string, email = '') {
    expect(languageOf(page)).to.equal('de')
    const address = linksOf(page).find((each) => each.includes('/forgot-password')) ?? ''
    const form = await french.get(address)
    expectGerman(form, 'form')
    expect(form.hidden).to.deep.include({ ...parameters, ui_locales: 'de' })
    const typed = { identifier: username }
    const { link } = await nextMail(email, async () =>
      expectGerman(await press(french, form, '/forgot-password', { typed }), 'sent'),
    )
    await opensInGerman(link)
  }

  /** The link of a new mail opens a German form, and the reset goes on to the client. */
  async function opensInGerman(link: string) {
    const form = await french.get(link)
    expectGerman(form, 'form')
    const refused = await typesPassword(form, 'short')
    expectGerman(refused, 'password_too_short')
    const done = await typesPassword(refused, 'a new password')
    expectGerman(done, 'done')
    expect(linksOf(done).join()).to.include(new URL(APP.redirect_uri).host)
  }

  it('of the page that a reset link was sent keeps client, redirect URI, scope, state and language, and its pages are the client’s', async () => {
    const user = await h.addVerified()
    const query = new URLSearchParams({ ...parameters, ui_locales: 'de' })
    const start = await french.get(`${h.oauthUrl}/forgot-password?${query}`)
    for (const identifier of ['', ' \t']) {
      const nameless = await press(french, start, '/forgot-password', { typed: { identifier } })
      expectGerman(nameless, 'invalid')
    }
    for (const identifier of [user.username, 'nobody at all']) {
      const sent = await press(french, start, '/forgot-password', { typed: { identifier } })
      expectGerman(sent, 'sent')
      await h.isIdle()
      await asksAgain(sent, user.username, user.email)
    }
  })

  const ends: Record<string, (user: Person) => Promise<unknown>> = {
    expired: () => h.later(DAY_MS),
    used: (user) => h.reset(user.link, 'another password'),
    superseded: (user) => user.forgets(),
    changed: (user) => user.becomes({ email: `new-${user.email}` }),
  }
  for (const [reason, end] of Object.entries(ends)) {
    it(`of the page of a reset link that is ${reason} keeps them, opened and posted`, async () => {
      const user = await hasGermanLink()
      const { link } = user
      const email = reason === 'changed' ? `new-${user.email}` : user.email
      await end(user)
      await h.isIdle()
      const form = resetForm(link, 'a password')
      for (const page of [
        await french.get(link),
        await french.post(`${h.oauthUrl}/reset-password`, form),
      ]) {
        expect(page.status).to.equal(400)
        expectGerman(page, 'invalid')
        expect(reasonOf(page)).to.equal(reason)
        expect(page.text).to.not.include(user.username)
        if (reason !== 'expired') await asksAgain(page, user.username, email)
      }
      if (reason !== 'expired') return
      let shown = await french.get(link)
      const { link: newer } = await nextMail(email, async () => {
        shown = await press(french, shown, '/forgot-password')
        expectGerman(shown, 'sent')
      })
      expect(newer).not.to.equal(link)
      await asksAgain(shown, user.username, email)
    })
  }

  it('of a link that is not known carries nothing, in the language of the browser, whoever asks', async () => {
    const page = await french.get(`${h.oauthUrl}/reset-password?token=${'A'.repeat(43)}`)
    expect([page.mode, languageOf(page)]).to.deep.equal(['invalid', 'fr'])
    expect(linksOf(page)).to.deep.equal([`${h.oauthUrl}/forgot-password`])
  })

  it('is in the language that the address asks for, whatever the mail was in', async () => {
    const { link } = await hasGermanLink()
    const form = await french.get(`${link}&ui_locales=es`)
    expect(languageOf(form)).to.equal('es')
    expect(languageOf(await typesPassword(form, 'short'))).to.equal('es')
    await opensInGerman(link)
  })

  it('of a new reset link by its token alone is mailed in the language of the first', async () => {
    const user = await hasGermanLink()
    const { link } = user
    await h.later(DAY_MS)
    const { mail } = await nextMail(user.email, () =>
      french.post(`${h.oauthUrl}/forgot-password`, { token: tokenOf(link) }),
    )
    expect(String(mail.html)).to.include('lang="de"')
  })

  it('carries nothing that is not genuine, or too long for an address', async () => {
    const strange = [{ state: 'x'.repeat(5_000) }, { redirect_uri: 'https://evil.example/' }]
    for (const change of strange) {
      const form = { ...parameters, ...change, identifier: 'nobody at all', ui_locales: 'de' }
      const sent = await french.post(`${h.oauthUrl}/forgot-password`, form)
      expect(sent.mode).to.equal('sent')
      expect(linksOf(sent)).to.deep.equal([`${h.oauthUrl}/forgot-password?ui_locales=de`])
    }
  })

  it('of the blocked page, and of that of an expired link, keeps the login and its language', async () => {
    const extra = { ui_locales: 'de', state: 'a b&c=d+é' }
    const login = await h.blockedLogin({ extra })
    expectGerman(login.blocked, 'blocked')
    const again = await asksWithForm(login)
    expect(login.mailCount()).to.equal(2)
    await h.later(2 * DAY_MS)
    const elsewhere = login.in(french)
    expectGerman(await elsewhere.opensLink(again), 'expired')
    const fresh = await asksWithForm(elsewhere)
    const answer = await login.agent.get(fresh, FRENCH)
    expect(answer.status).to.equal(302)
    expect(new URL(answer.location ?? '').searchParams.get('state')).to.equal(extra.state)
    for (const link of [fresh, again]) expectGerman(await french.get(link), 'expired')
  })

  it('of a link that was opened elsewhere is in the language of the mail', async () => {
    await h.put({ email_link_confirmation: 'other_browser' })
    const login = await h.blockedLogin({ extra: { ui_locales: 'de' } })
    expectGerman(await french.get(login.link), 'elsewhere')
    await h.put({ email_link_confirmation: 'off' })
  })
})

const [OLD, NEW] = [randomBytes(32), randomBytes(32)]
/** The rings of all processes, one step after the other. */
const STEPS: Record<string, [before: Buffer[], after: Buffer[]]> = {
  'the new key goes to the end': [[OLD], [OLD, NEW]],
  'the new key goes to the front': [
    [OLD, NEW],
    [NEW, OLD],
  ],
  'the old key goes': [[NEW, OLD], [NEW]],
}

async function doctorSaid(h: Harness, about = 'keys') {
  const { checks } = await adminOf(h).runDoctor()
  return checks.find(({ step }) => step === about)
}

onEachStore('Keys that are rotated in steps, process by process', (technology) => {
  let running: Harness[] = []
  afterEach(async () => {
    for (const h of running.toReversed()) await h.close()
    running = []
  })

  const first = () => running[0] as Harness

  /** One more process on the store of the first. */
  async function start(secrets: readonly Buffer[], mayLogErrors = false): Promise<Harness> {
    const shared = running.length > 0 && { store: first().records, users: first().users }
    const flows = { secrets: [...secrets], ...shared }
    const h = await startHarness({ ...(shared ? {} : { technology }), flows, mayLogErrors })
    running.push(h)
    return h
  }

  const stop = (h: Harness) => h.flows.stop({ withinMs: 2_000 })

  /** Once the notes of this many processes are there. */
  const noted = (count: number) =>
    eventually(
      `${count} processes note their keys`,
      async () => (await first().store.keyRings.noted(60_000)).length === count,
    )

  async function expectLinksOpen(by: Harness, at: Harness) {
    // Whoever sends a mail signs its link.
    for (const other of running) if (other !== by) await stop(other)
    const user = await first().addUnverified()
    await by.put({ smtp_port: String(by.mail.port) })
    const link = await personAt(by, user).asksAgain()
    for (const other of running) if (other !== by) await other.flows.start()
    expectMode(await user.opensElsewhere(link.replace(by.oauthUrl, at.oauthUrl)), 200, 'verified')
    expect(await user.isVerified()).to.equal(true)
  }

  async function expectSecretsOpen(by: Harness, at: Harness) {
    await by.put({ smtp_username: 'mailer', smtp_password: `of ${running.indexOf(by)}` })
    expect(await settingsOf(at).shown()).to.include({ smtp_password: '***' })
    expect((await doctorSaid(at, 'settings'))?.status).to.equal('ok')
    await by.put({ smtp_username: '', smtp_password: '' })
  }

  for (const [step, [before, after]] of Object.entries(STEPS)) {
    it(`while ${step}: what either process signs and seals, the other takes (SIG-17)`, async () => {
      const [former, next] = [await start(before), await start(after)]
      for (const by of [former, next]) {
        const at = by === former ? next : former
        await expectLinksOpen(by, at)
        await expectSecretsOpen(by, at)
      }
    })
  }

  it('are told apart by doctor, which says when the next step may be taken (SIG-17)', async () => {
    const rings = [[OLD], ...Object.values(STEPS).map(([, after]) => after)]
    let processes = [await start([OLD]), await start([OLD])]
    await noted(2)
    const alone = await doctorSaid(processes[0] as Harness)
    const [, oldId = ''] =
      /^All 2 processes sign with the key ([\w-]{11})\.$/.exec(alone?.message ?? '') ?? []
    expect(alone?.status).to.equal('ok')

    const said: string[] = []
    for (const ring of rings.slice(1)) {
      const [one, two] = processes as [Harness, Harness]
      await stop(one)
      const other = await start(ring)
      await noted(2)
      const between = await doctorSaid(other)
      expect(between?.status).to.equal('warning')
      expect(await doctorSaid(two)).to.deep.equal(between)
      await stop(two)
      processes = [other, await start(ring)]
      await noted(2)
      const done = await doctorSaid(other)
      expect(done?.status).to.equal('ok')
      said.push(between?.message ?? '', done?.message ?? '')
    }
    const newId = /the key ([\w-]{11})\.$/.exec(said.at(-1) ?? '')?.[1] ?? ''
    expect(newId).not.to.be.oneOf(['', oldId])
    const half = [newId, oldId].toSorted().map((id) => `${id} in 1 of 2 processes`)
    expect(said).to.deep.equal([
      `Every process knows the keys that sign. Of the other keys: ${newId} in 1 of 2 processes.`,
      `All 2 processes sign with the key ${oldId}, and also verify with ${newId}.`,
      `Every process knows all keys, but the first keys differ: ${half.join(', ')}.`,
      `All 2 processes sign with the key ${newId}, and also verify with ${oldId}.`,
      `Every process knows the keys that sign. Of the other keys: ${oldId} in 1 of 2 processes.`,
      `All 2 processes sign with the key ${newId}.`,
    ])
    const stored = JSON.stringify([said, await first().store.keyRings.noted(60_000)])
    for (const key of [OLD, NEW]) {
      for (const form of ['hex', 'base64', 'base64url'] as const)
        expect(stored).not.to.include(key.toString(form).slice(0, 16))
    }
  })

  it('fail at doctor where the first step was left out, and in no process that takes it back; a link is expired where its key is none (SIG-13, SIG-17)', async () => {
    const [one, two] = [await start([OLD], true), await start([NEW, OLD], true)]
    await noted(2)
    for (const h of [one, two]) {
      const said = await doctorSaid(h)
      expect(said?.status).to.equal('failed')
      expect(said?.message).to.match(/^A process lacks a key .*: [\w-]{11} in 1 of 2 processes\.$/)
      expect(said?.advice).to.include('at the end of the ring')
    }
    const user = await one.addUnverified()
    await stop(one)
    await two.put({ smtp_port: String(two.mail.port) })
    const link = await personAt(two, user).asksAgain()
    await one.flows.start()
    const refused = await user.opensElsewhere(link.replace(two.oauthUrl, one.oauthUrl))
    expectExpired(refused)
    await user.getsNothing(refused)
    await stop(two)
    await noted(1)
    expect((await doctorSaid(one))?.status).to.equal('ok')
    await expectLinksOpen(one, one)
  })
})

describe('The keys of a process', () => {
  const h = suiteHarness()

  const noted = () => h.store.keyRings.noted(60_000)
  const messageOf = async () => (await doctorSaid(h))?.message

  it("are noted as long as it runs, and those of one that was killed for a few minutes; are nobody's once it has stopped, and those of whoever starts again (SIG-17)", async () => {
    await h.store.keyRings.note('killed', ['another-key'])
    expect(await messageOf()).to.include('in 1 of 2 processes')
    await moveTime(300_000)
    expect(await messageOf()).to.match(/^The one process signs with the key [\w-]{11}\.$/)
    await eventually('it has noted them again', async () => (await noted()).length === 1)
    await h.flows.stop({ withinMs: 2_000 })
    expect(await noted()).to.deep.equal([])
    await h.flows.start()
    await eventually('it notes them', async () => (await noted()).length === 1)
  })
})
