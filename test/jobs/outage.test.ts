import { expect } from 'chai'
import { endOf } from '../../src/store/tokens.ts'
import { eventually } from '../support/eventually.ts'
import { suiteHarness } from '../support/harness.ts'
import { startMailServer, type ReceivedMail } from '../support/mail-server.ts'
import { codeIn, type Person } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

const ROUNDS = 10
const ROUND_MS = 60_000

const nameOf = ({ kind, to, mail }: ReceivedMail) =>
  `${kind} ${to.join()}${codeIn(mail) === undefined ? '' : ' of a login'}`

describe('The mail server is away for ten minutes, and comes back [full]', () => {
  // Time moves while jobs are under way, which then fail, and are tried again.
  const h = suiteHarness({ mayLogErrors: true })
  const people = (count: number, add: () => Promise<Person>) =>
    Promise.all(Array.from({ length: count }, add))
  const modeOf = async (link: string | undefined) => (await createUserAgent().get(link ?? '')).mode

  it('sends each owed mail once, and no other, with the one link of its account that works (FLT-01)', async function () {
    const [verified, bystanders] = [await people(12, h.addVerified), await people(2, h.addVerified)]
    const unverified = await people(6, h.addUnverified)
    for (const person of [...verified.slice(0, 4), ...bystanders]) await person.forgets()
    await h.isIdle()
    const { port } = h.mail
    const before = h.mail.mails.length
    await h.mail.close()

    const owed = new Set([
      ...verified.map(({ email }) => `password_reset ${email}`),
      ...unverified.map(({ email }) => `email_verification ${email}`),
    ])
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [index, { username, email = '' }] of verified.entries())
        await h.forgot((index + round) % 2 === 0 ? username : email)
      for (const { username, email = '' } of unverified) {
        await h.resend(username)
        await h.forgot(email)
      }
      for (const nobody of [`nobody-${round}`, verified[round]?.username ?? ''])
        await h.resend(nobody)
      await h.forgot(`nobody-${round}@example.com`)
      await moveTime(ROUND_MS)
    }
    // Each login that waits is owed a mail with its own code.
    for (const login of unverified.slice(0, 2)) {
      expect((await login.signsIn()).mode).to.equal('blocked')
      owed.add(`email_verification ${login.email} of a login`)
    }
    for (const { link } of verified.slice(0, 4))
      await eventually('the earlier link is dead', async () => (await modeOf(link)) === 'invalid')

    const mails = h.mail.mails.slice(before)
    expect(mails).to.deep.equal([])
    const arrived = await startMailServer({ port })
    Object.assign(h.mail, arrived)
    await eventually('every owed mail arrives', async () => {
      await moveTime(1_000)
      return [...owed].every((name) => arrived.mails.map(nameOf).includes(name))
    })
    await h.isIdle()
    expect(arrived.mails.map(nameOf).toSorted()).to.deep.equal([...owed].toSorted())
    for (const user of verified) {
      expect(await modeOf((await user.mail(1)).link)).to.equal('form')
      const tokens = await h.store.resetTokens.ofUser(user.id, 99)
      expect(tokens.filter((token) => !endOf(token, new Date()))).to.have.length(1)
    }
    for (const { link } of verified.slice(0, 4)) expect(await modeOf(link)).to.equal('invalid')
    for (const { link } of bystanders) expect(await modeOf(link)).to.equal('form')
    await verified[0]?.getsBackIn()
  })
})
