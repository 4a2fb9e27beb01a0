import type { Page } from 'playwright-core'
import { expectNothingHappened, inMode, type BrowserHarness } from './login-in-chromium.ts'
import { type Person } from '../support/person.ts'

/** What runs in each page that a scanner renders, once it is loaded, and sends nothing. */
export const LOOKS: Record<string, string> = {
  'renders the page': '',
  'follows links and presses Enter by script': `document.querySelectorAll('a').forEach((a) => a.click())
    button?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))`,
}

export const CLICK = 'button?.click()'

/** What sends the form. */
export const SENDS: Record<string, string> = {
  'sends the form': 'form?.submit()',
  'asks the form to be sent': 'form?.requestSubmit()',
  'asks the form to be sent with its button': 'form?.requestSubmit(button)',
  'clicks the button by script': CLICK,
  'makes up the events of a mouse': `for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'])
    button?.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true }))`,
}

/** As often as a person would try: in the page of the link, and in the one that answers. */
const TRIES = 2
const inEachPage = (script: string) => `addEventListener('load', () => {
  const loads = Number(sessionStorage.loads ?? 0) + 1
  sessionStorage.loads = loads
  const [form] = document.forms
  if (loads > ${TRIES}) return
  const button = form?.querySelector('button')
  ${script}
})`

/** Renders the link with scripts, as a page in this mode; nothing comes of it, also once the last form that they sent is answered. */
export async function scan(
  h: BrowserHarness,
  page: Page,
  { link, user, mode }: Person & { mode: 'elsewhere' | 'confirm' },
  script: string,
): Promise<void> {
  const running = await page.addInitScript({ content: inEachPage(script) })
  await page.goto(link)
  const sends = mode === 'confirm' && Object.values(SENDS).includes(script)
  const loads = sends ? TRIES + 1 : 1
  await page.waitForFunction((loads) => Number(sessionStorage['loads']) === loads, loads)
  await inMode(page, mode)
  await expectNothingHappened(h, page, user)
  await page.evaluate(() => sessionStorage.clear())
  await running.dispose()
}
