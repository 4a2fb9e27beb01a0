import { randomInt } from 'node:crypto'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { type ExampleServer, forgot, opensForm } from '../support/example-server.ts'
import { several } from './load.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import type { MongoCommand } from '../support/mongo-proxy.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { codeIn, codeOn } from '../support/person.ts'
import { createRelyingParty, followWithin, type RelyingParty } from '../support/relying-party.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import {
  addPerson,
  countEvents,
  hasCode,
  isSignedIn,
  isVerified,
  mailed,
  postLogin,
  type Person,
} from './people.ts'
import { itTakesTurns } from './taking-turns.ts'
import { scaled, startService, suiteService } from './servers.ts'

describeWithMongo('Two processes on one database', function (this: Mocha.Suite) {
  this.timeout(scaled({ full: 300_000, short: 120_000 }))

  const at = suiteService({ isDirect: true })
  let second: ExampleServer
  before(async () => {
    // It reads at its start what the first was told.
    second = await at.another({ BASE_URL: undefined })
  })

  itTakesTurns(at, () => second)
})

/** Longer than the lease of a mail that is being sent, and the time until somebody looks. */
const TAKEN_OVER_WITHIN_MS = 90_000

interface Pause {
  title: string
  isReached(command: MongoCommand): boolean
}

const PAUSES: Pause[] = [
  {
    title: 'while it looks the account up',
    isReached: ({ name, collection, body }) =>
      name === 'insert' &&
      collection === 'audit_events' &&
      JSON.stringify(body).includes('requested:'),
  },
  {
    title: 'before it stores the token',
    isReached: ({ name, collection }) => name === 'find' && collection === 'password_reset_tokens',
  },
]

describeWithMongo('A worker that is paused for longer than its lease', () => {
  for (const { title, isReached } of scaled({ full: PAUSES, short: PAUSES.slice(0, 1) })) {
    it(`undoes nothing of what another one did meanwhile, paused ${title}`, async function () {
      this.timeout(2 * TAKEN_OVER_WITHIN_MS)
      const at = await startService()
      const { mail, proxy, server: paused } = at
      try {
        const person = await addPerson(at)
        let isPaused = false
        const stopWatching = proxy.watch({
          reply(command) {
            if (isPaused || !isReached(command)) return
            isPaused = true
            paused.signal('SIGSTOP')
          },
        })
        await forgot(at, person.username)
        await eventually('the worker is paused', () => isPaused)
        stopWatching()
        const other = await at.another()
        const { link } = await eventually(
          'the other worker sends the mail',
          () => mail.mails[0],
          TAKEN_OVER_WITHIN_MS,
        )
        const atOther = link.replace(at.baseUrl, other.baseUrl)
        expect(await opensForm(atOther)).to.equal(true)
        const outbox = at.database.db.collection('mail_outbox')
        await eventually('the job is over', async () => (await outbox.countDocuments()) === 0)

        paused.signal('SIGCONT')
        await eventually('it goes on', async () => (await fetch(at.baseUrl)).ok)
        // What it had begun is at its end.
        expect(await paused.stop()).to.equal(0)
        expect(await opensForm(atOther)).to.equal(true)
        expect(mail.mails).to.have.length(1)
        expect(await outbox.countDocuments()).to.equal(0)
        expect(await countEvents(at, person, 'password_reset_mail_failed')).to.equal(0)
      } finally {
        paused.signal('SIGCONT')
        await at.close()
      }
    })
  }
})

const OWNERS = scaled({ full: 300, short: 30 })
const AT_ONCE = 3
const OWN_CLIENT = {
  client_id: 'own',
  client_name: 'The App of the Owner',
  redirect_uris: ['https://own.example/callback'],
  token_endpoint_auth_method: 'none',
} as const

/** What the owner has: the page that waits in her browser, her own mail, and the newest one, whose ever it is. */
interface Owner {
  agent: UserAgent
  goesOn(form: Record<string, string>): Promise<Answer>
  code: string
  link: string
  newest: string
}

/** How she verifies, and how often each login is guessed at before. From 20 on no code of her mailbox is compared. */
const WAYS: { guesses: number; verify(owner: Owner): Promise<Answer> }[] = [
  { guesses: 1, verify: ({ goesOn, code }) => goesOn({ code }) },
  { guesses: 4, verify: ({ agent, link }) => agent.get(link) },
  { guesses: 2, verify: ({ agent, newest }) => agent.get(newest) },
]

/** A login of the attacker, in a browser of its own. */
interface Attack {
  agent: UserAgent
  answer: Answer
}

