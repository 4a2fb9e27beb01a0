import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import type * as AdminApi from '../../src/admin/client.ts'
import { adminOf, expectAudited, suiteAdmin } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, startHarness, type Harness, suiteHarness } from '../support/harness.ts'
import { sha256 } from '../support/observe.ts'
import { dump } from '../support/records.ts'
import { OTHER_HASH, resetForm, tokenOf, type Person } from '../support/person.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a brand new password'
const HOUR = 3_600_000
const REQUEST_PARAMETERS = {
  client_id: CLIENT.client_id,
  redirect_uri: CLIENT.redirect_uris[0],
  scope: 'openid email',
  state: 'a state & more = 3D',
}

type State = AdminApi.LinkExplanation['state']
type Pairs = [name: string, value: string][]
type Mailed = { user: Person; link: string }
type Make = () => Promise<Mailed>

describe('The admin API explains a link (5)', () => {
  const secrets = [randomBytes(32)]
  const logs: string[] = []
  const h: Harness = suiteHarness({
    flows: {
      secrets,
      log: (...line) => logs.push(JSON.stringify(line)),
    },
  })
  const admin = suiteAdmin(h)

  const explain = (link: string) => admin.explainLink({ link })
  const seconds = (time = 'none') => time.replace(/\.\d+Z$/, 'Z')

  const reset = () => h.userWithLink()

  async function verification(parameters: Record<string, string> = {}): Promise<Mailed> {
    const user = await h.addUnverified()
    return { user, link: await user.asksAgain(parameters) }
  }

  const bare = () => verification()
  const carrying = () => verification(REQUEST_PARAMETERS)

  /** What the page makes of it: whether the link still does its work. */
  async function works(link: string): Promise<boolean> {
    if (link.includes('/reset-password?')) return (await h.reset(link, NEW)).mode === 'done'
    const { status, mode } = await createUserAgent().get(link)
    expect([200, 302, 400]).to.include(status)
    return status === 302 || mode === 'verified'
  }

  type Change = (mailed: Mailed) => Promise<unknown>

  /** Makes a link to which this happens, one after the other. */
  const and =
    (make: Make, ...changes: Change[]) =>
    async () => {
      const mailed = await make()
      for (const change of changes) await change(mailed)
      return mailed
    }
  const isUsed: Change = async ({ link }) => expect(await works(link)).to.equal(true)
  const isExpired: Change = ({ link }) =>
    h.later(link.includes('/reset-password?') ? HOUR + 1 : 24 * HOUR + 1)
  const wasVoided: Change = ({ user }) => h.flows.endSessions(user.id)
  const isReplaced: Change = ({ user }) => user.forgets()
  const otherIsUsed: Change = async ({ user }) => isUsed({ user, link: await user.asksAgain() })
  const changed =
    (changes: Partial<User>): Change =>
    ({ user }) =>
      user.becomes(changes)
  const isDeleted: Change = async ({ user }) => user.isDeleted()

  const LIVE = /^The link works until /
  const USED = /^The link was used /
  const REPLACED = /^The link was replaced by a newer one: /
  const EXPIRED = /^The link expired /
  const VOIDED = /^The link was voided: /
  const moved = changed({ email: 'elsewhere@users.example' })
  const MOVED = /address of the account was changed/
  const hostVerified = changed({ emailVerified: true })
  const cases: [title: string, state: State, summary: RegExp, make: Make][] = [
    ['a reset link', 'live', LIVE, reset],
    ['a used reset link', 'used', USED, and(reset, isUsed)],
    ['a replaced reset link', 'superseded', REPLACED, and(reset, isReplaced)],
    ['an expired reset link', 'expired', EXPIRED, and(reset, isExpired)],
    ['an expired one whose account changed since', 'void', MOVED, and(reset, isExpired, moved)],
    ['a voided reset link', 'void', VOIDED, and(reset, wasVoided)],
    ['a voided verification link', 'void', VOIDED, and(bare, wasVoided)],
    ['a verification link', 'live', LIVE, bare],
    ['a verification link with all parameters', 'live', LIVE, carrying],
    ['a used verification link', 'used', USED, and(bare, isUsed)],
    ['an expired verification link', 'expired', EXPIRED, and(bare, isExpired)],
    ['one of an address that another link verified', 'expired', EXPIRED, and(bare, otherIsUsed)],
    ['one of an address that the host verified', 'live', LIVE, and(bare, hostVerified)],
  ]
  for (const [of, summary, change] of [
    ['whose address changed', MOVED, moved],
    ['whose password changed', /password of .* changed/, changed({ passwordHash: OTHER_HASH })],
    ['that is disabled', /is disabled/, changed({ disabled: true })],
    ['that was deleted', /does not exist any more/, isDeleted],
  ] as const) {
    cases.push([`a reset link of an account ${of}`, 'void', summary, and(reset, change)])
    cases.push([`a verification link of an account ${of}`, 'void', summary, and(bare, change)])
  }

  const first = () => h.userWithLink({ passwordHash: undefined, mayChoosePassword: true })
  const GIVEN = /password of the account was set, changed or removed/
  const withdrawn = changed({ mayChoosePassword: false })
  const unproven = changed({ emailVerified: false })
  const given = changed({ passwordHash: OTHER_HASH })
  cases.push(
    ['a reset link for a first password', 'live', LIVE, first],
    ['a used one for a first password', 'used', USED, and(first, isUsed)],
    ['one whose account got a password meanwhile', 'void', GIVEN, and(first, given)],
    ['one whose account may choose none any more', 'void', /cannot choose/, and(first, withdrawn)],
    ['one whose address is not verified any more', 'void', /cannot choose/, and(first, unproven)],
  )

  const elsewhere = changed({ mayChoosePassword: false, signsInElsewhere: 'Google' })
  for (const [what, advised, ...changes] of [
    ['may choose none any more', /user invite --id \S+$/, withdrawn],
    ['signs in elsewhere by now', /with Google\..* user invite --id \S+$/, elsewhere],
    ['is not verified any more', /user send-verification --id /, unproven],
    ['let it expire, and may choose none any more', /user invite/, isExpired, withdrawn],
  ] as [string, RegExp, ...Change[]][]) {
    it(`advises no request that would mail no link: the account ${what}`, async () => {
      const { user, link } = await and(first, ...changes)()
      const { state, advice } = await explain(link)
      expect(state).to.equal('void')
      expect(advice).to.match(advised).and.not.include('send-reset')
      await user.becomes({ passwordHash: OTHER_HASH, emailVerified: true })
      const { advice: another } = await explain(link)
      expect(another).to.equal('Send a new link: account-flows user send-reset.')
    })
  }

  for (const [title, state, summary, make] of cases) {
    it(`says as its page does: ${title} is ${state}`, async () => {
      const { user, link } = await make()
      const explained = await explain(link)
      const kind = link.includes('/reset-password?') ? 'password_reset' : 'email_verification'
      expect(explained).to.include({ state, kind, account_id: user.id })
      expect(explained.summary).to.match(summary)
      expect(explained.advice).to.match(/^\S.*(\.| --id \S+)$/)
      expect(explained.altered).to.deep.equal([])
      expect(explained.signature).to.equal(kind === 'email_verification' ? 'valid' : undefined)
      expect(await explain(link)).to.deep.equal(explained)
      expect(await works(link)).to.equal(state === 'live')
    })
  }

  const whose: [what: string, ...changes: Change[]][] = [
    ['it was used', isUsed],
    ['another link was used', otherIsUsed],
    ['it expired, and the host verified it', isExpired, hostVerified],
    ['the host verified it', hostVerified],
    ['the password changed since', otherIsUsed, changed({ passwordHash: OTHER_HASH })],
  ]
  for (const [what, ...changes] of whose) {
    it(`of an address that is verified has nothing left to do: ${what}`, async () => {
      const { user, link } = await and(bare, ...changes)()
      const { summary, advice } = await explain(link)
      expect(summary).to.match(/^The .*\. The address is verified already\.$/)
      expect(advice).to.equal('There is nothing left to do: the person can sign in.')
      await user.becomes({ email: 'another@users.example' })
      const later = await explain(link)
      expect(later.summary + later.advice).not.to.match(/verified|nothing left/)
      expect(later.advice).to.include('Send a new link')
    })
  }

  it('with the times of its making, its end and its use', async () => {
    const { link } = await reset()
    const { created_at = '', expires_at = '', summary } = await explain(link)
    expect(Date.parse(expires_at) - Date.parse(created_at)).to.equal(HOUR)
    expect(summary).to.equal(`The link works until ${seconds(expires_at)}.`)
    await works(link)
    const used = await explain(link)
    expect(used.summary).to.equal(`The link was used ${seconds(used.used_at)}.`)
    expect(used.completed_at).to.be.a('string')
  })

  it('with the time of the newer one that replaced it, which has nothing of its history', async () => {
    const { user, link } = await reset()
    const { created_at, history } = await explain(await user.forgets())
    const types = history.map(({ type }) => type)
    expect(types).to.deep.equal(['password_reset_requested', 'password_reset_mail_sent'])
    const { summary, advice } = await explain(link)
    expect(summary).to.equal(`The link was replaced by a newer one: ${seconds(created_at)}.`)
    expect(advice).to.equal('Only the link in the newest mail works.')
  })

  it('with the time of being voided, while the newer mail has not left', async () => {
    const { user, link } = await reset()
    h.mail.fallSilent()
    await h.forgot(user.username)
    const { summary, invalidated_at } = await eventually('the link is voided', async () => {
      const each = await explain(link)
      return each.state === 'superseded' && each
    })
    expect(summary).to.equal(`The link was voided ${seconds(invalidated_at)}.`)
    h.mail.speak()
    const newer = await user.mail(2)
    expect(await works(link)).to.equal(false)
    expect(await works(newer.link)).to.equal(true)
  })

  it('with the time of being refused, where a reset came to nothing because the account had changed', async () => {
    const { user, link } = await reset()
    await user.becomes({ disabled: true })
    expect(await works(link)).to.equal(false)
    expect(await explain(link)).to.include({ state: 'void' })
    await user.becomes({ disabled: false })
    const explained = await explain(link)
    expect(explained.state).to.equal('void')
    expect(explained.summary).to.match(/^The link was refused 20/)
    expect(explained).to.not.have.property('used_at')
    expect(await works(link)).to.equal(false)
    expect(await works(await user.forgets())).to.equal(true)
  })

  for (const [kind, make, of, reason] of [
    ['a reset', reset, 'password_reset', 'used'],
    ['a verification', bare, 'email_verification', 'already_verified'],
  ] as const) {
    it(`with what happened to it, oldest first: the request, the mail, its use, and attempts that were refused, of ${kind} link`, async () => {
      const { link } = await make()
      await works(link)
      const agent = { 'user-agent': 'a curious browser' }
      const form = resetForm(link, NEW)
      if (of === 'email_verification') await createUserAgent().get(link, agent)
      else await createUserAgent().post(`${h.oauthUrl}/reset-password`, form, agent)
      const { history } = await explain(link)
      expect(history.map(({ type }) => type)).to.deep.equal(
        ['requested', 'mail_sent', 'completed', 'rejected'].map((what) => `${of}_${what}`),
      )
      expect(history.at(-1)).to.include({ reason, user_agent: 'a curious browser' })
      expect(history.at(-1)?.address).to.match(/127\.0\.0\.1$/)
    })
  }

  const wrapped = (text: string, at: number, by: string) =>
    text.replaceAll(new RegExp(`(.{${at}})`, 'g'), `$1${by}`)
  const reordered = (link: string) => {
    const [path, ...pairs] = link.split(/[?&]/)
    return `${path}?${pairs.toReversed().join('&')}`
  }
  const pastes: Record<string, (link: string) => string> = {
    'with spaces around it': (link) => `  ${link} \r\n`,
    'wrapped over lines': (link) => wrapped(link, 40, '\r\n'),
    'wrapped and indented': (link) => wrapped(link, 33, '\n   '),
    'wrapped in the middle of every word': (link) => wrapped(link, 7, '\n'),
    'in angle brackets': (link) => `<${link}>`,
    'in quotes': (link) => `"${link}"`,
    'in round brackets, at the end of a sentence': (link) => `(${link}).`,
    'in angle brackets and wrapped': (link) => `<${wrapped(link, 50, '\n')}>\n`,
    'with &amp; left in': (link) => link.replaceAll('&', '&amp;'),
    'with the host in capitals': (link) => link.replace('http://', 'HTTP://'),
    'with parameters of a campaign': (link) => `${link}&utm_source=mail`,
    'with a fragment': (link) => `${link}#top`,
    'in another order': reordered,
    'percent-encoded': (link) => link.replace('token=', '%74oken=').replace('state=', 'st%61te='),
  }
  for (const [kind, make] of Object.entries({ reset, verification: carrying })) {
    it(`however it was pasted: the same of a ${kind} link`, async () => {
      const { link } = await make()
      const expected = await explain(link)
      expect(expected.state).to.equal('live')
      for (const [how, paste] of Object.entries(pastes))
        expect(await explain(paste(link)), how).to.deep.equal(expected)
      expect(await works(link)).to.equal(true)
    })
  }

  describe('that is not as it was mailed', () => {
    let mailed: Mailed
    let query: Pairs
    before(async () => {
      mailed = await carrying()
      query = [...new URL(mailed.link).searchParams] as Pairs
    })
    after(async () => {
      expect((await explain(mailed.link)).state).to.equal('live')
      expect(await works(mailed.link)).to.equal(true)
      expect(await mailed.user.isVerified()).to.equal(true)
    })

    const linkWith = (pairs: Pairs) =>
      `${h.oauthUrl}/verify-email?${new URLSearchParams(pairs).toString()}`
    const without = (name: string) => query.filter(([each]) => each !== name)
    const replaced = (name: string, change: (value: string) => string) =>
      query.map(([each, value]) => [each, each === name ? change(value) : value]) as Pairs

    async function expectAltered(
      pairs: Pairs,
      name: string,
      signature: AdminApi.LinkExplanation['signature'] = 'valid',
    ) {
      const explained = await explain(linkWith(pairs))
      const account_id = mailed.user.id
      const expected = { state: 'altered', account_id, altered: [name], signature }
      expect(explained).to.deep.include(expected)
      expect(explained.summary).to.include(name)
      expect(await works(linkWith(pairs))).to.equal(false)
      expect((await explain(mailed.link)).state).to.equal('live')
    }

    for (const name of Object.keys(REQUEST_PARAMETERS)) {
      it(`because ${name} is another one, is missing, or is there twice, be it in brackets`, async () => {
        await expectAltered(
          replaced(name, (value) => `${value}x`),
          name,
          'invalid',
        )
        await expectAltered(without(name), name, 'invalid')
        await expectAltered([...query, [name, 'x']], name)
        await expectAltered([...query, [`${name}[]`, 'x']], `${name}[]`)
        await expectAltered([[name, 'x'], ...query], name, 'invalid')
      })
    }

    it('because its signature is missing or another one, or its token is there twice', async () => {
      const other = (value: string) => `${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`
      await expectAltered(without('authorize_sig'), 'authorize_sig', 'missing')
      await expectAltered(replaced('authorize_sig', other), 'authorize_sig', 'invalid')
      for (const token of [tokenOf(mailed.link), '41'])
        await expectAltered([...query, ['token', token]], 'token')
    })

    it('because it has parameters that it had not, or a reset link its token twice; what is foreign does no harm', async () => {
      const { link } = await bare()
      for (const [name, value] of Object.entries(REQUEST_PARAMETERS)) {
        const more = `${link}&${new URLSearchParams({ [name]: value }).toString()}`
        expect(await explain(more)).to.deep.include({ state: 'altered', altered: [name] })
        expect(await works(more)).to.equal(false)
      }
      expect(await works(link)).to.equal(true)
      const other = (await reset()).link
      for (const [changed, expected, mode] of [
        [`${other}&token=x`, { state: 'altered', altered: ['token'] }, 'invalid'],
        [`${other}&x=%zz&x=y`, { state: 'live', altered: [] }, 'form'],
      ] as const) {
        expect(await explain(changed)).to.deep.include(expected)
        expect((await createUserAgent().get(changed)).mode).to.equal(mode)
      }
      expect(await works(other)).to.equal(true)
    })
  })

  it('of which nothing is known, because its token is another one, was cut, or is missing, of a link that works', async () => {
    for (const { link } of [await reset(), await bare()]) {
      const token = tokenOf(link)
      const other = (token.startsWith('A') ? 'B' : 'A') + token.slice(1)
      const cut = 'The token of the link has 38 characters, not 43.'
      for (const [text, summary] of [
        [link.replace(token, other), 'No link with this token is known.'],
        [link.replace(token, token.slice(5)), cut],
        [link.replace(`token=${token}`, ''), 'The link has no token.'],
        [link.replace(token, ''), 'The link has no token.'],
      ] as const) {
        const explained = await explain(text)
        expect(explained).to.include({ state: 'unknown', summary })
        expect(explained).to.not.have.any.keys('account_id', 'mail_id')
        expect(explained.history).to.deep.equal([])
        expect(await works(text)).to.equal(false)
      }
      expect(await works(link)).to.equal(true)
    }
  })

  it('is no link of ours, whatever else it is', async () => {
    const { link } = await reset()
    const others = [
      link.replace('127.0.0.1', 'idp.example'),
      link.replace(`:${new URL(h.baseUrl).port}`, ''),
      link.replace('http:', 'https:'),
      link.replace('/oauth2', ''),
      link.replace('/oauth2', '/oauth2/more'),
      link.replace('/oauth2', '/OAUTH2'),
      link.replace('/reset-password', '/forgot-password'),
      link.replace('/reset-password', '/reset-password/'),
      link.replace('/reset-password', 'constructor'),
      link.replace('/reset-password', '__proto__'),
      `https://tracker.example/?to=${encodeURIComponent(link)}`,
      tokenOf(link),
      `javascript:fetch('${link}')`,
      'reset my password please',
      ...'data:text/html,x mailto:ann@users.example :// =3D=3D <> %'.split(' '),
    ]
    for (const text of others) {
      const explained = await explain(text)
      expect(explained.state, text).to.equal('not_a_link')
      expect(explained).to.not.have.any.keys('account_id', 'kind', 'signature')
      expectAudited(h, 'link_explain')
    }
    expect(await works(link)).to.equal(true)
  })

  it('and is audited with who asked and the account; the token is written nowhere', async () => {
    for (const { user, link } of [await reset(), await carrying()]) {
      for (const text of [link, link.slice(0, -1), `<${link}>`]) await explain(text)
      expect(expectAudited(h, 'link_explain', user).details).to.include({ state: 'live' })
      const written = (await dump(h)) + logs.join('\n')
      const shown = JSON.stringify([await explain(link), await admin.listAudit({ limit: 1000 })])
      for (const text of [written, shown]) {
        expect(text).to.include(user.id)
        expect(text).to.not.include(tokenOf(link).slice(0, 20))
        expect(text).to.not.include(new URL(link).search)
      }
      expect(shown).to.not.include(sha256(tokenOf(link)))
      expect(await works(link)).to.equal(true)
    }
  })

  it('of a verification, signed by a key of the ring, as valid, be it too old to be known; and as altered once that key is gone', async () => {
    const { user, link } = await carrying()
    const { records: store, users } = h
    const next = randomBytes(32)
    for (const [flows, expected] of [
      [
        { store, users, secrets: [next, ...secrets] },
        { state: 'live', signature: 'valid' },
      ],
      [
        { store: h.records, users, secrets: [next] },
        { state: 'altered', signature: 'invalid' },
      ],
      [{ secrets }, { state: 'unknown', signature: 'valid' }],
    ] as const) {
      const other = await startHarness({ flows })
      const moved = link.replace(h.oauthUrl, other.oauthUrl)
      const explained = await adminOf(other).explainLink({ link: moved })
      expect(explained).to.include(expected)
      const { state, altered, summary } = explained
      expect(altered).to.deep.equal(state === 'altered' ? ['authorize_sig'] : [])
      if (state === 'unknown') {
        expect(summary).to.match(/genuine, but too old/)
        expect((await createUserAgent().get(moved)).mode).to.equal('expired')
      }
      await other.close()
    }
    expect(await works(link)).to.equal(true)
    expect(await user.isVerified()).to.equal(true)
  })
})
