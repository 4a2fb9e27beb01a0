import { expect } from 'chai'
import type { ValidatePassword, User } from '../../src/index.ts'
import { bcryptWork } from '../support/bcrypt-work.ts'
import { eventually } from '../support/eventually.ts'
import {
  expectPage,
  expectUnavailable,
  type Answer,
  createUserAgent,
  decodeEntities,
} from '../support/user-agent.ts'
import { onEachStore, PASSWORD, suiteHarness } from '../support/harness.ts'
import { dump } from '../support/records.ts'
import { type Person, resetForm, tokenOf } from '../support/person.ts'
import { padding, type RangeAnswer, type RangeServer, startRangeServer } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'
import { words } from '../support/words.ts'

const GOOD = 'seven mild onions'
const LEAKED = 'leaked yesterday, and long'
const COMMON = 'password_blocklist'

const faultOf = ({ text }: Answer) =>
  decodeEntities(/(?<=class="hint fault"[^>]*>)[^<]+/.exec(text)?.[0] ?? '')
const saying = (mode: string) => words[`reset-password.${mode}.refusal`]

onEachStore('A new password that everybody can guess (PWD-11)', (technology) => {
  const h = suiteHarness({
    technology,
    settings: { [COMMON]: 'common' },
    flows: { brand: { name: 'Acme Tools' } },
  })

  const refused = ({ username, email = '' }: Person): Record<string, string[]> => ({
    password_common: ['qwerty123456', 'QWERTY123456', ' passwordpassword '],
    password_personal: [
      `${username}!2026`,
      email,
      `${email.split('@')[0]}1234`,
      'acme tools',
      'ToolsAcme2026',
      '127.0.0.1!',
    ],
  })

  it('is refused with the reason, and leaves the token unspent: then an honest one is set', async () => {
    const { user, link } = await h.userWithLink()
    for (const [mode, passwords] of Object.entries(refused(user))) {
      for (const password of passwords) {
        const answer = await h.reset(link, password)
        expectPage(answer, 400, 'reset-password', mode)
        expect(faultOf(answer), password).to.equal(saying(mode))
        expect(answer.hidden).to.include({ token: tokenOf(link) })
        expect(answer.text).not.to.include(`value="${password}"`)
      }
    }
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(user.events('password_reset_completed')).to.deep.equal([])
    expect((await h.reset(link, GOOD)).mode).to.equal('done')
    expect(await user.hasPassword(GOOD)).to.equal(true)
    expect(await dump(h)).not.to.include(GOOD)
  })

  it('may be the one in force, which costs no more than another one does, and no link, and ends all sessions (PWD-13)', async () => {
    const { user, link } = await h.userWithLink()
    await user.signsIn()
    const work = await bcryptWork(async () => {
      expectPage(await h.reset(link, PASSWORD), 200, 'reset-password', 'done')
    })
    expect(work).to.deep.equal(['bcrypt:SaltAsyncWorker', 'bcrypt:EncryptAsyncWorker'])
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(await user.account()).to.equal(undefined)
    expectPage(await h.reset(link, GOOD), 400, 'reset-password', 'invalid')
  })

  it('is told where it differs from its confirmation, as a mismatch alone', async () => {
    const { user } = await h.userWithLink()
    for (const [password, confirm, mode] of [
      ['qwerty123456', GOOD, 'password_mismatch'],
      ['qwerty', 'qwerty', 'password_too_short'],
    ] as const) {
      const answer = await user.choosesPassword(password, user.link, confirm)
      expectPage(answer, 400, 'reset-password', mode)
    }
  })

  it('tells nothing of an account that the link is no longer for (PWD-17)', async () => {
    for (const isPersonal of [true, false]) {
      const { user, link } = await h.userWithLink()
      const next = `${user.username}-moved`
      await user.becomes({ email: `${next}@users.example`, username: next })
      const answer = await h.reset(link, isPersonal ? `${next}!` : PASSWORD)
      expectPage(answer, 400, 'reset-password', 'invalid')
      expect(await user.hasPassword(PASSWORD)).to.equal(true)
    }
  })
})

