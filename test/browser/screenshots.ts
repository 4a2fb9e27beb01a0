/**
 * Writes a picture of every page in every mode, in light and dark, wide and narrow, in languages of both directions, with a brand and without, of every page of
 * the example server, and of every mail, into `screenshots/`, with one sheet that shows them all: `index.html` and `contact-sheet-*.png`.
 *
 * @module
 */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Browser } from 'playwright-core'
import { previewMail } from '../../src/admin/mails.ts'
import { systemClock } from '../../src/clock.ts'
import { mailTemplates } from '../../src/ports/mail-kinds.ts'
import { parseAll } from '../../src/settings/rules.ts'
import { createViews, type Views } from '../../src/views/index.ts'
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

type Look = keyof typeof LOOKS

interface Picture {
  title: string
  file: string
}

async function picturesOfPages(browser: Browser, look: Look) {
  const { colorScheme, width, height, locale, brand } = LOOKS[look]
  const server = await startPageServer(brand)
  const context = await browser.newContext({ colorScheme, viewport: { width, height } })
  const page = await context.newPage()
  const pictures: Picture[] = []
  for (const shown of everyPage) {
    const file = `${shown.id}.${look}.png`
    await page.goto(server.addressOf(shown, { locale }))
    await page.screenshot({ path: join(FOLDER, file), fullPage: true })
    pictures.push({ title: shown.id, file })
  }
  await context.close()
  await server.close()
  return pictures
}

async function picturesOfExample(browser: Browser) {
  const looks = (['light', 'dark', 'phone', 'rtl'] as const).map((look) => ({
    look,
    ...LOOKS[look],
  }))
  const example = await startExamplePages([...new Set(looks.map(({ locale }) => locale))])
  const pictures: Picture[] = []
  for (const { look, colorScheme, width, height, locale } of looks) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height } })
    const page = await context.newPage()
    // With its policy, which lets a mail have its styles.
    await page.goto(`${example.origin}/mailbox`)
    for (const id of example.ids) {
      const file = `example.${id}.${look}.png`
      await page.setContent(example.htmlOf(id, locale))
      await page.screenshot({ path: join(FOLDER, file), fullPage: true })
      pictures.push({ title: `${id}.${look}`, file })
    }
    await context.close()
  }
  await example.close()
  return pictures
}

function everyMail(views: Views): { title: string; html: string }[] {
  const oauthUrl = 'https://id.example.com/oauth2'
  const clock = { ...systemClock, now: () => AT }
  const parts = { views, oauthUrl, settings: () => parseAll({}), clock }
  const samples = views.locales.flatMap((locale) =>
    mailTemplates.flatMap((name) => {
      const mail = previewMail(parts, { template: name, locale })
      return mail ? [{ title: `mail.${name}.${locale}`, html: mail.html }] : []
    }),
  )
  return [
    ...samples,
    { title: 'mail.test', html: views.mail('test', { username: '', link: '', at: AT }).html },
  ]
}

async function picturesOfMails(browser: Browser, views: Views, colorScheme: 'light' | 'dark') {
  const viewport = { width: 640, height: 480 }
  const context = await browser.newContext({ colorScheme, viewport, javaScriptEnabled: false })
  const page = await context.newPage()
  const pictures: Picture[] = []
  for (const { title, html } of everyMail(views)) {
    const file = `${title}.${colorScheme}.png`
    await page.setContent(html)
    await page.screenshot({ path: join(FOLDER, file), fullPage: true })
    pictures.push({ title, file })
  }
  await context.close()
  return pictures
}

function sheet(groups: Record<string, Picture[]>): string {
  const sections = Object.entries(groups).map(([group, pictures]) => {
    const figures = pictures.map(
      ({ title, file }) =>
        `<figure><a href="${file}"><img src="${file}" alt="${title}"></a><figcaption>${title}</figcaption></figure>`,
    )
    return `<section id="${group}"><h2>${group}</h2>${figures.join('')}</section>`
  })
  return `<!doctype html><meta charset="utf-8"><title>Pages and mails</title><style>
body { margin: 1rem; font: 13px system-ui, sans-serif; background: #888; color: #fff }
section { display: flex; flex-wrap: wrap; gap: 12px; align-items: start; padding-block-end: 1rem }
h2 { inline-size: 100%; margin: 0 }
figure { inline-size: 300px; margin: 0 }
img { inline-size: 100%; display: block }
</style>${sections.join('')}`
}

async function main() {
  await rm(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER, { recursive: true })
  const browser = await launchChromium()
  const views = createViews('/oauth2', { brand: BRAND })
  const groups: Record<string, Picture[]> = {}
  for (const look of Object.keys(LOOKS) as Look[]) {
    groups[look] = await picturesOfPages(browser, look)
  }
  groups['example'] = await picturesOfExample(browser)
  groups['mails-light'] = await picturesOfMails(browser, views, 'light')
  groups['mails-dark'] = await picturesOfMails(browser, views, 'dark')

  await writeFile(join(FOLDER, 'index.html'), sheet(groups))
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 } })
  await page.goto(pathToFileURL(join(FOLDER, 'index.html')).href)
  for (const group of Object.keys(groups)) {
    await page.locator(`#${group}`).screenshot({ path: join(FOLDER, `contact-sheet-${group}.png`) })
  }
  await browser.close()
  console.log(`${FOLDER}index.html`)
}

await main()
