import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'
import { startMailServer, type MailServer } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { startKillableServer, type KillableServer } from './killable-server.ts'
import {
  addPerson,
  forgot,
  mailed,
  OLD_PASSWORD,
  opens,
  postReset,
  showsForm,
  type UserDocument,
} from './person.ts'
import { scaled } from './scale.ts'

const ROUNDS = scaled({ full: 20, short: 3 })
const POSTS = 50

describeWithMongo('One reset link posted 50 times at once, to two processes', () => {
  let mail: MailServer
  let at: KillableServer
  let second: ExampleServer

  before(async function () {
    this.timeout(120_000)
    mail = await startMailServer()
    at = await startKillableServer('standalone', mail.port)
    second = await startExampleServer({
      MONGODB_URI: at.database.uri,
      SEED_FILE: at.seedFile,
      BASE_URL: new URL(at.oauthUrl).origin,
    })
  })

  after(async function () {
    this.timeout(60_000)
    await second?.kill()
    await at?.close()
    await mail?.close()
  })

  for (let round = 1; round <= ROUNDS; round += 1) {
    it(`succeeds once, with the password of that form (round ${round} of ${ROUNDS}) (RACE-01)`, async () => {
      const { db } = at.database
      const servers = [at, { ...at, oauthUrl: `http://localhost:${second.port}/oauth2` }]
      const person = await addPerson(at, true)
      expect((await forgot(at, person)).mode).to.equal('sent')
      await mailed(at, person)
      const { link } = await mail.mailTo(person.email)
      expect(await showsForm(link)).to.equal(true)

      const posts = Array.from({ length: POSTS }, (_, index) => ({
        server: servers[index % 2] ?? at,
        password: `the password of form number ${index}`,
      }))
      const answers = await Promise.all(
        posts.map(async ({ server, password }) => {
          const answer = await postReset(server, link, password)
          return { password, outcome: `${answer?.status} ${answer?.mode}` }
        }),
      )
      const successes = answers.filter(({ outcome }) => outcome === '200 done')
      const refusals = answers.filter(({ outcome }) => outcome === '400 invalid')
      expect([successes.length, refusals.length]).to.deep.equal([1, POSTS - 1])

      const winner = successes[0]?.password ?? ''
      const { password_hash: hash = '' } =
        (await db.collection<UserDocument>('users').findOne({ _id: person.id })) ?? {}
      const matching = []
      for (const { password } of posts) {
        if (await bcrypt.compare(password, hash)) matching.push(password)
      }
      expect(matching).to.deep.equal([winner])
      expect(await opens(at, person, winner)).to.equal(true)
      expect(await opens(at, person, OLD_PASSWORD)).to.equal(false)
      const completed = { type: 'password_reset_completed', account_id: person.id }
      expect(await db.collection('audit_events').countDocuments(completed)).to.equal(1)
      expect(await showsForm(link)).to.equal(false)
    })
  }
})
