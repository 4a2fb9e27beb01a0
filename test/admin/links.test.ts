import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import * as fc from 'fast-check'
import type { AdminApi, User } from '../../src/index.ts'
import {
  actionsOf,
  adminOf,
  suiteAdmin,
  codeOf,
  expectAudited,
  withDeleted,
} from '../support/admin-calls.ts'
import { addUnverified, addVerified, isVerified, resend } from '../support/blocked-login.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { isSameLink, linkChange, spellings, type Pairs } from '../support/link-changes.ts'
import { dump, sha256, tokenOf, usableRecord } from '../support/observe.ts'
import { OTHER_HASH, type UserWithLink } from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a brand new password'
const CARRIED = {
  client_id: CLIENT.client_id,
  redirect_uri: CLIENT.redirect_uris[0],
  scope: 'openid email',
  state: 'a state & more = 3D',
}

type State = AdminApi.LinkExplanation['state']
type Mailed = UserWithLink
type Make = () => Promise<Mailed>

describe('The admin API explains a link (5)', () => {
  const secrets = [randomBytes(32)]
  const deleted = new Set<string>()
  const logs: string[] = []
  const h = suiteHarness({
    flows: {
      secrets,
      users: withDeleted(() => h.users, deleted),
      log: (...line) => logs.push(JSON.stringify(line)),
    },
  })
  const admin = suiteAdmin(h)

  const explain = (link: string) => admin.explainLink({ link })
  const seconds = (time = 'none') => time.replace(/\.\d+Z$/, 'Z')

  async function resetLink(): Promise<Mailed> {
    const user = await addVerified(h)
    return { user, link: await h.resetLink(user) }
  }

  async function verificationLink(carried: Record<string, string> = {}): Promise<Mailed> {
    const user = await addUnverified(h)
    return { user, link: await resend(h, user, carried) }
  }

  /** What the page makes of it: whether the link still does its work. */
  async function works(link: string): Promise<boolean> {
    if (link.includes('/reset-password?')) return (await h.reset(link, NEW)).mode === 'done'
    const { status, mode } = await createUserAgent().get(link)
    expect([200, 302, 400]).to.include(status)
    return status === 302 || mode === 'verified'
  }

  /** A reset link that was made two hours ago, for one hour. */
  async function expiredResetLink(token = randomBytes(32).toString('base64url')): Promise<Mailed> {
    const { user, link } = await resetLink()
    const { id: _, ...issued } = (await usableRecord(h, link)) ?? {}
    const hours = (count: number) => new Date(Date.now() + count * 3_600_000)
    const times = { createdAt: hours(-2), expiresAt: hours(-1), requestedAt: hours(1) }
    const record = { ...issued, id: token, tokenHash: sha256(token), ...times }
    expect(await h.store.resetTokens.issue(record as never)).to.equal(true)
    return { user, link: `${h.oauthUrl}/reset-password?token=${token}` }
  }

  const mailedAnd = (make: Make, change: (mailed: Mailed) => Promise<unknown>) => async () => {
    const mailed = await make()
    await change(mailed)
    return mailed
  }
  const isUsed = async ({ link }: Mailed) => expect(await works(link)).to.equal(true)
  async function isExpired({ link }: Mailed) {
    const { verificationTokens } = h.store
    const { id = '' } = (await verificationTokens.find(sha256(tokenOf(link)))) ?? {}
    await verificationTokens.revoke({ id }, new Date(Date.now() - 60_000))
  }
  const isVoided = ({ user }: Mailed) => h.flows.endSessions(user.id)
  const bare = () => verificationLink()

  const LIVE = /^The link works until /
  const USED = /^The link was used /
  const REPLACED = /^The link was replaced by a newer one: /
  const EXPIRED = /^The link expired /
  const VOIDED = /^The link was voided: /
  const cases: [title: string, state: State, summary: RegExp, make: Make][] = [
    ['a reset link', 'live', LIVE, resetLink],
    ['a used reset link', 'used', USED, mailedAnd(resetLink, isUsed)],
    [
      'a replaced reset link',
      'superseded',
      REPLACED,
      mailedAnd(resetLink, ({ user }) => h.resetLink(user)),
    ],
    ['an expired reset link', 'expired', EXPIRED, () => expiredResetLink()],
    [
      'an expired reset link whose account changed since',
      'void',
      /address of the account was changed/,
      mailedAnd(
        () => expiredResetLink(),
        ({ user }) => h.changeUser(user, { email: 'changed@users.example' }),
      ),
    ],
    ['a voided reset link', 'void', VOIDED, mailedAnd(resetLink, isVoided)],
    ['a voided verification link', 'void', VOIDED, mailedAnd(bare, isVoided)],
    ['a verification link', 'live', LIVE, bare],
    ['a verification link with all parameters', 'live', LIVE, () => verificationLink(CARRIED)],
    ['a used verification link', 'used', USED, mailedAnd(bare, isUsed)],
    ['an expired verification link', 'expired', EXPIRED, mailedAnd(bare, isExpired)],
    [
      'a verification link of an address that another link verified',
      'expired',
      EXPIRED,
      mailedAnd(bare, async ({ user }) => isUsed({ user, link: await resend(h, user) })),
    ],
    [
      'a verification link of an address that the host verified',
      'live',
      LIVE,
      mailedAnd(bare, ({ user }) => h.changeUser(user, { emailVerified: true })),
    ],
  ]
  const voids: Record<string, [summary: RegExp, change: (user: User) => Promise<void>]> = {
    'whose address changed': [
      /address of the account was changed/,
      (user) => h.changeUser(user, { email: 'elsewhere@users.example' }),
    ],
    'whose password changed': [
      /password of the account was changed/,
      (user) => h.changeUser(user, { passwordHash: OTHER_HASH }),
    ],
    'that is disabled': [/is disabled/, (user) => h.changeUser(user, { disabled: true })],
    'that was deleted': [/does not exist any more/, async ({ id }) => void deleted.add(id)],
  }
  for (const [of, [summary, change]] of Object.entries(voids)) {
    for (const [kind, make] of Object.entries({ reset: resetLink, verification: bare })) {
      const title = `a ${kind} link of an account ${of}`
      cases.push([title, 'void', summary, mailedAnd(make, ({ user }) => change(user))])
    }
  }

  describe('as its page does:', () => {
    for (const [title, state, summary, make] of cases) {
      it(`${title} is ${state}`, async () => {
        const { user, link } = await make()
        const before = await recordOf(h, link)
        const explained = await explain(link)
        const kind = link.includes('/reset-password?') ? 'password_reset' : 'email_verification'
        expect(explained).to.include({ state, kind, account_id: user.id })
        expect(explained.summary).to.match(summary)
        expect(explained.advice).to.match(/^\S.*\.$/)
        expect(explained.altered).to.deep.equal([])
        expect(explained.signature).to.equal(kind === 'email_verification' ? 'valid' : undefined)
        expect(await recordOf(h, link)).to.deep.equal(before)
        expect(await works(link)).to.equal(state === 'live')
      })
    }
  })

  describe('of an address that is verified, as one with nothing left to do:', () => {
    const verified = (user: User) => h.changeUser(user, { emailVerified: true })
    const whose: Record<string, (mailed: Mailed) => Promise<unknown>> = {
      'it was used': isUsed,
      'another link was used': async ({ user }) => isUsed({ user, link: await resend(h, user) }),
      'it expired, and the host verified it': async (mailed) => {
        await isExpired(mailed)
        await verified(mailed.user)
      },
      'the host verified it': ({ user }) => verified(user),
      'the password changed since': async (mailed) => {
        await isUsed({ ...mailed, link: await resend(h, mailed.user) })
        await h.changeUser(mailed.user, { passwordHash: OTHER_HASH })
      },
    }
    for (const [what, happens] of Object.entries(whose)) {
      it(what, async () => {
        const { user, link } = await mailedAnd(bare, happens)()
        const { summary, advice } = await explain(link)
        expect(summary).to.match(/^The .*\. The address is verified already\.$/)
        expect(advice).to.equal('There is nothing left to do: the person can sign in.')
        await h.changeUser(user, { email: 'another@users.example' })
        const changed = await explain(link)
        expect(changed.summary + changed.advice).not.to.match(/verified|nothing left/)
        expect(changed.advice).to.include('Send a new link')
      })
    }
  })

  describe('with the times', () => {
    it('of its making, its end and its use', async () => {
      const { link } = await resetLink()
      const { created_at = '', expires_at = '' } = await explain(link)
      expect(Date.parse(expires_at) - Date.parse(created_at)).to.equal(3_600_000)
      expect((await explain(link)).summary).to.equal(`The link works until ${seconds(expires_at)}.`)
      await works(link)
      const { used_at, completed_at, summary } = await explain(link)
      expect(summary).to.equal(`The link was used ${seconds(used_at)}.`)
      expect(completed_at).to.be.a('string')
    })

    it('of the newer one that replaced it', async () => {
      const { user, link } = await resetLink()
      const { created_at } = await explain(await h.resetLink(user))
      const { summary, advice } = await explain(link)
      expect(summary).to.equal(`The link was replaced by a newer one: ${seconds(created_at)}.`)
      expect(advice).to.equal('Only the link in the newest mail works.')
    })

    it('of being voided, while the newer mail has not left', async () => {
      const { user, link } = await resetLink()
      h.mail.fallSilent()
      await h.forgot(user.username)
      const explained = await eventually('the link is voided', async () => {
        const each = await explain(link)
        return each.state === 'superseded' && each
      })
      expect(explained.summary).to.equal(
        `The link was voided ${seconds(explained.invalidated_at)}.`,
      )
      h.mail.speak()
      const newer = await h.mail.mailTo(user.email ?? '', 2)
      expect(await works(link)).to.equal(false)
      expect(await works(newer.link)).to.equal(true)
    })

    it('of being refused, where a reset came to nothing because the account had changed', async () => {
      const { user, link } = await resetLink()
      await h.changeUser(user, { disabled: true })
      expect(await works(link)).to.equal(false)
      expect(await explain(link)).to.include({ state: 'void' })
      await h.changeUser(user, { disabled: false })
      const explained = await explain(link)
      expect(explained.state).to.equal('void')
      expect(explained.summary).to.match(/^The link was refused 20/)
      expect(explained).to.not.have.property('used_at')
      expect(await works(link)).to.equal(false)
      expect(await works(await h.resetLink(user))).to.equal(true)
    })
  })

  describe('with what happened to it, oldest first:', () => {
    for (const [kind, make, of, reason] of [
      ['a reset', resetLink, 'password_reset', 'used'],
      ['a verification', bare, 'email_verification', 'already_verified'],
    ] as const) {
      it(`the request, the mail, its use, and attempts that were refused, with who tried, of ${kind} link`, async () => {
        const { link } = await make()
        await works(link)
        const agent = { 'user-agent': 'a curious browser' }
        const form = { token: tokenOf(link), password: NEW, confirm_password: NEW }
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

    it('and nothing of an earlier link', async () => {
      const { user, link } = await resetLink()
      await works(link)
      const { history } = await explain(await h.resetLink(user))
      expect(history.map(({ type }) => type)).to.deep.equal([
        'password_reset_requested',
        'password_reset_mail_sent',
      ])
    })
  })

  describe('however it was pasted:', () => {
    const wrapped = (text: string, at: number, by: string) =>
      text.replaceAll(new RegExp(`(.{${at}})`, 'g'), `$1${by}`)
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
    }
    const carrying = () => verificationLink(CARRIED)
    for (const [kind, make] of Object.entries({ reset: resetLink, verification: carrying })) {
      it(`the same of a ${kind} link`, async () => {
        const { link } = await make()
        const expected = await explain(link)
        expect(expected.state).to.equal('live')
        for (const [how, paste] of Object.entries(pastes)) {
          expect(await explain(paste(link)), how).to.deep.equal(expected)
        }
        expect(await works(link)).to.equal(true)
      })
    }
  })

  describe('that is not as it was mailed', () => {
    let mailed: Mailed
    before(async () => {
      mailed = await verificationLink(CARRIED)
    })
    after(async () => {
      expect((await explain(mailed.link)).state).to.equal('live')
      expect(await works(mailed.link)).to.equal(true)
      expect(await isVerified(h, mailed.user)).to.equal(true)
    })

    const query = () => [...new URL(mailed.link).searchParams] as Pairs
    const linkWith = (pairs: Pairs) =>
      `${h.oauthUrl}/verify-email?${new URLSearchParams(pairs).toString()}`

    async function expectAltered(pairs: Pairs, expected: Partial<AdminApi.LinkExplanation>) {
      const before = await recordOf(h, mailed.link)
      const explained = await explain(linkWith(pairs))
      const account_id = mailed.user.id
      expect(explained).to.deep.include({ state: 'altered', account_id, ...expected })
      for (const name of explained.altered) expect(explained.summary).to.include(name)
      expect(await works(linkWith(pairs))).to.equal(false)
      expect(await recordOf(h, mailed.link)).to.deep.equal(before)
    }

    for (const name of Object.keys(CARRIED)) {
      it(`because ${name} is another one, is missing, or is there twice, be it in brackets`, async () => {
        const invalid = { altered: [name], signature: 'invalid' as const }
        const longer = query().map(([each, value]) => [each, each === name ? `${value}x` : value])
        await expectAltered(longer as Pairs, invalid)
        await expectAltered(
          query().filter(([each]) => each !== name),
          invalid,
        )
        for (const twice of [name, `${name}[]`]) {
          await expectAltered([...query(), [twice, 'x']], { altered: [twice], signature: 'valid' })
        }
      })
    }

    it('because its signature is missing or another one, or its token is there twice', async () => {
      const altered = ['authorize_sig']
      await expectAltered(
        query().filter(([each]) => each !== 'authorize_sig'),
        { altered, signature: 'missing' },
      )
      const other = (value: string) => `${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`
      await expectAltered(
        query().map(([each, value]) => [each, each === 'authorize_sig' ? other(value) : value]),
        { altered, signature: 'invalid' },
      )
      await expectAltered([...query(), ['token', tokenOf(mailed.link)]], { altered: ['token'] })
    })

    it('because one is there twice', async () => {
      for (const name of ['scope', 'client_id', 'token']) {
        await expectAltered([...query(), [name, '41']], { altered: [name] })
        if (name !== 'token') await expectAltered([[name, '41'], ...query()], { altered: [name] })
      }
    })

    it('because it has parameters that it had not', async () => {
      const bare = await verificationLink()
      for (const [name, value] of Object.entries(CARRIED)) {
        const link = `${bare.link}&${new URLSearchParams({ [name]: value }).toString()}`
        expect(await explain(link)).to.deep.include({ state: 'altered', altered: [name] })
        expect(await works(link)).to.equal(false)
      }
      expect(await works(bare.link)).to.equal(true)
    })

    it('because a reset link has its token twice; what is foreign in it does no harm', async () => {
      const { link } = await resetLink()
      const twice = `${link}&token=x`
      expect(await explain(twice)).to.deep.include({ state: 'altered', altered: ['token'] })
      expect((await createUserAgent().get(twice)).mode).to.equal('invalid')
      const foreign = `${link}&x=%zz&x=y`
      expect(await explain(foreign)).to.deep.include({ state: 'live', altered: [] })
      expect((await createUserAgent().get(foreign)).mode).to.equal('form')
      expect(await works(link)).to.equal(true)
    })

    it('whatever was changed, and live however it is written otherwise', async () => {
      await fc.assert(
        fc.asyncProperty(linkChange, async (change) => {
          const pairs = change(query())
          const { state } = await explain(linkWith(pairs))
          expect(state === 'live').to.equal(isSameLink(pairs, query()))
          if (state !== 'live') expect(await works(linkWith(pairs))).to.equal(false)
        }),
        { numRuns: 30 },
      )
      await fc.assert(
        fc.asyncProperty(spellings(query()), async (text) => {
          const { state } = await explain(`${h.oauthUrl}/verify-email?${text}`)
          expect(state).to.equal('live')
        }),
        { numRuns: 20 },
      )
    })
  })

  describe('of which nothing is known', () => {
    it('because its token is another one, of a link that works', async () => {
      for (const { link } of [await resetLink(), await verificationLink()]) {
        const token = tokenOf(link)
        const other = (token.startsWith('A') ? 'B' : 'A') + token.slice(1)
        const explained = await explain(link.replace(token, other))
        expect(explained).to.include({
          state: 'unknown',
          summary: 'No link with this token is known.',
        })
        expect(explained).to.not.have.any.keys('account_id', 'mail_id')
        expect(explained.history).to.deep.equal([])
        expect(await works(link.replace(token, other))).to.equal(false)
        expect(await works(link)).to.equal(true)
      }
    })

    it('because its token was cut', async () => {
      const { link } = await resetLink()
      const cut = await explain(link.slice(0, -5))
      expect(cut).to.include({
        state: 'unknown',
        summary: 'The token of the link has 38 characters, not 43.',
      })
      for (const without of [link.replace(/token=.*/, ''), link.replace(/=.*/, '=')]) {
        const explained = await explain(without)
        expect(explained).to.include({ state: 'unknown', summary: 'The link has no token.' })
        expect(await works(without)).to.equal(false)
      }
      expect(await works(link)).to.equal(true)
    })

    it('because it is too old, though it is signed', async () => {
      const { link } = await verificationLink(CARRIED)
      const forgotten = await startHarness({ flows: { secrets } })
      const moved = link.replace(h.oauthUrl, forgotten.oauthUrl)
      const explained = await adminOf(forgotten).explainLink({ link: moved })
      expect(explained).to.include({ state: 'unknown', signature: 'valid' })
      expect(explained.summary).to.match(/genuine, but too old/)
      expect((await createUserAgent().get(moved)).mode).to.equal('expired')
      await forgotten.close()
      expect(await works(link)).to.equal(true)
    })
  })

  it('is no link of ours, whatever else it is', async () => {
    const { link } = await resetLink()
    const { port } = new URL(h.baseUrl)
    const others = [
      link.replace('127.0.0.1', 'idp.example'),
      link.replace(`:${port}`, ''),
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
      'data:text/html,x',
      'mailto:ann@users.example',
      '://',
      'reset my password please',
      '=3D=3D',
      '<>',
      '%',
    ]
    for (const text of others) {
      const explained = await explain(text)
      expect(explained.state, text).to.equal('not_a_link')
      expect(explained).to.not.have.any.keys('account_id', 'kind', 'signature')
      expectAudited(actionsOf(h, 'link_explain').at(-1), 'link_explain')
    }
    expect(await works(link)).to.equal(true)
  })

  it('and refuses what is no text, or too long: 400', async () => {
    const actions = actionsOf(h).length
    for (const link of ['', 'x'.repeat(8193), 1, null, ['x'], { $ne: '' }]) {
      expect(await codeOf(explain(link as string))).to.deep.equal([400, 'invalid_request'])
    }
    expect(actionsOf(h)).to.have.length(actions)
    expect((await explain('x')).state).to.equal('not_a_link')
  })

  it('and is audited with who asked and the account; the token is written nowhere', async () => {
    for (const { user, link } of [await resetLink(), await verificationLink(CARRIED)]) {
      await explain(link)
      await explain(link.slice(0, -1))
      await explain(`<${link}>`)
      const event = actionsOf(h, 'link_explain').at(-1)
      expectAudited(event, 'link_explain', user)
      expect(event?.details).to.include({ state: 'live' })
      const written = (await dump(h)) + JSON.stringify(h.events) + logs.join('\n')
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
})

describe('The admin API explains a verification link after the keys were rotated', () => {
  it('as valid while its key is in the ring, and as altered once it is gone', async () => {
    const [oldKey, newKey] = [randomBytes(32), randomBytes(32)]
    const h = await startHarness({ flows: { secrets: [oldKey] } })
    const user = await addUnverified(h)
    const link = await resend(h, user, CARRIED)

    const explainedBy = async (ring: Buffer[]) => {
      const { store, users } = h
      const rotated = await startHarness({ flows: { secrets: ring, store, users } })
      const moved = link.replace(h.oauthUrl, rotated.oauthUrl)
      const explained = await adminOf(rotated).explainLink({ link: moved })
      await rotated.close()
      return explained
    }
    expect(await explainedBy([newKey, oldKey])).to.include({ state: 'live', signature: 'valid' })
    expect(await explainedBy([newKey])).to.deep.include({
      state: 'altered',
      signature: 'invalid',
      altered: ['authorize_sig'],
    })
    expect((await createUserAgent().get(link)).status).to.equal(302)
    expect(await isVerified(h, user)).to.equal(true)
    await h.close()
  })
})

/** All that is stored of a link. */
async function recordOf({ store }: Harness, link: string): Promise<unknown> {
  const hash = sha256(tokenOf(link))
  const isReset = link.includes('/reset-password?')
  const tokens = isReset ? store.resetTokens : store.verificationTokens
  return tokens.find(hash)
}
