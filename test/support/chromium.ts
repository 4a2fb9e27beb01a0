import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'
import { atEndOfRun } from './end-of-run.ts'

const PATH = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
const HINT = `no Chromium at ${PATH}: apt-get install chromium, or set CHROMIUM to its path`

export function launchChromium(): Promise<Browser> {
  if (!existsSync(PATH)) throw new Error(HINT)
  return chromium.launch({
    executablePath: PATH,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

let running: Promise<Browser> | undefined

/** One for all suites of a process, whose contexts keep them apart; a new one where it has crashed. */
async function sharedChromium(): Promise<Browser> {
  const browser = await running?.catch(() => undefined)
  if (browser?.isConnected()) return browser
  const launched = launchChromium()
  running = launched
  atEndOfRun(async () => (await launched).close())
  return launched
}

/** A suite in real Chromium: pending where there is none, and under `CI=true` a failure. */
export function describeInChromium(title: string, body: (browser: () => Browser) => void): void {
  describe(`${title}, in Chromium`, function () {
    this.timeout(90_000)
    let browser: Browser | undefined

    before(async function () {
      if (!existsSync(PATH)) {
        if (process.env['CI'] === 'true') throw new Error(HINT)
        console.warn(HINT)
        this.skip()
      }
      browser = await sharedChromium()
    })

    after(async () => {
      for (const context of browser?.contexts() ?? []) await context.close()
    })

    body(() => {
      if (!browser) throw new Error('Chromium is not running')
      return browser
    })
  })
}
