import { expect } from 'chai'
import { startCliServer, type CliServer } from '../support/cli-server.ts'
import { jsonOf } from '../support/cli.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'

describeWithMongo('account-flows doctor while MongoDB is gone', () => {
  let fresh: FreshDatabase
  let proxy: MongoProxy
  let cli: CliServer

  before(async function () {
    this.timeout(60_000)
    fresh = await freshDatabase()
    proxy = await startMongoProxy(fresh)
    cli = await startCliServer({ MONGODB_URI: proxy.uri })
  })
  after(async () => {
    await proxy.restore()
    await cli.close()
    await proxy.close()
    await fresh.drop()
  })

  it('names the failing database: exit 1, as the API answers and takes the token', async function () {
    this.timeout(90_000)
    await proxy.sever()
    const text = await cli.run(['doctor'])
    expect(text.exitCode, text.stdout + text.stderr).to.equal(1)
    expect(text.stdout)
      .to.match(/^ok +admin_api: /m)
      .and.match(/^ok +token: /m)
      .and.match(/^FAILED +database: /m)
    const { ok, checks } = jsonOf(await cli.run(['doctor', '--json']))
    expect(ok).to.equal(false)
    expect(checks).to.deep.include.members([
      { step: 'token', status: 'ok', message: 'the token is accepted' },
    ])
    await proxy.restore()
  })

  it('a wrong token is told all the same: exit 4', async () => {
    await proxy.sever()
    const run = await cli.run(['doctor'], { env: { ACCOUNT_FLOWS_TOKEN: 'wrong' } })
    expect(run.exitCode, run.stdout + run.stderr).to.equal(4)
    expect(run.stdout).to.match(/^FAILED +token: /m)
    await proxy.restore()
  })

  it('all is well when it is back', async () => {
    const run = await cli.run(['doctor'])
    expect(run.exitCode, run.stdout + run.stderr).to.equal(0)
  })
})
