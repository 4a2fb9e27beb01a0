import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createBrowser } from '../support/user-agent.ts'
import { describeInChromium } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { suiteExampleServer, type ExampleServer } from '../support/example-server.ts'
import { suiteFolder } from '../support/folders.ts'
import { viewsDirectory } from '../support/words.ts'

const RUN = "top.document.title = 'ran'; document.title = 'ran'"
const MARKUP = `"'></iframe><script>${RUN}</script><img src=x onerror="${RUN}">`

/** What somebody could try who gets a mail of theirs shown. */
const HOSTILE_MAIL = `doctype html
html
  head
    base(href='https://elsewhere.example/' target='_blank')
    meta(http-equiv='refresh' content='0;url=https://elsewhere.example/refresh')
    link(rel='stylesheet' href='https://elsewhere.example/style.css')
    style.
      @import url(https://elsewhere.example/import.css);
      body { background: url(https://elsewhere.example/background.png) }
    script.
      ${RUN}
  body(onload="${RUN}")
    img(src='https://elsewhere.example/picture.png' onerror="${RUN}")
    img(src='/oauth2/session/end')
    iframe(src='/oauth2/device')
    form(action='/oauth2/forgot-password' method='post')
      button#send Send
    a#script(href="javascript:${RUN}") Run
    a#relative(href='relative') Relative
    a#popup(href='https://elsewhere.example/popup' target='_blank') Popup
    a#link(href=link target='_top') Open
`

async function askForMail(server: ExampleServer) {
  const browser = createBrowser(server.baseUrl)
  await browser.postForm('/oauth2/forgot-password', { identifier: 'mallory@example.com' })
  await eventually('the mail is there', async () => {
    return (await browser.visit('/mailbox')).mode === 'mails' || undefined
  })
}

/** What really leaves for the network from now on, and windows that open. */
async function requestsOf(page: Page): Promise<string[]> {
  const urls: string[] = []
  await page.context().route('**/*', (route) => {
    urls.push(route.request().url())
    return route.continue()
  })
  page.on('popup', () => urls.push('a popup'))
  page.on('dialog', () => urls.push('a dialog'))
  return urls
}

const OWN = /\/(mailbox(\.js|\?after=[\w-]*)?|example\.css|oauth2\/account-flows\.(css|svg))$/

describeInChromium('The mailbox of the example server [full]', (browser) => {
  const file = suiteFolder()
  before(async () => {
    const user = { username: MARKUP, email: 'mallory@example.com', email_verified: true }
    await writeFile(
      file('seed.json'),
      JSON.stringify({ users: [{ ...user, password: 'mallory-password' }], clients: [] }),
    )
  })
  const ours = suiteExampleServer(() => ({ SEED_FILE: file('seed.json') }))
  const fresh = suiteExampleServer(() => ({ SEED_FILE: file('seed.json') }))
  const hostile = suiteExampleServer(() => ({
    SEED_FILE: file('seed.json'),
    VIEWS_DIRECTORY: viewsDirectory({ 'mails/layout.pug': HOSTILE_MAIL }),
  }))

  let page: Page
  beforeEach(async () => {
    page = await (await browser().newContext()).newPage()
  })
  afterEach(() => page.context().close())

  it('shows a mail as HTML on a desktop and on a phone, and as text, and its links open in the window', async () => {
    await askForMail(ours)
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.goto(`${ours.baseUrl}/mailbox`)
    const frame = page.locator('iframe').first()
    const width = async () => (await frame.boundingBox())?.width ?? NaN
    expect(await width()).to.be.above(600)
    await page.getByLabel('Phone').press('Space')
    expect(await width()).to.be.within(320, 430)
    const html = page.frameLocator('iframe').first()
    const button = html.getByRole('link', { name: 'Set a new password' })
    expect(await button.evaluate((it) => getComputedStyle(it).display)).to.equal('inline-block')
    const href = await button.getAttribute('href')
    const text = page.locator('.mail a[href*="reset-password"]').first()
    expect([await frame.isVisible(), await text.isVisible()]).to.deep.equal([true, false])
    await page.getByLabel('Text', { exact: true }).first().press('Space')
    expect([await frame.isVisible(), await text.isVisible()]).to.deep.equal([false, true])
    expect(await text.getAttribute('href')).to.equal(href)
    await page.getByLabel('HTML', { exact: true }).first().press('Space')
    await button.press('Enter')
    await page.waitForSelector('[data-page=reset-password][data-mode=form]')
  })

  it('shows each new mail by itself, on top and open, and leaves the others as they were', async () => {
    const asks = () =>
      createBrowser(fresh.baseUrl).postForm('/oauth2/forgot-password', {
        identifier: 'mallory@example.com',
      })
    await page.goto(`${fresh.baseUrl}/mailbox`)
    await page.waitForSelector('[data-mode=empty]')
    await asks()
    const mails = page.locator('[data-mode=mails] article')
    await mails.first().getByLabel('Text', { exact: true }).press('Space')
    const known = await mails.first().getAttribute('id')
    await asks()
    await mails.nth(1).waitFor()
    expect(await mails.nth(1).getAttribute('id')).to.equal(known)
    expect(await mails.first().locator('iframe').isVisible()).to.equal(true)
    expect(await mails.nth(1).locator('.mail').isVisible()).to.equal(true)
    expect(await mails.count()).to.equal(2)
  })

  it('runs nothing of the name of a user, in HTML and in text (XSS-01)', async () => {
    await askForMail(ours)
    const requests = await requestsOf(page)
    await page.goto(`${ours.baseUrl}/mailbox`)
    const shown = await page.frameLocator('iframe').first().locator('body').innerText()
    expect(shown).to.include('<script>')
    expect(await page.locator('.mail').first().innerText()).to.include('<script>')
    const loaded = page.locator('script, img')
    expect(
      await loaded.evaluateAll((all) => all.map((it) => it.getAttribute('src'))),
    ).to.deep.equal(['/mailbox.js'])
    expect(await page.title()).to.equal('Mailbox · Acme')
    expect(requests.filter((url) => !OWN.test(url))).to.deep.equal([])
  })

  it('runs and loads nothing of a mail whose HTML is hostile, and its link still works (XSS-03)', async () => {
    await askForMail(hostile)
    const requests = await requestsOf(page)
    await page.goto(`${hostile.baseUrl}/mailbox`)
    const mail = page.frameLocator('iframe').first()
    for (const id of ['send', 'script', 'popup']) await mail.locator(`#${id}`).click()
    const relative = await mail.locator('#relative').evaluate((it) => Reflect.get(it, 'href'))
    expect(relative).to.equal(`${hostile.baseUrl}/relative`)
    // What had been asked for by a mail would have been asked for before this.
    await page.evaluate(() => fetch('/example.css').catch(() => {}))
    expect(await page.title()).to.equal('Mailbox')
    expect(requests).to.include(`${hostile.baseUrl}/mailbox`)
    expect(requests.filter((url) => !OWN.test(url))).to.deep.equal([])
    await mail.locator('#link').click()
    await page.waitForSelector('[data-page=reset-password][data-mode=form]')
  })

  it('lets the frame of a mail neither run scripts nor be of its own origin (XSS-03)', async () => {
    const { text } = await createBrowser(ours.baseUrl).get('/mailbox')
    const sandboxes = [...text.matchAll(/<iframe[^>]* sandbox="([^"]*)"/g)].map(([, it]) => it)
    expect(new Set(sandboxes)).to.deep.equal(new Set(['allow-top-navigation-by-user-activation']))
  })
})
