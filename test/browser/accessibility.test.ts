import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { run, RunOnly } from 'axe-core'
import { expect } from 'chai'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import { everyPage, type ShownPage } from './every-page.ts'
import { startPageServer, type PageServer } from './page-server.ts'

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const EVERYTHING: RunOnly = {
  type: 'tag',
  values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
}
/** What colours and width can change. */
const VISUAL: RunOnly = {
  type: 'rule',
  values: ['color-contrast', 'target-size', 'link-in-text-block', 'scrollable-region-focusable'],
}
const WIDE = { width: 1280, height: 800 }
/** What 1280 by 1024 pixels are at 400%. */
const NARROW = { width: 320, height: 256 }
/** The plain one, the one of long words, and the one from right to left. */
const LOCALES = ['en', 'de', 'ar']
const FOCUSABLE = 'a[href], button, input:not([type=hidden]), summary, [tabindex="0"]'

/** What looks different where scripts are on. */
const CHANGED_BY_SCRIPT = / data-(show|seconds)=/

type Address = NonNullable<Parameters<PageServer['addressOf']>[1]>

/** Any two of direction, colours and width meet in one of these. */
const DIRECTIONS = {
  'left to right': {
    locale: 'en',
    looks: [
      { colorScheme: 'light', viewport: WIDE },
      { colorScheme: 'dark', viewport: NARROW },
    ],
  },
  'right to left': {
    locale: 'ar',
    looks: [
      { colorScheme: 'light', viewport: NARROW },
      { colorScheme: 'dark', viewport: WIDE },
    ],
  },
} as const