describeWithMongo('A stranger who waits at two processes for the owner of the mailbox', () => {
  const at = suiteService({
    settings: { require_email_verification: 'true', email_link_confirmation: 'other_browser' },
    clients: [OWN_CLIENT],
    isDirect: true,
  })
  let second: ExampleServer
  let own: RelyingParty
  const counts = { owners: 0, logins: 0, after: 0, requests: 0 }

  before(async () => {
    second = await at.another()
    const { client_id: clientId, redirect_uris: uris } = OWN_CLIENT
    own = await createRelyingParty(at.oauthUrl, { clientId, redirectUri: uris[0] })
  })

  /** A browser whose requests go to the two processes in turn. */
  function browser(): UserAgent {
    const agent = createUserAgent()
    const { baseUrl: origin } = at
    const { baseUrl: other } = second
    const sent = async (ask: (to: (url: string | URL) => string) => Promise<Answer>) => {
      counts.requests += 1
      const process = counts.requests % 2 === 0 ? origin : other
      const answer = await ask((url) => String(url).replace(origin, process))
      return { ...answer, location: answer.location?.replace(other, origin) }
    }
    return {
      ...agent,
      get: (url, headers) => sent((to) => agent.get(to(url), headers)),
      post: (url, form, headers) => sent((to) => agent.post(to(url), form, headers)),
    }
  }

  const follow = (agent: UserAgent, answer: Answer) => followWithin(agent, at.oauthUrl, answer)
  /** The page that waits, and where it goes on. */
  function waitingOf({ agent, answer }: Attack) {
    const url = `${at.oauthUrl}/verify-email/waiting`
    const login = answer.hidden['login'] ?? ''
    return {
      reloads: () => agent.get(`${url}?login=${login}`),
      goesOn: (form: Record<string, string> = {}) => agent.post(url, { login, ...form }),
    }
  }

  const mailsTo = ({ email }: Person) => at.mail.mails.filter(({ to }) => to.includes(email))

  async function attack(person: Person): Promise<Attack> {
    counts.logins += 1
    const agent = browser()
    const { answer } = await postLogin(at, { ...person, agent })
    return { agent, answer: await follow(agent, answer) }
  }

  /** All that he can do with logins that wait, at once; answers where it led. */
  async function strike(person: Person, waiting: Attack[], guesses: number): Promise<string[]> {
    const known = new Set(mailsTo(person).map((each) => codeIn(each.mail)))
    const resendUrl = `${at.oauthUrl}/resend-verification`
    const asked = waiting.flatMap((each, place) => {
      const { agent, answer } = each
      const { goesOn, reloads } = waitingOf(each)
      const wrong = Array.from({ length: guesses }, () => {
        let code = ''
        do code = String(randomInt(1_000_000)).padStart(6, '0')
        while (known.has(code))
        return goesOn({ code })
      })
      const resent = place === 0 ? [agent.post(resendUrl, answer.hidden)] : []
      return [goesOn(), ...wrong, reloads(), goesOn({ code: ' ' }), ...resent].map(
        async (request) => (await follow(agent, await request)).location,
      )
    })
    return (await Promise.all(asked)).filter((location) => location !== undefined)
  }

  const expectWaiting = (logins: Attack[]) =>
    expect(logins.map((each) => `${each.answer.status} ${each.answer.mode}`)).to.deep.equal(
      logins.map(() => '200 blocked'),
    )

  async function round(index: number): Promise<string[]> {
    const { guesses, verify } = WAYS[index % WAYS.length] as (typeof WAYS)[number]
    const owner = { ...(await addPerson(at, false)), agent: browser() }
    const attacks = (count: number) =>
      Promise.all(Array.from({ length: count }, () => attack(owner)))

    const waiting = await attacks(3)
    const [{ request, answer }, more] = await Promise.all([
      postLogin({ ...at, party: own }, owner),
      attacks(2),
    ])
    waiting.push(...more)
    expectWaiting([...waiting, { agent: owner.agent, answer }])
    await mailed(at, owner)
    const isHers = ({ mail: { text } }: ReceivedMail) => text?.includes(OWN_CLIENT.client_name)
    const hers = await eventually('her mail', () => mailsTo(owner).find(isHers))
    const mails = mailsTo(owner)

    // Before she confirms: she opens every link on her telephone.
    const telephone = browser()
    const [early, inFlight, ...opened] = await Promise.all([
      strike(owner, waiting, guesses),
      attacks(2),
      ...mails.map(({ link }) => telephone.get(link)),
    ])
    waiting.push(...inFlight)
    expectWaiting(inFlight)
    expect(opened.map(codeOn)).to.deep.equal(mails.map((each) => codeIn(each.mail)))
    expect(await isVerified(at, owner)).to.equal(false)

    const { goesOn } = waitingOf({ agent: owner.agent, answer })
    const code = codeIn(hers.mail) ?? ''
    const newest = mailsTo(owner).at(-1)?.link ?? ''
    const [done, inTheMoment, last] = await Promise.all([
      verify({ agent: owner.agent, goesOn, code, link: hers.link, newest }),
      strike(owner, waiting, guesses),
      attacks(2),
    ])
    expect(await isVerified(at, owner), done.text).to.equal(true)
    // A login whose password is checked once the address is verified signs in, as any with the right password.
    const late = last.filter((each) => !hasCode(each.answer.location ?? ''))
    counts.after += last.length - late.length
    waiting.push(...late)
    const afterwards = await strike(owner, waiting, guesses)

    const tokens = await own.exchange(request, done.location ?? '')
    expect(tokens.claims()?.sub).to.equal(owner.id)
    expect(await isSignedIn(at, owner)).to.equal(true)
    counts.owners += 1
    const sessions = []
    for (const each of waiting) if (await isSignedIn(at, each)) sessions.push('a session')
    return [...early, ...inTheMoment, ...afterwards, ...sessions]
  }

  it(`has no code of a client and no session in ${OWNERS} rounds, and each owner signs in (VER-26)`, async function () {
    this.timeout(scaled({ full: 1_800_000, short: 240_000 }))
    const startedAt = performance.now()
    const rounds = Array.from({ length: OWNERS }, (_, index) => index)
    const taken = (await several(rounds, AT_ONCE, round)).flat()
    const seconds = (performance.now() - startedAt) / 1000
    console.log(
      `takeover: rounds ${OWNERS}, owners signed in ${counts.owners}, logins of the attacker ${counts.logins} ` +
        `(${counts.after} began once the owner had verified), requests at two processes ${counts.requests}, ` +
        `codes and sessions taken ${taken.length}, in ${seconds.toFixed(1)} s`,
    )
    expect(taken).to.deep.equal([])
  })
})
