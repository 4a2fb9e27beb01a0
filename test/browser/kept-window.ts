import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

/** A window of a browser of its own for all tests of a suite, as opening one costs more than most tests do. After each of them
 * it is empty, without cookies, and alone. */
export function keptWindow(
  browser: () => Browser,
  options: BrowserContextOptions = {},
): () => Page {
  let page: Page

  before(async () => {
    page = await (await browser().newContext(options)).newPage()
  })

  afterEach(async () => {
    const context = page.context()
    const others = context.pages().filter((other) => other !== page)
    await Promise.all(others.map((other) => other.close()))
    await page.goto('about:blank')
    await context.clearCookies()
  })

  return () => page
}
