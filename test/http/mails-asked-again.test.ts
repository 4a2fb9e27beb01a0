import { expect } from 'chai'
import { onEachStore, suiteHarness } from '../support/harness.ts'
import { shapeOf } from '../support/observe.ts'
import { type Person } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import { type Answer, createUserAgent, formsOf, type PageForm } from '../support/user-agent.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const HOUR_S = 3_600

/** What the page counts down. `undefined`: nothing. */
function secondsIn({ text }: Answer): number | undefined {
  const seconds = /data-seconds="(\d+)"/.exec(text)?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}

describe('The countdown to the next mail (resend_cooldown)', () => {
  const h = suiteHarness({ settings: { resend_cooldown: '1h' }, flows: { trustedProxies: 1 } })
  const FIELDS = { 'forgot-password': 'identifier', 'resend-verification': 'username' } as const
  const PATHS = ['forgot-password', 'resend-verification'] as const

  before(() => h.addUser({ username: 'known' }))

  const ask = (path: keyof typeof FIELDS, name: string, from = '192.0.2.1') => {
    const headers = { 'x-forwarded-for': from }
    return createUserAgent().post(`${h.oauthUrl}/${path}`, { [FIELDS[path]]: name }, headers)
  }

  /** The page after a repeated request: what is left of the hour, and no more. */
  function expectRest(answer: Answer, mode = 'sent') {
    expect(answer.mode).to.equal(mode)
    expect(secondsIn(answer)).to.be.within(1, HOUR_S)
  }

  for (const path of PATHS) {
    it(`${path}: the whole of it after the first request, the same for known and unknown names`, async () => {
      const pages = [await ask(path, 'known'), await ask(path, 'nobody at all')]
      for (const page of pages) expect(secondsIn(page)).to.equal(HOUR_S)
      const [known, unknown] = pages.map(shapeOf)
      expect(known).to.deep.equal(unknown)
      for (const name of ['known', 'nobody at all']) expectRest(await ask(path, name))
      const asked = h.events.filter(({ reason }) => reason === 'unknown')
      expect(JSON.stringify(asked)).not.to.include('nobody')
    })

    it(`${path}: it tells nobody in another network that somebody asked`, async () => {
      const secondsAt = async (from: string) => secondsIn(await ask(path, `private ${path}`, from))
      expect(await secondsAt('192.0.2.7')).to.equal(HOUR_S)
      await moveTime(1_100)
      expect(await secondsAt('192.0.2.7')).to.be.within(1, HOUR_S - 1)
      for (const from of ['192.0.2.8', '2001:db8::1'])
        expect(await secondsAt(from)).to.equal(HOUR_S)
    })
  }

  it('counts each kind of mail by itself, and a name in any spelling as one', async () => {
    for (const path of PATHS) {
      expect(secondsIn(await ask(path, 'one and the same')), path).to.equal(HOUR_S)
      await moveTime(600_000)
      for (const name of ['One and the SAME', ' one and the same '])
        expect(secondsIn(await ask(path, name)), `${path} ${name}`).to.be.within(1, HOUR_S - 600)
    }
  })

  it('goes on where the blocked login began it', async () => {
    const login = await h.blockedLogin()
    expect(secondsIn(login.blocked)).to.equal(HOUR_S)
    expectRest(await ask('resend-verification', login.username))
    for (const answer of [await login.reloads(), await login.goesOn(), await login.in().signsIn()])
      expectRest(answer, 'blocked')
  })

  it('shows nothing and counts nothing where it is 0s, as is the default', async () => {
    await h.put({ resend_cooldown: '0s' })
    const login = await h.blockedLogin()
    const pages = [
      login.blocked,
      await ask('resend-verification', login.username),
      await ask('forgot-password', 'free'),
      await ask('forgot-password', 'free'),
    ]
    for (const page of pages) expect(secondsIn(page)).to.equal(undefined)
    await login.mail(2)
    expect(login.mailCount()).to.equal(2)
    await h.put({ resend_cooldown: '1h' })
    expect(secondsIn(await ask('forgot-password', 'free'))).to.equal(HOUR_S)
  })
})

/** A form as it was sent, so that it can be sent again. */
type Sent = Pick<PageForm, 'action' | 'fields'>

