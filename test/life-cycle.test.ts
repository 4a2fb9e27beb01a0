import { spawnSync } from 'node:child_process'
import { copyFile, cp, rename, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { later, systemClock, timeout, within } from '../src/clock.ts'
import { compiledCheckout } from './support/compiled-checkout.ts'
import { eventually } from './support/eventually.ts'
import { ROOT, suiteFolder } from './support/folders.ts'
import { suiteHarness } from './support/harness.ts'
import { describeWithMongo } from './support/mongod.ts'
import { records } from './support/records.ts'
import { movableClock, moveTime } from './support/time.ts'

describe('The life of the flows', () => {
  const h = suiteHarness()

  it('are ready from start to stop', async () => {
    expect(await h.flows.health()).to.deep.equal({ isReady: true })
    await h.flows.stop()
    expect(await h.flows.health()).to.deep.equal({ isReady: false, reason: 'not_started' })
    await h.flows.start()
    expect(await h.flows.health()).to.deep.equal({ isReady: true })
  })
})

describe('A damaged package [full]', function () {
  const folder = suiteFolder()

  const START = `
    import { createAccountFlows, memoryStore, memoryUsers } from './src/index.js'
    const options = { baseUrl: 'https://idp.example', secrets: [new Uint8Array(32)] }
    const flows = createAccountFlows({ ...options, store: memoryStore(), users: memoryUsers() })
    await flows.start({ workers: false })
    await flows.stop()`

  async function start() {
    const code = ['--input-type=module', '-e', START]
    const { status, stderr } = spawnSync(process.execPath, code, { cwd: folder('built') })
    return { status, said: String(stderr) }
  }

  before(async () => {
    await cp(compiledCheckout(), folder('built'), { recursive: true })
    await copyFile(join(ROOT, 'package.json'), folder('built/package.json'))
    await symlink(join(ROOT, 'node_modules'), folder('node_modules'))
  })

  it('does not start, and names the file that is missing', async () => {
    expect((await start()).status).to.equal(0)
    for (const name of [
      'src/admin/router.js',
      'src/passwords/common-passwords.br',
      'views/locales/en.json',
      'views/mails/partials/dark.css',
      'views/mails/password-reset.txt',
      'views/pages/error.pug',
      'views/pages/partials/wait.pug',
    ]) {
      const [there, away] = [folder(`built/${name}`), folder('away')]
      await rename(there, away)
      const { status, said } = await start()
      await rename(away, there)
      expect(status, name).to.equal(1)
      expect(said, name).to.match(/^\w*Error\b.*: .*/m)
      expect(said, name).to.include(name.replace('views/', ''))
    }
  })
})

describeWithMongo('The flows [full]', () => {
  const h = suiteHarness({ technology: 'mongodb' })

  it('follow a settings record that was edited by hand, whatever the type of the value', async () => {
    const edit = (values: object, more = {}) =>
      records(h, 'settings').updateOne({ _id: 'settings' }, { $set: values, ...more })
    await h.put({ require_email_verification: 'false' })
    const bob = await h.addUser({ username: 'bob', emailVerified: false })
    await edit({ 'values.require_email_verification': true }, { $inc: { version: 1 } })
    await moveTime(2_000)
    await eventually('bob is blocked', async () => (await bob.signsIn()).mode === 'blocked')
    await edit({ 'values.password_reset_expiration': '3h' })
    await h.put({ validation_min_password_length: '9' })
    const kept = { password_reset_expiration: '3h', validation_min_password_length: '9' }
    expect((await h.store.settings.read()).values).to.include(kept)
  })
})

const HOUR = 3_600_000
const never = new Promise<never>(() => {})

for (const [name, clock] of Object.entries({ systemClock, movableClock })) {
  describe(name, () => {
    it('wakes whoever sleeps when the signal aborts, or was aborted before, and never rejects', async () => {
      const stop = new AbortController()
      const sleeping = clock.sleep(HOUR, { signal: stop.signal })
      stop.abort()
      await sleeping
      await clock.sleep(HOUR, { signal: stop.signal })
    })

    it('gives an answer that comes in time, and passes a failure on', async () => {
      expect(await within(clock, HOUR, Promise.resolve('here'))).to.equal('here')
      const failing = within(clock, HOUR, Promise.reject(new Error('no')))
      expect(await failing.catch((error: unknown) => error))
        .to.be.instanceOf(Error)
        .with.property('message', 'no')
    })

    it('says late of an answer that does not come, and aborts with a TimeoutError', async () => {
      expect(await within(clock, 1, never)).to.equal('late')
      const { signal } = timeout(clock, 1)
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      expect(signal.reason).to.have.property('name', 'TimeoutError')
    })

    it('does nothing later that was cancelled before', async () => {
      const done: string[] = []
      const cancel = later(clock, 1, () => done.push('cancelled'))
      later(clock, 1, () => done.push('first'))
      cancel()
      await clock.sleep(5)
      await new Promise<void>((resolve) => void later(clock, 1, resolve))
      expect(done).to.deep.equal(['first'])
    })
  })
}