describe('password_blocklist pwned', () => {
  const logged: string[] = []
  let ranges: RangeServer
  const h = suiteHarness({
    flows: { log: (...line) => logged.push(JSON.stringify(line)) },
  })
  let user: Person
  let link: string

  before(async () => {
    ranges = await startRangeServer([LEAKED])
    await h.put({ [COMMON]: 'pwned', password_range_url: ranges.url })
  })
  after(() => ranges.close())
  beforeEach(async () => {
    await moveTime(60_000)
    ;({ user, link } = await h.userWithLink())
    ranges.answer = undefined
    ranges.asked.length = 0
    logged.length = 0
  })

  const warnings = () => logged.filter((line) => line.includes('range service'))

  it('refuses what was leaked, and tells the service five digits of a hash and nothing else (PWD-18)', async () => {
    expectPage(await h.reset(link, LEAKED), 400, 'reset-password', 'password_common')
    const [request, ...others] = ranges.asked
    expect(others).to.deep.equal([])
    expect(request?.method).to.equal('GET')
    expect(request?.url).to.match(/^\/range\/[0-9A-F]{5}$/)
    expect(request?.headers).to.include({
      'add-padding': 'true',
      'user-agent': 'oidc-account-flows',
    })
    expect(request?.headers).not.to.have.any.keys('cookie', 'referer', 'authorization')
    expect((await h.reset(link, GOOD)).mode).to.equal('done')
    expect(await user.hasPassword(GOOD)).to.equal(true)
    expect(warnings()).to.deep.equal([])
  })

  it('asks about no password that is refused already', async () => {
    for (const password of ['short', 'qwerty123456', `${user.username}1`])
      await h.reset(link, password)
    expect(ranges.asked).to.deep.equal([])
  })

  /** What must not count as a leak: the list judges alone. The log says so, unless the answer is a good one. */
  const failing: Record<string, [RangeAnswer, isTold: boolean]> = {
    'pads its answer with the very hash, seen 0 times': [
      (_req, res, rest) => res.end([`${rest}:0`, ...padding()].join('\n')),
      false,
    ],
    'answers lines that are none': [
      (_req, res, rest) => res.end(`${rest}\n${rest}:\n${rest}:-1\n${rest}:x\n<p>${rest}:9</p>`),
      true,
    ],
    'answers nothing': [(_req, res) => res.end(), true],
    'answers 500 with the hash': [(_req, res, rest) => res.writeHead(500).end(`${rest}:9`), true],
    redirects: [(_req, res) => res.writeHead(302, { location: `${ranges.url}AAAAA` }).end(), true],
    'hangs up': [(req) => req.socket.destroy(), true],
    'answers 10 MB': [(_req, res, rest) => res.end(`${'x'.repeat(10_000_000)}\n${rest}:9`), true],
  }
  for (const [what, [answer, isTold]] of Object.entries(failing)) {
    it(`takes the answer of the list where the service ${what} (PWD-19)`, async () => {
      ranges.answer = answer
      expectPage(await h.reset(link, 'qwerty123456'), 400, 'reset-password', 'password_common')
      expect((await h.reset(link, LEAKED)).mode).to.equal('done')
      expect(await user.hasPassword(LEAKED)).to.equal(true)
      expect(ranges.asked).to.have.length(1)
      expect(warnings()).to.have.length(isTold ? 1 : 0)
    })
  }

  it('waits one second, and tells once a minute that the service is down: never what was asked', async () => {
    ranges.answer = () => {}
    for (const password of [LEAKED, GOOD]) {
      const before = ranges.asked.length
      const answer = h.reset(link, password)
      await eventually('the service is asked', () => ranges.asked.length > before)
      await moveTime(1_000)
      expect((await answer).mode).to.equal('done')
      link = await user.forgets()
    }
    expect(warnings()).to.have.length(1)
    for (const { url = '' } of ranges.asked) expect(logged.join()).not.to.include(url.slice(-5))
  })

  it('waits no longer where the answer comes in drops', async () => {
    ranges.answer = (_req, res) => res.write(`${'A'.repeat(35)}:1\n`)
    const answer = h.reset(link, GOOD)
    await eventually('the service is asked', () => ranges.asked.length === 1)
    await moveTime(1_000)
    expect((await answer).mode).to.equal('done')
  })
})

