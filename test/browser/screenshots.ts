/**
 * Writes a picture of every page in every mode, in light and dark, wide and narrow, in languages of both directions, with a brand and without, of every page of
 * the example server, and of every mail, into `screenshots/`, with one sheet that shows them all: `index.html` and `contact-sheet-*.png`.
 *
 * @module
 */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { mailTemplates } from '../../src/contract/mail-kinds.ts'
import { createViews } from '../../src/views/index.ts'
import { SAMPLE_MAILS } from '../../src/views/mails.ts'
import { launchChromium } from '../support/chromium.ts'
import { everyPage } from './every-page.ts'
import { startExamplePages } from './example-pages.ts'
import { BRAND, startPageServer } from './page-server.ts'

const FOLDER = fileURLToPath(new URL('../../screenshots/', import.meta.url))
const AT = new Date('2026-03-04T05:06:07Z')

const LOOKS = {
  light: { colorScheme: 'light', width: 720, height: 720, locale: 'en', brand: BRAND },
  dark: { colorScheme: 'dark', width: 1280, height: 800, locale: 'de', brand: BRAND },
  phone: { colorScheme: 'light', width: 320, height: 568, locale: 'de', brand: BRAND },
  rtl: { colorScheme: 'dark', width: 320, height: 640, locale: 'ar', brand: BRAND },
  neutral: { colorScheme: 'light', width: 1280, height: 800, locale: 'en', brand: undefined },
} as const

/** Shows one page or mail, whose name is that of its file. */
type Shown = [name: string, show: (page: Page) => Promise<unknown>]

const browser = await launchChromium()
const groups = new Map<string, string[]>()

async function shoot(group: string, options: BrowserContextOptions, shown: Shown[]) {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const names = groups.get(group) ?? []
  groups.set(group, names)
  for (const [name, show] of shown) {
    await show(page)
    await page.screenshot({ path: join(FOLDER, `${name}.png`), fullPage: true })
    names.push(name)
  }
  await context.close()
}

const everyMail = (): [name: string, html: string][] => {
  const views = createViews('/oauth2', { brand: BRAND })
  // Of each mail, the second sample has much to say; so has one about a first password.
  const full = mailTemplates.flatMap((template) => {
    const all = SAMPLE_MAILS.filter(([name]) => name === template)
    return [...all.slice(1, 2), ...all.filter(([, { isFirst, username }]) => isFirst && username)]
  })
  const samples = views.locales.flatMap((locale) =>
    full.map(([template, locals]): [string, string] => [
      `mail.${template}${locals.isFirst ? '-first' : ''}.${locale}`,
      views.mail(template, { ...locals, at: AT }, { asked: locale }).html,
    ]),
  )
  return [...samples, ['mail.test', views.mail('test', { username: '', link: '', at: AT }).html]]
}

function sheet(): string {
  const figure = (name: string) =>
    `<figure><a href="${name}.png"><img src="${name}.png" alt="${name}"></a><figcaption>${name}</figcaption></figure>`
  const sections = [...groups].map(
    ([group, names]) =>
      `<section id="${group}"><h2>${group}</h2>${names.map(figure).join('')}</section>`,
  )
  return `<!doctype html><meta charset="utf-8"><title>Pages and mails</title><style>
body { margin: 1rem; font: 13px system-ui, sans-serif; background: #888; color: #fff }
section { display: flex; flex-wrap: wrap; gap: 12px; align-items: start; padding-block-end: 1rem }
h2 { inline-size: 100%; margin: 0 }
figure { inline-size: 300px; margin: 0 }
img { inline-size: 100%; display: block }
</style>${sections.join('')}`
}

await rm(FOLDER, { recursive: true, force: true })
await mkdir(FOLDER, { recursive: true })
const example = await startExamplePages(['en', 'de', 'ar'])
for (const [look, { colorScheme, width, height, locale, brand }] of Object.entries(LOOKS)) {
  const options = { colorScheme, viewport: { width, height } }
  const server = await startPageServer(brand)
  const pages = everyPage.map((shown): Shown => [
    `${shown.id}.${look}`,
    (page) => page.goto(server.addressOf(shown, { locale })),
  ])
  await shoot(look, options, pages)
  await server.close()
  if (!brand) continue
  const ofExample = example.ids.map((id): Shown => [
    `example.${id}.${look}`,
    async (page) => {
      // With its policy, which lets a mail have its styles, and without its script, which would look for mails.
      await page.route('**/mailbox.js', (route) => route.abort())
      await page.goto(`${example.origin}/mailbox`)
      await page.setContent(example.htmlOf(id, locale))
    },
  ])
  await shoot('example', options, ofExample)
}
await example.close()
for (const colorScheme of ['light', 'dark'] as const) {
  const viewport = { width: 640, height: 480 }
  const mails = everyMail().map(([name, html]): Shown => [
    `${name}.${colorScheme}`,
    (page) => page.setContent(html),
  ])
  await shoot(`mails-${colorScheme}`, { colorScheme, viewport, javaScriptEnabled: false }, mails)
}

await writeFile(join(FOLDER, 'index.html'), sheet())
const page = await browser.newPage({ viewport: { width: 1600, height: 900 } })
await page.goto(pathToFileURL(join(FOLDER, 'index.html')).href)
for (const group of groups.keys())
  await page.locator(`#${group}`).screenshot({ path: join(FOLDER, `contact-sheet-${group}.png`) })
await browser.close()
console.log(`${FOLDER}index.html`)
