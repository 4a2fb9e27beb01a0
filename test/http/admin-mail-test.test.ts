import { expect } from 'chai'
import type { AdminApi, AdminClient } from '../../src/index.ts'
import { actionsOf, suiteAdmin, codeOf, expectAudited, refusalOf } from '../support/admin-calls.ts'
import { startFaultySmtp, type FaultySmtp, type Step } from '../support/faulty-smtp.ts'
import { startHarness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { freePort } from '../support/free-port.ts'
import { dump } from '../support/observe.ts'

const STEPS = ['configuration', 'dns', 'connect', 'tls', 'auth', 'from', 'rcpt', 'data']
const TO = 'ann@users.example'
const CANARY = 'canary-of-the-secret'

type Template = Parameters<AdminClient['previewMail']>[0]['template']

describe('A test mail (5, D29)', () => {
  const secrets = ['d'.repeat(43)]
  const h = suiteHarness({ flows: { secrets } })
  const admin = suiteAdmin(h)

  async function settled(smtp: FaultySmtp): Promise<void> {
    await h.put({ smtp_port: String(h.mail.port), smtp_from: 'accounts@idp.example' })
    await admin.unsetSettings(['smtp_username', 'smtp_password'])
    await smtp.close()
  }

  /** The report, once every step is there in its order. */
  async function tested(): Promise<Record<string, AdminApi.Check>> {
    const { ok, checks } = await admin.testMail({ to: TO })
    expect(checks.map(({ step }) => step)).to.deep.equal(STEPS)
    expect(ok).to.equal(checks.every(({ status }) => status !== 'failed'))
    return Object.fromEntries(checks.map((check) => [check.step, check]))
  }

  it('arrives with the settings in force, and tells each step', async () => {
    const smtp = await startFaultySmtp({ offersAuth: true })
    await h.put({
      smtp_port: String(smtp.port),
      smtp_username: 'mailer',
      smtp_password: CANARY,
      smtp_from: 'service@idp.example',
    })
    const steps = await tested()
    expect(Object.values(steps).map(({ status }) => status)).to.deep.equal(STEPS.map(() => 'ok'))
    const [mail] = smtp.mails
    expect(mail).to.include({ from: 'service@idp.example', user: 'mailer' })
    expect(mail?.to).to.deep.equal([TO])
    expect(mail?.raw).to.match(/^From: service@idp\.example\r?$/m)
    expect(mail?.raw).to.match(/^Subject: Test mail\r?$/m)
    expect(smtp.logins).to.deep.equal([{ user: 'mailer', password: CANARY, isSecure: false }])
    expect(smtp.mails).to.have.length(1)
    await settled(smtp)
  })

  it('is audited with who sent it, and not with the address', async () => {
    await tested()
    const event = actionsOf(h, 'mail_test').at(-1)
    expectAudited(event, 'mail_test')
    expect(JSON.stringify(event)).to.not.include(TO)
  })

  it('leaves no record in the outbox, and has no link', async () => {
    const count = h.mail.mails.length
    await tested()
    const { mail, link } = await h.mail.mailTo(TO, count + 1)
    expect(link).to.equal('')
    expect(mail.text).to.not.include('token')
    expect((await admin.listOutbox()).mails).to.deep.equal([])
  })

  it('uses settings that another process changed just now', async () => {
    const { store, users } = h
    const other = await startHarness({ flows: { store, users, secrets, initialSettings: {} } })
    const smtp = await startFaultySmtp()
    for (const from of ['one@idp.example', 'two@idp.example', 'three@idp.example']) {
      await other.put({ smtp_port: String(smtp.port), smtp_from: from })
      await tested()
      expect(smtp.mails.at(-1)?.from).to.equal(from)
    }
    await other.put({ smtp_port: String(h.mail.port), smtp_from: 'four@idp.example' })
    expect(JSON.stringify(await admin.runDoctor())).to.include('mail from four@idp.example')
    await other.close()
    await settled(smtp)
  })

  const faults: [step: string, at: Step, reply: string][] = [
    ['auth', 'AUTH', '535 5.7.8 Nobody may log in'],
    ['data', 'dot', '554 5.6.0 We do not like the words'],
  ]
  for (const [step, at, reply] of faults) {
    it(`that fails at ${step} (${at}) says so, with the reply of the server`, async () => {
      const fault = (here: Step) => (here === at ? reply : undefined)
      const smtp = await startFaultySmtp({ offersAuth: true, fault })
      const login = { smtp_username: 'mailer', smtp_password: CANARY }
      await h.put({ smtp_port: String(smtp.port), ...login })
      const steps = await tested()
      expect(steps[step]).to.include({ status: 'failed', reply })
      expect(steps[step]?.advice).to.match(/^\S.*\.$/)
      const failedAt = STEPS.indexOf(step)
      for (const each of STEPS.slice(0, failedAt)) expect(steps[each]?.status).to.equal('ok')
      for (const each of STEPS.slice(failedAt + 1)) {
        expect(steps[each]?.status).to.equal('skipped')
      }
      await settled(smtp)
      expect((await tested())['data']).to.include({ status: 'ok' })
    })
  }

  it('that finds nobody at the port says so', async () => {
    await h.put({ smtp_port: String(await freePort()) })
    const steps = await tested()
    expect(steps['connect']?.status).to.equal('failed')
    expect(steps['data']?.status).to.equal('skipped')
    await h.put({ smtp_port: String(h.mail.port) })
    expect((await tested())['data']?.status).to.equal('ok')
  })

  it('that finds SMTP not configured names the settings that are missing', async () => {
    await admin.unsetSettings(['smtp_from'])
    const steps = await tested()
    expect(steps['configuration']?.status).to.equal('failed')
    expect(steps['configuration']?.message).to.include('smtp_from')
    for (const each of STEPS.slice(1)) expect(steps[each]?.status).to.equal('skipped')
    await h.put({ smtp_from: 'accounts@idp.example' })
    expect((await tested())['data']?.status).to.equal('ok')
  })

  it('never answers the stored password, however the server repeats it', async () => {
    const guises = [
      CANARY,
      Buffer.from(CANARY).toString('base64'),
      Buffer.from(`\0mailer\0${CANARY}`).toString('base64'),
      Buffer.from(CANARY).toString('hex'),
      CANARY.toUpperCase(),
    ]
    for (const at of ['AUTH', 'MAIL', 'dot'] as const) {
      const code = at === 'AUTH' ? '535 5.7.8' : '550 5.7.1'
      const reply = `${code} got ${guises.join(', ')}`
      const smtp = await startFaultySmtp({
        offersAuth: true,
        fault: (here: Step) => (here === at ? reply : undefined),
      })
      await h.put({ smtp_port: String(smtp.port), smtp_username: 'mailer', smtp_password: CANARY })
      const answer = JSON.stringify(await tested())
      expect(answer).to.include(code)
      for (const each of guises) expect(answer).to.not.include(each)
      await settled(smtp)
    }
    expect(await dump(h)).to.not.include(CANARY)
    expect((await tested())['data']?.status).to.equal('ok')
  })

  it('goes nowhere where `to` is not one plain address: 400', async () => {
    const smtp = await startFaultySmtp()
    await h.put({ smtp_port: String(smtp.port) })
    const actions = actionsOf(h).length
    const wrong = [
      '',
      'ann',
      'ann@',
      '@users.example',
      'ann@users.example, bob@users.example',
      'Ann <ann@users.example>',
      'ann@users.example\r\nRCPT TO:<bob@users.example>',
      'ann@users.example\0',
      ' ann@users.example',
    ]
    for (const to of [...wrong, 1, null, [TO]]) {
      const problem = await refusalOf(admin.testMail({ to: to as string }))
      expect([problem.status, problem.code]).to.deep.equal([400, 'invalid_request'])
      expect(problem.errors?.map(({ key }) => key)).to.deep.equal(['to'])
    }
    expect(await codeOf(admin.testMail({} as never))).to.deep.equal([400, 'invalid_request'])
    expect(smtp.connections).to.equal(0)
    expect(actionsOf(h)).to.have.length(actions)
    await tested()
    expect(smtp.mails).to.have.length(1)
    await settled(smtp)
  })
})

describe('A preview of a mail (5, D29)', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)

  const pages: Record<Template, string> = {
    'password-reset': '/reset-password',
    'email-verification': '/verify-email',
    'password-changed': '/forgot-password',
  }
  for (const [name, page] of Object.entries(pages)) {
    it(`of ${name} has subject, text and HTML, and a link without a token`, async () => {
      const events = h.events.length
      const template = name as Template
      const mail = await admin.previewMail({ template })
      expect(mail.subject).to.match(/^\S.*\S$/)
      for (const part of [mail.text, mail.html]) {
        expect(part).to.include(h.oauthUrl + page)
        expect(part).to.not.match(/token|authorize_sig|undefined|\[object/)
      }
      expect(mail.html).to.match(/<html lang="en"/)
      expect(await admin.previewMail({ template, locale: 'en' })).to.deep.include({
        subject: mail.subject,
      })
      expect(h.events).to.have.length(events)
      expect(h.mail.mails).to.deep.equal([])
    })
  }

  const preview = 'password-reset'
  for (const [key, value] of [
    ['template', undefined],
    ['template', 'no-such-mail'],
    ['template', '../../package'],
    ['template', '__proto__'],
    ['template', 'test'],
    ['locale', 'xx'],
    ['locale', '../en'],
    ['locale', ''],
    ['locale', 'constructor'],
  ] as const) {
    it(`is refused for the ${key} ${JSON.stringify(value) ?? 'that is missing'}: 400, naming it`, async () => {
      const query = {
        ...(key === 'locale' && { template: preview }),
        ...(value !== undefined && { [key]: value }),
      }
      const problem = await refusalOf(admin.previewMail(query as never))
      expect([problem.status, problem.code]).to.deep.equal([400, 'invalid_request'])
      expect(problem.errors?.map((error) => error.key)).to.deep.equal([key])
      expect((await admin.previewMail({ template: preview })).text).to.include('http')
    })
  }
})
