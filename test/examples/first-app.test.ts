import { copyFile, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { compiledCheckout } from '../support/compiled-checkout.ts'
import { eventually } from '../support/eventually.ts'
import { ROOT } from '../support/folders.ts'
import { startProcess, untilUp } from '../support/process.ts'
import { freePort } from '../support/serve.ts'
import { createBrowser, expectPage, linksOf } from '../support/user-agent.ts'

const SORRY = 'That did not work. Go back to the app and try again.'

describe('examples/first-app.mjs, beside the package as it is installed [full]', () => {
  let folder: string
  let app: ReturnType<typeof startProcess>
  let baseUrl: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'first-app-'))
    const file = join(folder, 'first-app.mjs')
    await copyFile(join(ROOT, 'examples/first-app.mjs'), file)
    await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'))
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    await symlink(compiledCheckout(), join(folder, 'dist'))
    const port = await freePort()
    baseUrl = `http://localhost:${port}`
    app = startProcess(process.execPath, [file], { ...process.env, PORT: String(port) })
    await untilUp(app, () => app.stdout().includes(`Open ${baseUrl}/`))
  })

  after(async () => {
    app.process.kill()
    await app.exited
    await rm(folder, { recursive: true })
  })

  const mailed = (path: string) =>
    eventually(`a mail with a link to ${path}`, () => {
      const links = app.stdout().matchAll(new RegExp(`${baseUrl}/oauth2/${path}\\?\\S+`, 'g'))
      return [...links].at(-1)?.[0]
    })

  it('lets a person reset a password that was forgotten at the login, sign in with it, and confirm the address on the way', async () => {
    const browser = createBrowser(baseUrl)
    const [start = ''] = linksOf(await browser.visit('/'))
    const login = await browser.visit(start)
    const signIn = (password: string) => browser.submit(login.url, { username: 'ann', password })
    expect((await signIn('a wrong password')).status).to.equal(401)
    const mine = { username: 'ann', password: 'the password of ann' }
    const posted = await browser.submit(login.url, mine, { 'sec-fetch-site': 'cross-site' })
    expect(posted.status).to.equal(403)

    const [forgot = ''] = linksOf(login)
    const asked = await browser.visit(forgot)
    const sent = await browser.submit(asked.url, { ...asked.hidden, identifier: 'ann' })
    expectPage(sent, 200, 'forgot-password', 'sent')
    const reset = await browser.visit(await mailed('reset-password'))
    const chosen = { password: 'a new password', confirm_password: 'a new password' }
    const done = await browser.submit(reset.url, { ...reset.hidden, ...chosen })
    expectPage(done, 200, 'reset-password', 'done')
    expect(linksOf(done)).to.include(login.url)

    expect((await signIn('the password of ann')).status).to.equal(401)
    expectPage(await signIn('a new password'), 200, 'verify-email', 'blocked')
    const last = await browser.visit(await mailed('verify-email'))
    expect([last.status, last.text]).to.deep.equal([200, 'Signed in: the app has a code.'])
    const old = await createBrowser(baseUrl).visit(login.url)
    expect([old.status, old.text]).to.deep.equal([400, SORRY])
  })
})