describe('validatePassword: a judgement of the host’s own', () => {
  const logged: string[] = []
  const asked: [string, User][] = []
  let validate: (password: string) => unknown = () => undefined
  const h = suiteHarness({
    flows: {
      log: (...line) => logged.push(JSON.stringify(line)),
      validatePassword(password, user) {
        asked.push([password, user])
        return validate(password) as ReturnType<ValidatePassword>
      },
    },
  })
  let user: Person
  let link: string

  beforeEach(async () => {
    ;({ user, link } = await h.userWithLink())
    validate = () => undefined
    asked.length = 0
    logged.length = 0
  })
  afterEach(async () => {
    validate = () => undefined
    expect((await h.reset(link, GOOD)).mode).to.equal('done')
    expect(await user.hasPassword(GOOD)).to.equal(true)
  })

  const refusing = async (headers: Record<string, string> = {}) => {
    const form = resetForm(link, LEAKED)
    const answer = await createUserAgent().post(`${h.oauthUrl}/reset-password`, form, headers)
    expectPage(answer, 400, 'reset-password', 'password_host')
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    return faultOf(answer)
  }

  it('is asked once for a good password, with the account, also with the blocklist off', async () => {
    await h.reset(link, 'short')
    expect(asked).to.deep.equal([])
    validate = () => ({ reason: 'No <b>vegetables</b>.' })
    expect(await refusing()).to.equal('No <b>vegetables</b>.')
    expect(asked.map(([password, { id }]) => [password, id])).to.deep.equal([[LEAKED, user.id]])
  })

  it('may be slow, and word its reason in several languages: the one of the page is shown', async () => {
    validate = async () => ({ reason: { en: 'No vegetables.', de: 'Kein Gemüse.' } })
    expect(await refusing()).to.equal('No vegetables.')
    expect(await refusing({ 'accept-language': 'de-AT' })).to.equal('Kein Gemüse.')
    expect(await refusing({ 'accept-language': 'fr' })).to.equal('No vegetables.')
    validate = () => ({ reason: { fr: 'Pas de légumes.' } })
    expect(await refusing()).to.equal('Pas de légumes.')
    validate = () => ({ reason: '' })
    expect(await refusing()).to.equal(saying('password_host'))
    validate = () => ({ reason: 'x'.repeat(1_000) })
    expect(await refusing()).to.equal('x'.repeat(300))
  })

  const failures: Record<string, () => unknown> = {
    throws: () => {
      throw new TypeError(`what about ${LEAKED}?`)
    },
    rejects: () => Promise.reject(new Error(LEAKED)),
    'answers no reason': () => ({}),
    'answers true': () => true,
    'answers null': () => null,
    'answers a list': () => ({ reason: [] }),
  }
  for (const [what, failure] of Object.entries(failures)) {
    it(`that ${what} sets no password: the page says to try again, and the log not what was typed (PWD-20)`, async () => {
      validate = failure
      expectUnavailable(await h.reset(link, LEAKED))
      expect(await user.hasPassword(PASSWORD)).to.equal(true)
      const told = logged.filter((line) => line.includes('ERR_VALIDATOR_FAILED'))
      expect(told).to.have.length(1)
      expect(told[0])
        .to.match(/^\["error"/)
        .and.not.include(LEAKED)
    })
  }

  it('has two seconds', async () => {
    validate = () => new Promise(() => {})
    const answer = h.reset(link, LEAKED)
    await eventually('the host is asked', () => asked.length === 1)
    await moveTime(2_000)
    expectUnavailable(await answer)
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
  })
})

describe('flows.validatePassword', () => {
  let reason: string | undefined
  const h = suiteHarness({
    flows: { validatePassword: () => (reason === undefined ? undefined : { reason }) },
  })

  it('judges for pages of the host as the forms do', async () => {
    const user = await h.addUser({ username: 'petra' })
    const validated = (password: string) => h.flows.validatePassword(password, user)
    expect(await validated('short')).to.deep.equal({ refusal: 'password_too_short' })
    expect(await validated('x'.repeat(66))).to.deep.equal({
      refusal: 'password_too_long',
      excess: 2,
    })
    expect(await validated('long enough\0')).to.deep.equal({ refusal: 'password_invalid' })
    for (const password of ['qwerty123456', 'petra2026', PASSWORD])
      expect(await validated(password)).to.equal(undefined)
    await h.put({ [COMMON]: 'common' })
    expect(await validated('qwerty123456')).to.deep.equal({ refusal: 'password_common' })
    expect(await validated('petra2026')).to.deep.equal({ refusal: 'password_personal' })
    expect(await validated(PASSWORD)).to.deep.equal({ refusal: 'password_current' })
    const first = { ...user, passwordHash: undefined }
    expect(await h.flows.validatePassword(PASSWORD, first)).to.equal(undefined)
    reason = 'No.'
    expect(await validated(GOOD)).to.deep.equal({ refusal: 'password_host', reason })
    reason = undefined
    expect(await validated(GOOD)).to.equal(undefined)
  })
})
