import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { run, RunOnly } from 'axe-core'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createViews } from '../../src/views/index.ts'
import { describeInChromium } from '../support/chromium.ts'
import { everyPage, type ShownPage } from './every-page.ts'
import { startExamplePages, type ExamplePage, type ExamplePages } from './example-pages.ts'
import { BRAND, startPageServer, type PageServer } from './page-server.ts'

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
const LOCALES = createViews('').locales
/** Languages whose lines may end after any character. */
const WITHOUT_BLANKS = new Set(['ja', 'zh-Hans'])
const FOCUSABLE = 'a[href], button, input:not([type=hidden]), summary, [tabindex="0"]'

const SCRIPT = /<script.*?<\/script>/
/** What looks different where scripts are on. */
const CHANGED_BY_SCRIPT = / data-(show|seconds)=/

type Media = NonNullable<Parameters<Page['emulateMedia']>[0]>
const PLAIN: Media = { colorScheme: 'light', forcedColors: 'none', reducedMotion: 'no-preference' }

interface Look extends Media {
  viewport?: { width: number; height: number }
  pages?: ShownPage[]
  locale?: string
  /** Off: the page as it is where none run, for tools that are scripts themselves. */
  scripts?: 'on' | 'off'
  /** Of a host without a brand; by default they have all that a brand can add. */
  isPlain?: boolean
  /** Each is loaded, as a browser loads it; otherwise they are put one after the other into the same document. */
  arrives?: boolean
}

/** Answers the name of what it has shown. */
type Show<S> = (page: Page, shown: S) => Promise<string>

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

describeInChromium('Every page in every mode (WCAG 2.2 AA) [full]', (browser) => {
  let server: PageServer
  let plain: PageServer
  let example: ExamplePages
  /** Two, for the two processors of a small machine. */
  let ours: Page[]
  let plains: Page[]
  /** For pages of the example server. */
  let ofExample: Page[]

  before(async () => {
    server = await startPageServer(BRAND)
    example = await startExamplePages(LOCALES)
    plain = await startPageServer()
    const context = await browser().newContext()
    await context.addInitScript({ content: AXE })
    const opened = async (open: (page: Page) => Promise<unknown>) => {
      const page = await context.newPage()
      await open(page)
      return page
    }
    const openedAt = ({ origin }: PageServer) =>
      opened((page) => page.goto(`${origin}/oauth2/error.error.1`))
    ours = [await openedAt(server), await openedAt(server)]
    plains = [await openedAt(plain), await openedAt(plain)]
    ofExample = [await opened((page) => arriveAtExample(page, 'home', 'en'))]
  })
  after(() => Promise.all([server?.close(), plain?.close(), example?.close()]))

  const arriveAtExample = (page: Page, id: ExamplePage, locale: string) =>
    arrive(page, `${example.origin}/shown`, example.htmlOf(id, locale))

  /** What `find` finds wrong, with the page that it is wrong with. */
  async function findings(
    {
      viewport = WIDE,
      pages = everyPage,
      locale = 'en',
      scripts = 'on',
      isPlain,
      arrives,
      ...media
    }: Look,
    find: (page: Page) => Promise<string[]>,
  ): Promise<string[]> {
    const found: string[] = []
    const of = isPlain ? plain : server
    const ids = pages === everyPage && !isPlain ? example.ids : []
    const all = async <S>(into: Page[], pages: readonly S[], show: Show<S>) => {
      const left = pages.values()
      const showLeft = async (page: Page) => {
        await page.emulateMedia({ ...PLAIN, ...media })
        await page.setViewportSize(viewport)
        for (const shown of left) {
          const id = await show(page, shown)
          found.push(...(await find(page)).map((finding) => `${id}: ${finding}`))
        }
      }
      await Promise.all(into.map(showLeft))
    }
    await Promise.all([
      all(isPlain ? plains : ours, pages, async (page, shown) => {
        if (arrives) await page.goto(of.addressOf(shown, { locale }))
        else await put(page, of.htmlOf(shown, { locale }), scripts)
        return shown.id
      }),
      all(ofExample, ids, async (page, id) => {
        if (arrives) await arriveAtExample(page, id, locale)
        else await put(page, example.htmlOf(id, locale), scripts)
        return id
      }),
    ])
    return found
  }

  for (const [direction, { locale, looks }] of Object.entries(DIRECTIONS)) {
    for (const [index, look] of looks.entries()) {
      it(`have nothing that axe objects to: ${direction}, ${look.colorScheme}, ${look.viewport.width} pixels wide, with scripts and without, with a brand and without`, async () => {
        const axe = (rules: RunOnly) => (page: Page) => axeViolations(page, rules)
        const all = axe(index === 0 ? EVERYTHING : VISUAL)
        expect(await findings({ ...look, locale }, all)).to.deep.equal([])
        // What these leave out is left out in any language, and their words are those of the pages above.
        const less = locale === 'en' ? all : axe(VISUAL)
        expect(await findings({ ...look, locale, isPlain: true }, less)).to.deep.equal([])
        const pages = everyPage.filter((shown) => CHANGED_BY_SCRIPT.test(server.htmlOf(shown)))
        expect(await findings({ ...look, locale, pages, scripts: 'off' }, less)).to.deep.equal([])
      })
    }
  }

  for (const locale of LOCALES) {
    for (const [what, fontSize, width] of [
      ['at 400%', '100%', NARROW.width],
      ['with text twice as large', '200%', 2 * NARROW.width],
    ] as const) {
      it(`need no sideways scrolling, and break no word, ${what}, in ${locale}`, async () => {
        const viewport = { ...NARROW, width }
        const find = async (page: Page) => {
          await page.evaluate(
            (size) => void (document.documentElement.style.fontSize = size),
            fontSize,
          )
          const needed = await page.evaluate(() => document.documentElement.scrollWidth)
          const broken = WITHOUT_BLANKS.has(locale) ? [] : await page.evaluate(brokenWords)
          return needed > width ? [`${needed} of ${width} pixels`, ...broken] : broken
        }
        expect(await findings({ viewport, locale }, find)).to.deep.equal([])
      })
    }
  }

  it('keep their texts whole where a reader spaces them (1.4.12)', async () => {
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
    it(`are all within reach of the Tab key, in the order in which they are read, and show where it is, ${direction}`, async () => {
      const found = await findings({ viewport: NARROW, locale }, async (page) => {
        // The stops within a mail are the mail's own.
        if (page.frames().length > 1) return []
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
          document.body.tabIndex = -1
          document.body.focus()
          document.body.removeAttribute('tabindex')
        })
        for (const _ of expected) {
          await page.keyboard.press('Tab')
          const { stop, isShown } = await page.evaluate(focused)
          stops.push(stop)
          if (!isShown) hidden.push(`stop ${stop} does not show that it has the focus`)
        }
        const isOrder = stops.join() === expected.join()
        return [...(isOrder ? [] : [`${stops.join()} for ${expected.join()}`]), ...hidden]
      })
      expect(found).to.deep.equal([])
    })
  }

  it('show fields, buttons and the focus where the system chooses the colours', async () => {
    const found = await findings({ forcedColors: 'active' }, (page) =>
      page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>('button, input:not([type=hidden]), .button')]
          .filter((element) => element.checkVisibility())
          .filter((element) => {
            element.focus()
            const { borderTopWidth, borderTopStyle, outlineStyle } = getComputedStyle(element)
            const hasEdge = borderTopStyle !== 'none' && parseFloat(borderTopWidth) > 0
            return (
              !element.matches('[type=checkbox], [type=radio], :disabled') &&
              (!hasEdge || outlineStyle === 'none')
            )
          })
          .map(({ outerHTML }) => outerHTML),
      ),
    )
    expect(found).to.deep.equal([])
  })

  it('move nothing for those who asked for less motion', async () => {
    const found = await findings({ reducedMotion: 'reduce' }, (page) =>
      page.evaluate(() => document.getAnimations().map(() => 'something moves')),
    )
    expect(found).to.deep.equal([])
  })

  it('are shown with their style sheet, and lead to their error: it has the focus, or is told with the field that has it', async () => {
    const found = await findings({ arrives: true }, async (page) => {
      // The browser moves the focus when it next draws the page.
      const arrived = page.waitForFunction(
        () => !document.title.startsWith('Error: ') || document.activeElement !== document.body,
      )
      await arrived.catch(() => {})
      return page.evaluate(() => {
        const faults = [...document.querySelectorAll('#refusal, .hint.fault')]
        const focused = document.activeElement
        const told = focused?.getAttribute('aria-describedby')?.split(' ') ?? []
        const isError = document.title.startsWith('Error: ')
        return [
          ...(document.styleSheets[0]?.cssRules.length ? [] : ['no style sheet']),
          ...(isError === faults.length > 0 ? [] : ['the title does not say that of the page']),
          ...faults
            .filter((fault) => !fault.contains(focused) && !told.includes(fault.id))
            .map(({ textContent }) => `not told: ${textContent}`),
        ]
      })
    })
    expect(found).to.deep.equal([])
  })
})

