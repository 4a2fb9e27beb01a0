import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { startCliServer, type CliServer } from '../support/cli-server.ts'
import { jsonOf } from '../support/cli-in-process.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'

describeWithMongo('account-flows doctor while MongoDB is gone [full]', () => {
  let fresh: FreshDatabase
  let proxy: MongoProxy
  let cli: CliServer

  before(async () => {
    fresh = await freshDatabase()
    proxy = await startMongoProxy(fresh)
    const client = await MongoClient.connect(proxy.uri, { serverSelectionTimeoutMS: 2_000 })
    const database = { db: client.db(), drop: () => client.close() }
    cli = await startCliServer({ database, mayLogErrors: true })
  })
  after(async () => {
    await cli.h.close()
    await proxy.close()
    await fresh.drop()
  })

  it('names the failing database: exit 1, as the API answers and takes the token; all is well when it is back', async () => {
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
    const wrong = await cli.run(['doctor'], { env: { ACCOUNT_FLOWS_TOKEN: 'wrong' } })
    expect(wrong.exitCode, 'a wrong token is told all the same').to.equal(4)
    expect(wrong.stdout).to.match(/^FAILED +token: /m)

    await proxy.restore()
    const run = await cli.run(['doctor'])
    expect(run.exitCode, run.stdout + run.stderr).to.equal(0)
  })
})
