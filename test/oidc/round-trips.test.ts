import { expect } from 'chai'
import { addVerified } from '../support/blocked-login.ts'
import { PASSWORD } from '../support/harness.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const OURS = new Set(['users', 'session_cutoffs'])

describeWithMongo('What a login costs beside what the provider asks of MongoDB', () => {
  let commands: string[] = []
  const h = suiteHarness(async () => ({
    database: await freshDatabase('standalone', ({ commandName, command }) => {
      const collection = String(command[commandName])
      if (OURS.has(collection)) commands.push(`${commandName} ${collection}`)
    }),
    settings: { require_email_verification: 'true' },
  }))

  async function costOf<T>(work: () => Promise<T>): Promise<[answer: T, commands: string[]]> {
    commands = []
    const answer = await work()
    return [answer, commands.toSorted()]
  }

  it('is one read of the cut-offs a request, one of the account where it must be verified, and no write', async () => {
    const [user, agent] = [await addVerified(h), createUserAgent()]
    const request = await h.party.begin()
    const [page, opening] = await costOf(async () => h.follow(agent, await agent.get(request.url)))
    expect(opening).to.deep.equal([])
    const form = { username: user.username, password: PASSWORD }
    const [posted, posting] = await costOf(() => agent.post(page.url, form))
    // One read of the user is the host's, at each step from here.
    expect(posting).to.deep.equal(['find session_cutoffs', 'find users'])
    const [back, resuming] = await costOf(() => agent.get(posted.location ?? ''))
    expect(resuming).to.deep.equal(['find session_cutoffs', 'find users', 'find users'])
    const [, exchanging] = await costOf(() => h.party.exchange(request, back.location ?? ''))
    expect(exchanging).to.deep.equal(['find session_cutoffs', 'find users'])
  })
})