onEachStore('A form that asks for a mail, sent again', (technology) => {
  const h = suiteHarness({ technology })
  const agent = createUserAgent()
  const post = ({ action, fields }: Sent) => agent.post(action, fields)

  function formOf(page: Answer, path: string, typed: Record<string, string> = {}): Sent {
    const form = formsOf(page).find(({ action }) => action.endsWith(path))
    expect(form?.fields['form_id']).to.match(/^[\w-]{22}$/)
    return { action: form?.action ?? '', fields: { ...form?.fields, ...typed } }
  }

  const forgotForm = async (identifier: string) =>
    formOf(await agent.get(`${h.oauthUrl}/forgot-password`), '/forgot-password', { identifier })

  /** Each page that has such a form, by whom its mail goes to. */
  const forms: Record<string, (user: Person) => Promise<Sent>> = {
    'the forgot-password form': ({ username }) => forgotForm(username),
    'the forgot-password form that came back': async ({ username: identifier }) =>
      formOf(await post(await forgotForm('')), '/forgot-password', { identifier }),
    'the page of an expired reset link': async (user) => {
      await user.forgets()
      await h.later(DAY_MS)
      return formOf(await user.opensLink(), '/forgot-password')
    },
    'the blocked page': async (user) =>
      formOf((await h.blockedLogin({ user })).blocked, '/resend-verification'),
    'the page of an expired verification link': async (user) => {
      const login = await h.blockedLogin({ user })
      await h.later(2 * DAY_MS)
      return formOf(await login.opensLink(), '/resend-verification')
    },
  }
  /** An id is that of its form for a week of the calendar. */
  const atNextWeek = () => h.later(7 * DAY_MS - (Date.now() % (7 * DAY_MS)))

  for (const [page, open] of Object.entries(forms)) {
    it(`from ${page} is the same request: the same answer, and no second mail, at once and days later`, async () => {
      await atNextWeek()
      const user = await h.addUnverified()
      const sent = await open(user)
      const before = user.mailCount()
      const [first, atOnce] = await Promise.all([post(sent), post(sent)])
      expect([first.status, first.mode]).to.deep.equal([200, 'sent'])
      await user.mail(before + 1)
      await h.isIdle()
      const answers = [atOnce]
      for (const ms of [0, HOUR_MS / 2, DAY_MS]) {
        await h.later(ms)
        await h.withoutJobs(async () => answers.push(await post(sent)))
      }
      for (const answer of answers) {
        // The token that it is asked by may be spent or replaced by then.
        if (answer.mode === 'sent') expect(shapeOf(answer)).to.deep.equal(shapeOf(first))
        else expect(sent.fields).to.have.property('token')
      }
      expect(user.mailCount()).to.equal(before + 1)
    })
  }

  it('leaves the link of its mail alive, and is another request a week later; the log has events of each', async () => {
    const user = await h.addVerified()
    const sent = await forgotForm(user.username)
    for (const count of [1, 2]) {
      await post(sent)
      const { link } = await user.mail(count)
      await h.withoutJobs(() => post(sent))
      for (const type of ['password_reset_requested', 'password_reset_mail_sent'] as const) {
        expect(user.events(type)).to.have.length(count)
      }
      expect((await h.reset(link, `new password ${count}`)).mode).to.equal('done')
      await atNextWeek()
    }
  })

  it('is another request by another name, of another kind, or with another form: nobody keeps the mail of somebody else back', async () => {
    const [ann, ben] = [await h.addVerified(), await h.addVerified()]
    const sent = await forgotForm(ann.username)
    const { form_id = '' } = sent.fields
    await post(sent)
    await ann.mail(1)
    await post({ ...sent, fields: { ...sent.fields, identifier: ben.username } })
    await ben.mail(1)
    await post(await forgotForm(ann.username))
    await ann.mail(2)
    const eve = await h.addUnverified()
    await post({ ...sent, fields: { identifier: eve.username, form_id } })
    const action = `${h.oauthUrl}/resend-verification`
    await post({ action, fields: { username: eve.username, form_id } })
    await eve.mail(1)
    await h.isIdle()
    expect([ann, ben, eve].map((user) => user.mailCount())).to.deep.equal([2, 1, 2])
  })

  it('is no longer the same once its id is what no form of ours has, or there is none; no address gives it one, and it is another one each time', async () => {
    const user = await h.addVerified()
    const { action } = await forgotForm(user.username)
    let mails = 0
    for (const form_id of [undefined, undefined, '', 'x', 'x'.repeat(23)]) {
      const fields = { identifier: user.username, ...(form_id !== undefined && { form_id }) }
      expect((await post({ action, fields })).mode).to.equal('sent')
      await user.mail((mails += 1))
      await h.isIdle()
    }
    const id = 'A'.repeat(22)
    const page = await agent.get(`${h.oauthUrl}/forgot-password?form_id=${id}`)
    const ids = [page.hidden['form_id'], (await forgotForm('x')).fields['form_id']]
    expect(new Set([id, ...ids]).size).to.equal(3)
  })
})
