/**
 * Writes the pictures of the docs, `docs/pictures/*.png`: real pages, mails and clients, beside one another.
 *
 * @module
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { launchChromium } from '../support/chromium.ts'
import { realClients } from '../oidc/real-clients.ts'
import { inMode, personIn, startBrowserHarness, type BrowserHarness } from './person-in-chromium.ts'

const FOLDER = fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const CLIENT = 'Auth.js'
const brand = {
  name: 'Acme',
  colour: '#4f46e5',
  signInUrl: 'https://acme.example/',
  supportUrl: 'https://acme.example/help',
}

interface Shot {
  title: string
  png: Buffer
}

async function window(browser: Browser): Promise<Page> {
  const context: BrowserContext = await browser.newContext({
    viewport: { width: 640, height: 800 },
  })
  return context.newPage()
}

const shoot = async (page: Page, title: string): Promise<Shot> => ({
  title,
  png: await page.screenshot(),
})

/** The pictures side by side, each with its title below. */
async function write(browser: Browser, name: string, shots: Shot[], columns: number) {
  const page = await browser.newPage({ viewport: { width: columns * 340 + 20, height: 100 } })
  const figures = shots.map(
    ({ title, png }) =>
      `<figure><img src="data:image/png;base64,${png.toString('base64')}"><figcaption>${title}</figcaption></figure>`,
  )
  await page.setContent(`<!doctype html><style>
body { display: grid; grid-template-columns: repeat(${columns}, 320px); gap: 20px; margin: 20px; background: #fff; font: 15px system-ui, sans-serif; color: #222 }
figure { margin: 0 }
img { width: 320px; display: block; border: 1px solid #ccc; border-radius: 10px }
figcaption { padding-top: 8px; text-align: center }
</style>${figures.join('')}`)
  await page.screenshot({ path: join(FOLDER, `${name}.png`), fullPage: true })
  await page.close()
}

async function pages(browser: Browser, h: BrowserHarness) {
  const page = await window(browser)
  const ann = await h.addVerified({ username: 'ann' })
  await page.goto(`${h.oauthUrl}/forgot-password`)
  await page.fill('input[name=identifier]', 'ann')
  const forgot = await shoot(page, '1. Ask for a link')
  await page.click('button[type=submit]')
  await inMode(page, 'sent')
  const mail = await h.mail.mailTo(ann.email ?? '')
  const reader = await window(browser)
  await reader.setContent(String(mail.mail.html))
  const mailed = await shoot(reader, '2. The mail')
  await page.goto(mail.link)
  await page.fill('input[name=password]', 'a few random words')
  const form = await shoot(page, '3. A new password')
  const bob = await h.addUnverified({ username: 'bob' })
  const request = await h.party.begin()
  await page.goto(request.url.href)
  await personIn(h, page, bob).typesCredentials()
  await inMode(page, 'blocked')
  const blocked = await shoot(page, 'A login that waits for its address')
  await write(browser, 'pages', [forgot, mailed, form, blocked], 4)
}

async function otherBrowser(browser: Browser) {
  const clients = await realClients()
  const client = clients.find(({ metadata }) => metadata.client_id === CLIENT)
  if (!client) throw new Error(`there is no client ${CLIENT}`)
  const shots: Shot[] = []
  for (const mode of ['off', 'other_browser']) {
    const h = await startBrowserHarness({
      settings: { email_link_confirmation: mode },
      clients: [{ ...client.metadata, client_name: 'The App' }],
      flows: { brand },
    })
    const stop = await client.start(h.oauthUrl)
    const [laptop, phone] = [await window(browser), await window(browser)]
    const user = await h.addUnverified()
    await laptop.goto(client.baseUrl)
    if (client.button) await laptop.click(client.button)
    await personIn(h, laptop, user).typesCredentials()
    await inMode(laptop, 'blocked')
    await phone.goto((await h.mail.mailTo(user.email ?? '')).link)
    if (mode === 'other_browser') await inMode(phone, 'elsewhere')
    else await phone.waitForURL((url) => url.origin === client.baseUrl)
    shots.push(await shoot(phone, `<code>${mode}</code>`))
    await stop()
    await h.close()
  }
  await write(browser, 'other-browser', shots, 2)
}

await mkdir(FOLDER, { recursive: true })
const browser = await launchChromium()
const h = await startBrowserHarness({ flows: { brand } })
await pages(browser, h)
await h.close()
await otherBrowser(browser)
await browser.close()
console.log(FOLDER)
