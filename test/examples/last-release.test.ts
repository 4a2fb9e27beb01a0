import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { secondAfter } from '../../src/ports/login-end.ts'
import { eventually } from '../support/eventually.ts'
import {
  addAccounts,
  forgot,
  PASSWORD,
  putSettings,
  resend,
  resetPassword,
  smtpSettings,
} from '../support/example-requests.ts'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'
import { HOW_TO_GET_IT, lastRelease } from '../support/last-release.ts'
import { startMailServer, type MailServer } from '../support/mail-server.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { followWithin } from '../support/relying-party.ts'
import { leaveOutAnywhere } from '../support/setup-advice.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { windowNamed } from '../support/waiting-window.ts'

type Version = 'the last release' | 'this version'

const VERSIONS: Version[] = ['the last release', 'this version']
const PAIRS = [VERSIONS, VERSIONS.toReversed()] as [by: Version, at: Version][]
const CALLBACK = 'https://app.example/callback'
const CLIENT = { client_id: 'app', client_secret: 'a secret', redirect_uris: [CALLBACK] }
const LOGIN = { username: 'mailer', password: 'S3cr3t of the mail server' }
const NEW_PASSWORD = 'a brand new password'

interface Both {
  servers: Record<Version, ExampleServer>
  mail: MailServer
  database: FreshDatabase
}

/** Where the first try fails. */
const deferred = new Set<string>()

/** Two processes on one database, of one base URL, with the mails of both. */
function suiteOfBoth(): Both {
  const file = suiteFolder()
  const servers = {} as Record<Version, ExampleServer>
  const ends: (() => Promise<unknown>)[] = []
  const both = { servers } as Both

  before(async function () {
    this.timeout(180_000)
    const command = lastRelease()
    if (command === undefined) leaveOutAnywhere(this, HOW_TO_GET_IT)
    const database = await freshDatabase()
    ends.unshift(database.drop)
    const answer = (to: string) => (deferred.delete(to) ? ('defer' as const) : ('take' as const))
    const mail = await startMailServer({ login: LOGIN, answer })
    ends.unshift(() => mail.close())
    await writeFile(file('seed.json'), JSON.stringify({ users: [], clients: [CLIENT] }))
    const shared = { MONGODB_URI: database.uri, SEED_FILE: file('seed.json') }

    const old = await startExampleServer(shared, command)
    ends.unshift(old.kill)
    const settings = { smtp_username: LOGIN.username, smtp_password: LOGIN.password }
    await putSettings(old, { ...smtpSettings(mail.port), ...settings })
    await putSettings(old, { require_email_verification: 'true' })
    // What the last release cannot read is written once it is gone.
    const variables = { ...shared, BASE_URL: old.baseUrl, RECORDS: 'clear' }
    const next = await startExampleServer(variables)
    ends.unshift(next.kill)
    Object.assign(both, { mail, database })
    servers['the last release'] = old
    servers['this version'] = { ...next, baseUrl: `http://localhost:${next.port}` }
  })

  after(async () => {
    for (const end of ends) await end()
  })
  return both
}

