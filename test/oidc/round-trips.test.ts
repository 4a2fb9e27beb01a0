import { expect } from 'chai'
import { PASSWORD } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { addVerified } from '../support/person.ts'

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

describeWithMongo('What an end costs, where the provider tells no clients', () => {
  let commands: string[] = []
  const h = suiteHarness(async () => ({
    database: await freshDatabase('standalone', ({ commandName, command }) => {
      commands.push(`${commandName} ${String(command[commandName])}`)
    }),
  }))

  it('is one look for the records of each kind, and nothing about clients', async () => {
    const user = await addVerified(h)
    await h.signIn(createUserAgent(), user.username)
    await isIdle(h)
    commands = []
    await h.flows.endSessions(user.id)
    const counted = commands.filter((each) => !/ (mail_outbox|settings|key_rings)$/.test(each))
    const looks = counted.filter((each) => each.startsWith('find '))
    expect(looks.toSorted()).to.deep.equal([
      'find access_token',
      'find authorization_code',
      'find backchannel_authentication_request',
      'find device_code',
      'find grant',
      'find interaction',
      'find pre_authorized_code',
      'find refresh_token',
      'find session',
    ])
    expect(counted.filter((each) => each.includes('client'))).to.deep.equal([])
  })
})