/** In the place of the page that is there, as if it had arrived. Its window stays, with axe. */
async function put(page: Page, html: string, scripts: 'on' | 'off'): Promise<void> {
  // Another address each time: a module runs once.
  const fresh = `?${performance.now()}&`
  await page.setContent(
    scripts === 'on' ? html.replace(/(?<=\.js)\?/, fresh) : html.replace(SCRIPT, ''),
  )
  await page.evaluate(() => document.querySelector<HTMLElement>('[autofocus]')?.focus())
}

/** As a page of its own, at an address of the server. */
async function arrive(page: Page, address: string, body: string): Promise<void> {
  await page.route(address, (route) => route.fulfill({ contentType: 'text/html', body }), {
    times: 1,
  })
  await page.goto(address)
}

async function axeViolations(page: Page, runOnly: RunOnly): Promise<string[]> {
  return page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as { axe: { run: typeof run } }
    const { violations } = await axe.run(document, { runOnly, resultTypes: ['violations'] })
    return violations.map(
      ({ id, nodes }) => `${id} at ${nodes.map(({ target }) => target.join(' ')).join(', ')}`,
    )
  }, runOnly)
}

/** Runs in the page: the words of ours that stand on two lines. Addresses, and names as long as no word is, may. */
function brokenWords(): string[] {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const found: string[] = []
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    for (const { 0: token, index } of (text.textContent ?? '').matchAll(/\S+/g)) {
      if (/[@/_]|\.\S|.{36}/.test(token)) continue
      for (const part of token.matchAll(/[\p{L}\p{M}\p{N}]+/gu)) {
        const range = document.createRange()
        range.setStart(text, index + part.index)
        range.setEnd(text, index + part.index + part[0].length)
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
        if (lines.size > 1) found.push(`${part[0]} is broken`)
      }
    }
  }
  return found
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
