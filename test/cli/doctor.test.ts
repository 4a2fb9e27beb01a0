import { expect } from 'chai'
import { cliOf } from '../support/cli-server.ts'
import { suiteHarnessBehindProxy } from '../support/harness-behind-proxy.ts'
import { describeWithMongo } from '../support/mongod.ts'

describeWithMongo('account-flows doctor while MongoDB is gone [full]', () => {
  const limits = { serverSelectionTimeoutMS: 2_000 }
  const { h, proxy } = suiteHarnessBehindProxy(limits, { mayLogErrors: true })
  const cli = cliOf(h)

  it('names the failing database: exit 1, as the API answers and takes the token; all is well when it is back', async () => {
    await proxy.sever()
    const text = await cli.run(['doctor'])
    expect(text.exitCode, text.stdout + text.stderr).to.equal(1)
    expect(text.stdout)
      .to.match(/^ok +admin_api: /m)
      .and.match(/^ok +token: /m)
      .and.match(/^FAILED +database: /m)
    const { ok, checks } = await cli.json(['doctor'])
    expect(ok).to.equal(false)
    expect(checks).to.deep.include.members([
      { step: 'token', status: 'ok', message: 'the token is accepted' },
    ])
    const wrong = await cli.run(['doctor'], { env: { ACCOUNT_FLOWS_TOKEN: 'wrong' } })
    expect(wrong.exitCode, 'a wrong token is told all the same').to.equal(4)
    expect(wrong.stdout).to.match(/^FAILED +token: /m)

    await proxy.restore()
    await cli.done(['doctor'])
  })
})
