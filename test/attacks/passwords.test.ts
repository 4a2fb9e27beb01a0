import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { bcryptWork } from '../support/bcrypt-work.ts'
import { PASSWORD, suiteHarness } from '../support/harness.ts'
import { dump } from '../support/records.ts'
import { type Person, tokenOf } from '../support/person.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

describe('New passwords under attack (PWD)', () => {
  const agent = createUserAgent()
  const logged: string[] = []
  const h = suiteHarness({ flows: { log: (...line) => logged.push(JSON.stringify(line)) } })
  let ann: Person
  let link: string

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
    link = await ann.forgets()
  })

  const post = (form: Form) => agent.post(`${h.oauthUrl}/reset-password`, form)
  const forms = (password: string, confirm_password = password) => ({
    token: tokenOf(link),
    password,
    confirm_password,
  })

  it('cost nothing without a genuine token, nor while they are refused (PWD-07, PWD-08)', async () => {
    const refused = [
      { ...forms('long enough'), token: 'A'.repeat(43) },
      { ...forms('long enough'), token: 'not a token' },
      forms('short'),
      forms('x'.repeat(65)),
      forms('x'.repeat(60_000)),
      forms('x'.repeat(1_000_000)),
      forms('long enough', 'another one'),
      forms('long enough\0'),
    ]
    const tenTimes = Array.from({ length: 10 }, () => refused).flat()
    const work = await bcryptWork(async () => {
      for (const { status } of await Promise.all(tenTimes.map(post)))
        expect(status).to.be.oneOf([400, 413])
    })
    expect(work).to.deep.equal([])
    const accepted = await bcryptWork(async () => {
      expect((await post(forms(PASSWORD))).mode).to.equal('done')
    })
    expect(accepted).not.to.deep.equal([])
  })

  it('must be confirmed by one equal string, and nothing that is only taken for equal (PWD-10)', async () => {
    link = await ann.forgets()
    const token = `token=${tokenOf(link)}`
    for (const confirmation of [
      '',
      '&confirm_password=',
      '&confirm_password[]=12345678',
      '&confirm_password=12345678&confirm_password=12345678',
      '&confirm_password=012345678',
      '&confirm_password=12345678.0',
      '&confirm_password=1.2345678e7',
      '&confirm_password=12345678%20',
      '&confirm_password=%EF%BC%912345678',
      '&Confirm_Password=12345678',
      '&confirm_password%00=12345678',
    ]) {
      const answer = await post(`${token}&password=12345678${confirmation}`)
      expect(answer.status, confirmation).to.equal(400)
      expect(await ann.hasPassword('12345678'), confirmation).to.equal(false)
    }
    expect((await agent.get(link)).mode).to.equal('form')
  })

  it('are never trimmed, folded or normalized: what was typed signs in, and nothing like it (PWD-05, PWD-06)', async () => {
    const passwords = [
      ['  two  spaces  ', 'two  spaces', '  two spaces  '],
      ['Gro\u00DF und klein', 'gro\u00DF und klein', 'GROSS UND KLEIN'],
      ['caf\u00E9 caf\u00E9', 'cafe\u0301 cafe\u0301', 'cafe cafe'],
      ['cafe\u0301 cafe\u0301', 'caf\u00E9 caf\u00E9', 'cafe cafe'],
      ['\uFF41\uFB01\u2460 wide', 'afi1 wide', '\uFF41\uFB01\u2461 wide'],
      ['🔑'.repeat(18), `${'🔑'.repeat(17)}🔒`, '🔑'.repeat(17)],
      ['a+b&c=d%20"<é', 'a b&c=d%20"<é', 'a+b&c=d "<é'],
    ] as const
    for (const [password, ...others] of passwords) {
      link = await ann.forgets()
      expect((await post(forms(password))).mode, password).to.equal('done')
      // As the host does it: what was typed, as it was typed.
      expect(await ann.hasPassword(password)).to.equal(true)
      for (const other of others) expect(await ann.hasPassword(other), other).to.equal(false)
    }
  })

  for (const prefix of ['$2y$', '$argon2id$']) {
    it(`take the place of a hash ${prefix} by one of ours, which signs in (PWD-12)`, async () => {
      const passwordHash = `${prefix}${(await bcrypt.hash(PASSWORD, 4)).slice(4)}`
      const user = await h.addVerified({ passwordHash })
      await user.getsBackIn()
      expect((await h.users.findById(user.id))?.passwordHash).to.match(/^\$2b\$04\$/)
      expect((await user.signsIn('an honest password')).location).to.include('code=')
    })
  }

  it('are in no page, no log, no audit and no record (PWD-15)', async () => {
    const canary = 'canary-of-a-password'
    link = await ann.forgets()
    const answers = [
      await post(forms(canary, `${canary}-other`)),
      await post(forms(`${canary}\0`)),
      await post(forms(canary.repeat(4))),
      await post({ ...forms(canary), token: 'A'.repeat(43) }),
      await post(forms(canary)),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal([400, 400, 400, 400, 200])
    expect(await ann.hasPassword(canary)).to.equal(true)
    const texts = answers.map(({ text, headers }) => text + JSON.stringify([...headers]))
    const everything = [...texts, ...logged, await dump(h), JSON.stringify(h.mail.mails)]
    for (const text of everything) expect(text).not.to.include(canary)
  })
})
