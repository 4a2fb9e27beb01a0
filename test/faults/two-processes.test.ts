import type { ExampleServer } from '../support/example-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { scaled, suiteService } from './servers.ts'
import { itTakesTurns } from './taking-turns.ts'

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
