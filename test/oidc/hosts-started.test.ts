import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { press } from '../support/page-forms.ts'
import { createRelyingParty, followWithin } from '../support/relying-party.ts'
import { createUserAgent } from '../support/user-agent.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const NEW_PASSWORD = 'a new password of ann'
const START_LIMIT_MS = 60_000

describe('The example of each host, as it is started by hand [full]', function () {
  this.timeout(START_LIMIT_MS + 20_000)
  let child: ChildProcess
  let output = ''

  async function start(host: string): Promise<string> {
    const port = String(await freePort())
    output = ''
    child = spawn(process.execPath, ['--import', 'tsx/esm', 'examples/hosts/start.ts', host], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], PORT: port },
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    }
    const isReady = () => {
      if (child.exitCode !== null) throw new Error(`the example ended:\n${output}`)
      return /^READY (.*)$/m.exec(output)?.[1]
    }
    return eventually('the example is ready', isReady, START_LIMIT_MS)
  }

  afterEach('SIGTERM ends it by itself', async () => {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await exited).to.deep.equal([0, null])
  })

  const linkTo = (path: string) =>
    eventually('the mail', () => new RegExp(`http\\S+${path}\\?\\S+`).exec(output)?.[0])

  for (const host of ['koa', 'express', 'fastify', 'node-http']) {
    it(`${host}: blocks the login, finishes it by the link, and resets the password`, async () => {
      const issuer = `${await start(host)}/oauth2`
      const party = await createRelyingParty(issuer, {
        clientId: 'app',
        redirectUri: 'https://app.example/cb',
      })
      const agent = createUserAgent()
      const request = await party.begin({ scope: 'openid' })
      const shown = await followWithin(agent, issuer, await agent.get(request.url))
      expect(shown.status).to.equal(200)
      expect(shown.text).to.include('Forgot your password?')
      const signIn = (password: string) =>
        agent.post(`${issuer}/login`, { username: 'ann', password })
      expect((await signIn('long '.repeat(5_000))).status).to.equal(413)
      for (const method of ['GET', 'POST']) {
        const lost = await createUserAgent().request(method, `${issuer}/login?interaction=x`)
        expect([lost.status, lost.location]).to.deep.equal([400, undefined])
        expect(lost.text).to.include('sign in from there').and.not.include('node_modules')
      }
      expect((await signIn('a wrong one')).status).to.equal(401)
      const blocked = await signIn('the password of ann')
      expect([blocked.status, blocked.mode]).to.deep.equal([200, 'blocked'])
      const { status, location = '' } = await createUserAgent().get(await linkTo('/verify-email'))
      expect(status).to.equal(302)
      expect((await party.exchange(request, location)).claims()?.sub).to.equal('1')
      const waited = await press(agent, blocked, '/verify-email/waiting')
      expect((await party.exchange(request, waited.location ?? '')).claims()?.sub).to.equal('1')

      const form = await agent.get(`${issuer}/forgot-password`)
      await press(agent, form, '/forgot-password', { typed: { identifier: 'ann' } })
      const page = await agent.get(await linkTo('/reset-password'))
      const typed = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
      const done = await press(agent, page, '/reset-password', { typed })
      expect([done.status, done.mode]).to.deep.equal([200, 'done'])
      const again = await party.begin({ scope: 'openid' })
      await followWithin(agent, issuer, await agent.get(again.url))
      expect((await signIn('the password of ann')).status).to.equal(401)
      const back = await followWithin(agent, issuer, await signIn(NEW_PASSWORD))
      expect((await party.exchange(again, back.location ?? '')).claims()?.sub).to.equal('1')
    })
  }
})