describeWithMongo(
  'This version beside the last release, on one database [full]',
  function (this: Mocha.Suite) {
    this.timeout(60_000)
    const both = suiteOfBoth()
    const { servers } = both

    /** While the other one stands still. */
    async function alone<T>(
      version: Version,
      work: (server: ExampleServer) => Promise<T>,
    ): Promise<T> {
      const others = VERSIONS.filter((other) => other !== version).map((other) => servers[other])
      for (const other of others) other.signal('SIGSTOP')
      try {
        return await work(servers[version])
      } finally {
        for (const other of others) other.signal('SIGCONT')
      }
    }

    /** The address in a mail, which names the one base URL of both. */
    const linkAt = (link: string, version: Version) =>
      link.replace(servers['the last release'].baseUrl, servers[version].baseUrl)

    let named = 0
    async function addAccount(verified = true) {
      named += 1
      const [account] = await addAccounts(both.database.db, `person${named}`, 1, { verified })
      return account ?? expect.fail()
    }

    function begin(version: Version, agent: UserAgent, extra: Record<string, string> = {}) {
      const { baseUrl } = servers[version]
      const query = { client_id: 'app', response_type: 'code', scope: 'openid', state: 'the-state' }
      const request = new URLSearchParams({ ...query, redirect_uri: CALLBACK, ...extra })
      return follow(version, agent, agent.get(`${baseUrl}/oauth2/auth?${request}`))
    }

    const follow = async (version: Version, agent: UserAgent, answer: Promise<Answer>) =>
      followWithin(agent, servers[version].baseUrl, await answer)

    async function signIn(
      version: Version,
      agent: UserAgent,
      username: string,
      password = PASSWORD,
    ) {
      const page = await begin(version, agent)
      expect(page.page, page.location).to.equal('login')
      const url = `${servers[version].baseUrl}/oauth2/login`
      return follow(version, agent, agent.post(url, { ...page.hidden, username, password }))
    }

    const silently = async (version: Version, agent: UserAgent) =>
      new URL((await begin(version, agent, { prompt: 'none' })).location ?? '').searchParams

    /** Back at the client, with a code that is good for tokens. */
    async function expectTokens(version: Version, { location = 'none:' }: Answer) {
      const { searchParams, origin } = new URL(location)
      expect(origin).to.equal(new URL(CALLBACK).origin)
      expect(searchParams.get('state')).to.equal('the-state')
      const answer = await fetch(`${servers[version].baseUrl}/oauth2/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa('app:a+secret')}` },
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          redirect_uri: CALLBACK,
          code: searchParams.get('code') ?? '',
        }),
      })
      expect(answer.status, await answer.clone().text()).to.equal(200)
      expect(await answer.json()).to.include.keys('id_token')
    }

    /** A login whose link `by` has mailed. */
    async function waitingLogin(by: Version) {
      const account = await addAccount(false)
      const agent = createUserAgent()
      const blocked = await alone(by, async () => {
        const answer = await signIn(by, agent, account.username)
        expect([answer.page, answer.mode]).to.deep.equal(['verify-email', 'blocked'])
        await both.mail.mailTo(account.email)
        return answer
      })
      const { link } = await both.mail.mailTo(account.email)
      return { agent, link, id: blocked.hidden['login'] ?? '' }
    }

    for (const [by, at] of PAIRS) {
      it(`a reset link of ${by} sets a password at ${at}, and ends a session of both in both`, async () => {
        const { username, email } = await addAccount()
        const agent = createUserAgent()
        await expectTokens(at, await signIn(by, agent, username))
        for (const version of VERSIONS)
          expect((await silently(version, agent)).has('code')).to.equal(true)

        const { link } = await alone(by, async (server) => {
          await forgot(server, email)
          return both.mail.mailTo(email)
        })
        await resetPassword(linkAt(link, at), NEW_PASSWORD)
        for (const version of VERSIONS) {
          expect((await silently(version, agent)).get('error')).to.equal('login_required')
        }
        // The last release ends by the clock what is of the second of a reset.
        await secondAfter(systemClock, new Date())
        await expectTokens(by, await signIn(at, createUserAgent(), username, NEW_PASSWORD))
      })

      it(`a verification link of ${by} is finished by ${at}`, async () => {
        const { username, email } = await addAccount(false)
        const { link } = await alone(by, async (server) => {
          await resend(server, username)
          return both.mail.mailTo(email)
        })
        const { status, mode } = await createUserAgent().get(linkAt(link, at))
        expect([status, mode]).to.deep.equal([200, 'verified'])
        await expectTokens(at, await signIn(by, createUserAgent(), username))
      })

      it(`a login that waits at ${by} is resumed by its link at ${at}`, async () => {
        const { agent, link } = await waitingLogin(by)
        await expectTokens(by, await follow(at, agent, agent.get(linkAt(link, at))))
      })

      for (const goesOn of VERSIONS) {
        it(`a login that waits at ${by} is confirmed at ${at}, and goes on at ${goesOn}`, async () => {
          const { agent, link, id } = await waitingLogin(by)
          const waiting = windowNamed(`${servers[goesOn].baseUrl}/oauth2`, id, agent)
          const before = await waiting.status()
          expect((await createUserAgent().get(linkAt(link, at))).status).to.equal(302)
          expect(await waiting.status()).not.to.equal(before)
          await expectTokens(by, await follow(goesOn, agent, waiting.goOn()))
        })
      }

      it(`a mail that was asked for at ${by} leaves from ${at}, where the first try failed`, async () => {
        const { email } = await addAccount()
        deferred.add(email)
        const outbox = both.database.db.collection('mail_outbox')
        await alone(by, async (server) => {
          await forgot(server, email)
          await eventually('the first try failed', () =>
            outbox.findOne({ attempts: 1, lease_id: { $exists: false } }),
          )
        })
        const { link } = await alone(at, async () => {
          await outbox.updateMany({}, { $set: { available_at: new Date() } })
          return both.mail.mailTo(email)
        })
        await resetPassword(linkAt(link, by), NEW_PASSWORD)
      })

      it(`settings that are changed at ${by} are those of ${at}, and its mails log in with them`, async () => {
        const { email } = await addAccount()
        await putSettings(servers[at], { smtp_password: 'wrong', smtp_from_name: 'before' })
        await putSettings(servers[by], { smtp_password: LOGIN.password, smtp_from_name: by })
        const { baseUrl, adminToken } = servers[at]
        const headers = { authorization: `Bearer ${adminToken}` }
        await eventually(`${at} follows`, async () => {
          const answer = await fetch(`${baseUrl}/admin/api/settings`, { headers })
          const shown = (await answer.json()) as Record<string, string>
          return shown['smtp_from_name'] === by && shown['smtp_password'] === '***'
        })
        const logins = both.mail.logins
        const received = await alone(at, async (server) => {
          await forgot(server, email)
          return both.mail.mailTo(email)
        })
        expect(received.mail.from?.text).to.include(by)
        expect(both.mail.logins).to.be.greaterThan(logins)
      })
    }

    it('the last release starts again where this version has been, and takes its link', async () => {
      const { email } = await addAccount()
      const { baseUrl } = servers['the last release']
      const link = await alone('this version', async (server) => {
        await forgot(server, email)
        return (await both.mail.mailTo(email)).link
      })
      const variables = { MONGODB_URI: both.database.uri, BASE_URL: baseUrl }
      const back = await startExampleServer(variables, lastRelease())
      try {
        await resetPassword(link.replace(baseUrl, `http://localhost:${back.port}`), NEW_PASSWORD)
      } finally {
        await back.kill()
      }
    })

    it('both stop as if they were alone', async () => {
      const exits = VERSIONS.map((version) => servers[version].stop())
      expect(await Promise.all(exits)).to.deep.equal([0, 0])
    })
  },
)
