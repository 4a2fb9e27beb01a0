import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AxeResults } from 'axe-core'
import { expect } from 'chai'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import { everyPage, type ShownPage } from './every-page.ts'
import { startPageServer, type PageServer } from './page-server.ts'

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const WIDE = { width: 1280, height: 800 }
/** What 1280 by 1024 pixels are at 400%. */
const NARROW = { width: 320, height: 256 }

describeInChromium('Every page in every mode (WCAG 2.2 AA)', (browser) => {
  let server: PageServer

  before(async () => {
    server = await startPageServer()
  })
  after(() => server.close())

  /** One window for all pages, as opening one costs more than a page does. */
  async function onEveryPage(
    options: BrowserContextOptions,
    look: (page: Page, shown: ShownPage) => Promise<void>,
    address: Parameters<PageServer['addressOf']>[1] = {},
  ) {
    const context = await browser().newContext(options)
    const page = await context.newPage()
    for (const shown of everyPage) {
      await page.goto(server.addressOf(shown, address))
      await look(page, shown)
    }
    await context.close()
  }

  const DIRECTIONS = { 'left to right': 'ltr', 'right to left': 'rtl' } as const
  for (const [direction, dir] of Object.entries(DIRECTIONS)) {
    it(`has nothing that axe objects to, ${direction}, light and dark, wide and narrow`, async () => {
      const violations: string[] = []
      await onEveryPage(
        {},
        async (page, { id }) => {
          await page.evaluate(AXE)
          for (const [colorScheme, viewport] of [
            ['light', WIDE],
            ['dark', NARROW],
          ] as const) {
            await page.emulateMedia({ colorScheme })
            await page.setViewportSize(viewport)
            violations.push(...(await axe(page)).map((found) => `${id} ${colorScheme}: ${found}`))
          }
        },
        { dir },
      )
      expect(violations).to.deep.equal([])
    })
  }
})

async function axe(page: Page): Promise<string[]> {
  const { violations } = await page.evaluate(
    (values): Promise<AxeResults> =>
      (globalThis as unknown as typeof import('axe-core')).axe.run(document, {
        runOnly: { type: 'tag', values },
        resultTypes: ['violations'],
      }),
    TAGS,
  )
  return violations.map(
    ({ id, nodes }) => `${id} at ${nodes.map(({ target }) => target.join(' ')).join(', ')}`,
  )
}
