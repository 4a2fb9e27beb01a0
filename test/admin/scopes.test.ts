import { expect } from 'chai'
import { ADMIN_SCOPES, type AdminScope } from '../../src/admin/bearer-tokens.ts'
import { createAdminClient, type AdminClient, type AdminToken } from '../../src/index.ts'
import { actionsOf, refusalOf } from '../support/admin-calls.ts'
import { ADMIN_AUDIENCE, ADMIN_ISSUER, tokenIssuer } from '../support/admin-tokens.ts'
import { ADMIN_TOKEN, type Harness } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { eventsOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const READ = 'account-flows:read'
const SUPPORT = 'account-flows:support'
const SETTINGS = 'account-flows:settings'

const account = { user: 'ann' }
const mail = { id: 'no-such-mail' }

/** Each operation, what it needs, and how it is asked for so that nothing is sent to anybody. */
const OPERATIONS: {
  [N in keyof AdminClient]: [AdminScope, (admin: AdminClient) => Promise<unknown>]
} = {
  getSettings: [READ, (admin) => admin.getSettings()],
  settingsHistory: [READ, (admin) => admin.settingsHistory()],
  putSettings: [SETTINGS, (admin) => admin.putSettings({ smtp_username: 'somebody' })],
  unsetSettings: [SETTINGS, (admin) => admin.unsetSettings(['smtp_username'])],
  testMail: [SETTINGS, (admin) => admin.testMail({ to: 'somebody@example.com' })],
  previewMail: [READ, (admin) => admin.previewMail({ template: 'password-reset' })],
  mailOutcome: [READ, (admin) => admin.mailOutcome({ mail_id: 'no-such-mail' })],
  runDoctor: [SUPPORT, (admin) => admin.runDoctor({ to: 'somebody@example.com' })],
  userStatus: [READ, (admin) => admin.userStatus(account)],
  sendReset: [SUPPORT, (admin) => admin.sendReset(account)],
  sendVerification: [SUPPORT, (admin) => admin.sendVerification(account)],
  inviteUser: [SUPPORT, (admin) => admin.inviteUser({ user: 'invited' })],
  endSessions: [SUPPORT, (admin) => admin.endSessions(account)],
  verifyUser: [SUPPORT, (admin) => admin.verifyUser(account)],
  unverifyUser: [SUPPORT, (admin) => admin.unverifyUser(account)],
  forgetUser: [SUPPORT, (admin) => admin.forgetUser({ id: 'nobody' })],
  listOutbox: [READ, (admin) => admin.listOutbox()],
  showMail: [READ, (admin) => admin.showMail({ mail_id: 'no-such-mail' })],
  retryMails: [SUPPORT, (admin) => admin.retryMails(mail)],
  purgeMails: [SUPPORT, (admin) => admin.purgeMails(mail)],
  listAudit: [READ, (admin) => admin.listAudit()],
  explainLink: [READ, (admin) => admin.explainLink({ link: 'no link' })],
  rotateKeys: [SETTINGS, (admin) => admin.rotateKeys()],
}

/** Tokens with exactly these scopes, a name for all three among them. */
type TokenFor = (...scopes: string[]) => string

function itKeepsScopesApart(h: Harness, tokenFor: TokenFor) {
  const adminWith = (...scopes: string[]) => createAdminClient(h.baseUrl, tokenFor(...scopes))

  /** What is stored and was sent, without the refusal itself. */
  async function state() {
    const { values } = await h.store.settings.read()
    const events = h.events.filter(({ type }) => type !== 'admin_auth_failed')
    return JSON.stringify([
      values,
      events,
      h.mail.mails.length,
      await h.store.outbox.list({ limit: 100 }, new Date()),
    ])
  }

  before(async () => {
    await h.addUser({ username: 'ann' })
    await h.addUser({ username: 'invited', passwordHash: undefined })
  })

  for (const [name, [needed, ask]] of Object.entries(OPERATIONS)) {
    it(`${name} takes ${needed}, and not the two others together: 403 that names it, and nothing changes (ADM-15)`, async () => {
      await isIdle(h)
      const before = await state()
      const others = ADMIN_SCOPES.filter((scope) => scope !== needed)
      const problem = await refusalOf(ask(adminWith(...others)))
      expect(problem).to.include({ status: 403, code: 'forbidden' })
      expect(problem.title).to.equal(`This token lacks the scope ${needed}.`)
      expect(await state()).to.equal(before)
      const refused = eventsOf(h, 'admin_auth_failed').at(-1)
      expect(refused?.reason).to.equal('insufficient_scope')
      expect(refused?.details?.['scope']).to.equal(needed)
      expect(refused?.details?.['actor']).to.be.a('string').and.not.equal('')
      for (const scope of [needed, 'account-flows:admin']) {
        const asked = ask(adminWith(scope))
        if (name === 'retryMails' || name === 'purgeMails') {
          expect((await refusalOf(asked)).code).to.equal('unknown_mail')
        } else expect(await asked).to.be.an('object')
      }
    })
  }

  it('a refusal says in WWW-Authenticate which scope is needed (RFC 6750, 3.1)', async () => {
    const authorization = `Bearer ${tokenFor(READ, SUPPORT)}`
    const response = await fetch(`${h.baseUrl}/admin/api/settings`, {
      method: 'PUT',
      headers: { authorization, 'content-type': 'application/json' },
      body: '{}',
    })
    expect(response.status).to.equal(403)
    expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
    expect(response.headers.get('www-authenticate')).to.equal(
      `Bearer realm="account-flows", error="insufficient_scope", scope="${SETTINGS}"`,
    )
  })

  it('HEAD needs what GET needs, and what is not there is not there', async () => {
    const ask = (method: string, path: string, scope: string) =>
      fetch(`${h.baseUrl}/admin/api${path}`, {
        method,
        headers: { authorization: `Bearer ${tokenFor(scope)}` },
      })
    expect((await ask('HEAD', '/settings', SUPPORT)).status).to.equal(403)
    expect((await ask('HEAD', '/settings', READ)).status).to.equal(200)
    expect((await ask('GET', '/nothing', READ)).status).to.equal(404)
    expect((await ask('DELETE', '/settings', READ)).status).to.equal(405)
  })
}

describe('Scopes of fixed admin tokens (5.1)', () => {
  const tokenFor: TokenFor = (...scopes) => [...scopes].sort().join('+').padEnd(40, '-')
  const sets = [
    ...ADMIN_SCOPES.map((scope) => [scope]),
    ...ADMIN_SCOPES.map((left) => ADMIN_SCOPES.filter((scope) => scope !== left)),
    ['account-flows:admin' as const],
  ]
  const adminToken: AdminToken[] = [
    ADMIN_TOKEN,
    ...sets.map((scopes) => ({ token: tokenFor(...scopes), scopes })),
  ]
  const h = suiteHarness({ flows: { adminToken, trustedProxies: 1 } })
  itKeepsScopesApart(h, tokenFor)

  it('a token that is a text alone may do everything', async () => {
    const admin = createAdminClient(h.baseUrl, ADMIN_TOKEN)
    for (const ask of [
      admin.getSettings,
      () => admin.putSettings({}),
      () => admin.sendReset(account),
    ]) {
      expect(await ask()).to.be.an('object')
    }
    expect(actionsOf(h, 'send_reset').at(-1)?.details).to.include({ actor: 'admin_token' })
  })

  for (const [scopes, actor] of [
    [[SUPPORT], 'admin_token:support'],
    [[READ, SUPPORT], 'admin_token:read+support'],
    [[SUPPORT, SETTINGS], 'admin_token:support+settings'],
    [['account-flows:admin'], 'admin_token'],
  ] as const) {
    it(`the audit log names a token with ${scopes.join(' and ')} ${actor}`, async () => {
      await createAdminClient(h.baseUrl, tokenFor(...scopes)).sendReset(account)
      expect(actionsOf(h, 'send_reset').at(-1)?.details).to.include({ actor })
    })
  }
})

describe('Scopes of a JWT as admin token (5.1)', () => {
  const issuer = tokenIssuer()
  const adminJwt = {
    issuer: ADMIN_ISSUER,
    audience: ADMIN_AUDIENCE,
    algorithms: ['RS256'],
    keys: issuer.jwks,
  }
  const h = suiteHarness({ flows: { adminToken: undefined, adminJwt } })
  itKeepsScopesApart(h, (...scopes) => issuer.token({ scope: ['openid', ...scopes].join(' ') }))

  it('begin of a scope, one in upper case, and one behind a comma are none (ADM-15)', async () => {
    for (const scope of [
      'account-flows',
      `${READ}er`,
      READ.toUpperCase(),
      `openid,${READ}`,
      '*',
      '',
    ]) {
      const admin = createAdminClient(h.baseUrl, issuer.token({ scope }))
      expect((await refusalOf(admin.getSettings())).status, scope).to.equal(403)
    }
    const admin = createAdminClient(h.baseUrl, issuer.token({ scope: `openid ${READ}` }))
    expect((await admin.getSettings()).etag).to.be.a('string')
  })
})
