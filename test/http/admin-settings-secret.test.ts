import { expect } from 'chai'
import { settingsOf } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { startLoginRecorder, type LoginRecorder } from '../support/login-recorder.ts'
import { dump, eventsOf } from '../support/observe.ts'

const CANARY = 'S3cr3t canary / of the "SMTP" password'

onBothStores('The setting smtp_password (2.5, D23, D27) is', (technology) => {
  let h: Harness
  let smtp: LoginRecorder

  const get = () => settingsOf(h).get()
  const shown = () => settingsOf(h).shown()
  const put = (body: Record<string, string>) => settingsOf(h).put({ body })

  before(async () => {
    smtp = await startLoginRecorder()
    h = await startHarness({ technology })
    await h.addUser({ username: 'ann' })
    await h.put({ smtp_port: smtp.port, smtp_username: 'mailer', smtp_password: CANARY })
  })

  after(async () => {
    await h.close()
    await smtp.close()
  })

  /** With what the next mail logs in to the SMTP server. */
  async function nextLogin() {
    const sent = eventsOf(h, 'password_reset_mail_sent').length
    smtp.logins.length = 0
    await h.forgot('ann')
    await eventually('the mail leaves', () => eventsOf(h, 'password_reset_mail_sent').length > sent)
    return smtp.logins[0]
  }

  it('shown as *** by GET and by PUT, and in no dump of the database (ADM-14)', async () => {
    for (const response of [await get(), await put({ smtp_username: 'mailer' })]) {
      const text = await response.text()
      expect(JSON.parse(text)).to.include({ smtp_password: '***' })
      expect(text).not.to.include('anary')
    }
    const stored = await dump(h)
    const bytes = Buffer.from(CANARY)
    for (const form of ['anary', bytes.toString('base64').slice(0, -4), bytes.toString('hex')]) {
      expect(stored).not.to.include(form)
    }
    expect(stored).to.include('smtp_password').and.to.include('mailer')
  })

  it('with which mails are sent, as it was given; *** sent back keeps it', async () => {
    expect(await nextLogin()).to.deep.equal(['mailer', CANARY])
    const all = await shown()
    expect((await put(all)).status).to.equal(200)
    expect(await shown()).to.deep.equal(all)
    await h.put({ smtp_password: '***', smtp_username: 'postman' })
    expect(await nextLogin()).to.deep.equal(['postman', CANARY])
  })

  for (const extra of [
    {},
    { smtp_password: '***' },
    { smtp_password: '***', smtp_username: 'm' },
  ]) {
    it(`forgotten when smtp_host changes with ${JSON.stringify(extra)}, and it says so (D23, SET-08)`, async () => {
      await h.put({ smtp_host: '127.0.0.1', smtp_username: 'mailer', smtp_password: CANARY })
      const response = await put({ smtp_host: 'localhost', ...extra })
      expect(response.status).to.equal(200)
      const answer: Record<string, unknown> = await response.json()
      expect(answer).not.to.have.property('smtp_password')
      expect(JSON.stringify(answer['warnings'])).to.include('forgotten')
      expect(await nextLogin()).to.deep.equal([undefined, undefined])
      await h.put({ smtp_host: '127.0.0.1' })
      expect(await nextLogin()).to.deep.equal([undefined, undefined])
    })
  }

  it('but kept when smtp_host changes together with a new one, or stays as it is', async () => {
    await h.put({ smtp_host: 'localhost', smtp_username: 'mailer', smtp_password: 'another' })
    expect(await nextLogin()).to.deep.equal(['mailer', 'another'])
    await h.put({ smtp_host: 'localhost', smtp_from: 'other@idp.example' })
    expect(await nextLogin()).to.deep.equal(['mailer', 'another'])
  })
})