describeInChromium('Every page in every mode (WCAG 2.2 AA)', (browser) => {
  let server: PageServer

  before(async () => {
    server = await startPageServer()
  })
  after(() => server.close())

  /** What `look` finds wrong, with the page that it is wrong with. One window for all: opening it costs more than a page does. */
  async function findings(
    options: BrowserContextOptions,
    look: (page: Page, shown: ShownPage) => Promise<string[]>,
    { pages = everyPage, ...address }: Address & { pages?: ShownPage[] } = {},
  ): Promise<string[]> {
    const context = await browser().newContext(options)
    const page = await context.newPage()
    const found: string[] = []
    for (const shown of pages) {
      await page.goto(server.addressOf(shown, address))
      found.push(...(await look(page, shown)).map((finding) => `${shown.id}: ${finding}`))
    }
    await context.close()
    return found
  }

  for (const name of new Set(everyPage.map((shown) => shown.name))) {
    const pages = everyPage.filter((shown) => shown.name === name)
    for (const [direction, { locale, looks }] of Object.entries(DIRECTIONS)) {
      it(`has nothing that axe objects to: ${name}, ${direction}, with scripts and without`, async () => {
        const look = async (page: Page) => {
          await page.evaluate(AXE)
          const violations: string[] = []
          for (const [index, { colorScheme, viewport }] of looks.entries()) {
            await page.emulateMedia({ colorScheme })
            await page.setViewportSize(viewport)
            violations.push(...(await axeViolations(page, index === 0 ? EVERYTHING : VISUAL)))
          }
          return violations
        }
        expect(await findings({}, look, { locale, pages })).to.deep.equal([])
        const enhanced = pages.filter((shown) => CHANGED_BY_SCRIPT.test(server.htmlOf(shown)))
        const withoutScripts = { locale, pages: enhanced, scripts: 'off' } as const
        expect(await findings({}, look, withoutScripts)).to.deep.equal([])
      })
    }
  }

  for (const locale of LOCALES) {
    it(`needs no sideways scrolling at 400%, or with text twice as large, in ${locale}`, async () => {
      const look = async (page: Page) => {
        const wide: string[] = []
        for (const [fontSize, width] of [
          ['100%', NARROW.width],
          ['200%', 2 * NARROW.width],
        ] as const) {
          await page.setViewportSize({ ...NARROW, width })
          const needed = await page.evaluate((size) => {
            document.documentElement.style.fontSize = size
            return document.documentElement.scrollWidth
          }, fontSize)
          if (needed > width) wide.push(`${needed} of ${width} pixels, text at ${fontSize}`)
        }
        return wide
      }
      expect(await findings({}, look, { locale })).to.deep.equal([])
    })
  }

  it('keeps its texts whole where a reader spaces them (1.4.12)', async () => {
    const found = await findings({ viewport: NARROW }, (page) =>
      page.evaluate(() => {
        for (const element of document.querySelectorAll<HTMLElement>('body *')) {
          Object.assign(element.style, {
            lineHeight: '1.5',
            letterSpacing: '0.12em',
            wordSpacing: '0.16em',
          })
        }
        return [...document.querySelectorAll('main, main :is(p, h1, button, label, a, ul)')]
          .filter((element) => getComputedStyle(element).display !== 'inline')
          .filter(
            ({ scrollWidth, clientWidth, scrollHeight, clientHeight }) =>
              clientWidth > 0 && (scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1),
          )
          .map((element) => `${element.tagName} is cut: ${element.textContent.slice(0, 40)}`)
      }),
    )
    expect(found).to.deep.equal([])
  })

  for (const [direction, { locale }] of Object.entries(DIRECTIONS)) {
    it(`is all within reach of the Tab key, in the order in which it is read, and shows where it is, ${direction}`, async () => {
      const found = await findings(
        { viewport: NARROW },
        async (page) => {
          const expected = await page.evaluate((selector) => {
            const shown = [...document.querySelectorAll<HTMLElement>(selector)].filter(
              (element) => element.checkVisibility() && !element.matches(':disabled'),
            )
            for (const [index, element] of shown.entries()) element.dataset['stop'] = String(index)
            return shown.map((_, index) => String(index))
          }, FOCUSABLE)
          const stops: string[] = []
          const hidden: string[] = []
          // A page that puts the focus somewhere is read from its beginning all the same.
          await page.evaluate(() => {
            if (document.activeElement instanceof HTMLElement) document.activeElement.blur()
            getSelection()?.setPosition(document.body, 0)
          })
          for (const _ of expected) {
            await page.keyboard.press('Tab')
            const { stop, isShown } = await page.evaluate(focused)
            stops.push(stop)
            if (!isShown) hidden.push(`stop ${stop} does not show that it has the focus`)
          }
          const isOrder = stops.join() === expected.join()
          return [...(isOrder ? [] : [`${stops.join()} for ${expected.join()}`]), ...hidden]
        },
        { locale },
      )
      expect(found).to.deep.equal([])
    })
  }

  it('shows fields, buttons and the focus where the system chooses the colours', async () => {
    const found = await findings({ forcedColors: 'active' }, (page) =>
      page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>('button, input:not([type=hidden]), .button')]
          .filter((element) => element.checkVisibility())
          .filter((element) => {
            element.focus()
            const { borderTopWidth, borderTopStyle, outlineStyle } = getComputedStyle(element)
            const hasEdge = borderTopStyle !== 'none' && parseFloat(borderTopWidth) > 0
            return (
              !element.matches('[type=checkbox], :disabled') &&
              (!hasEdge || outlineStyle === 'none')
            )
          })
          .map(({ outerHTML }) => outerHTML),
      ),
    )
    expect(found).to.deep.equal([])
  })

  it('moves nothing for those who asked for less motion', async () => {
    const found = await findings({ reducedMotion: 'reduce' }, (page) =>
      page.evaluate(() => document.getAnimations().map(() => 'something moves')),
    )
    expect(found).to.deep.equal([])
  })

  it('leads to its error: the refusal has the focus, and is told with the field', async () => {
    const found = await findings({}, (page) =>
      page.evaluate(() => {
        const refusal = document.querySelector('#refusal')
        if (!refusal) return []
        const fields = [...document.querySelectorAll('input:not([type=hidden])')]
        const isTold = fields.some((field) =>
          field.getAttribute('aria-describedby')?.split(' ').includes('refusal'),
        )
        return [
          ...(refusal.contains(document.activeElement) ? [] : ['the refusal has no focus']),
          ...(isTold || fields.length === 0 ? [] : ['no field tells of the refusal']),
        ]
      }),
    )
    expect(found).to.deep.equal([])
  })
})

async function axeViolations(page: Page, rules: RunOnly): Promise<string[]> {
  const { violations } = await page.evaluate(
    (runOnly) =>
      (globalThis as unknown as { axe: { run: typeof run } }).axe.run(document, {
        runOnly,
        resultTypes: ['violations'],
      }),
    rules,
  )
  return violations.map(
    ({ id, nodes }) => `${id} at ${nodes.map(({ target }) => target.join(' ')).join(', ')}`,
  )
}

/** Runs in the page. */
function focused() {
  const element = document.activeElement as HTMLElement
  const { outlineStyle, outlineWidth } = getComputedStyle(element)
  const { left, top, width, height } = element.getBoundingClientRect()
  const atCentre = document.elementFromPoint(left + width / 2, top + height / 2)
  return {
    stop: element.dataset['stop'] ?? element.tagName,
    isShown: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && element.contains(atCentre),
  }
}
