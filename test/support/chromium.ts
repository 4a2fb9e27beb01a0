import { chromium, type Browser } from 'playwright-core'
import { atEndOfRun } from './end-of-run.ts'
import { onPath } from './on-path.ts'
import { leaveOut } from './setup-advice.ts'
import { install } from './setup-install.ts'

const MISSING = 'ACCOUNT_FLOWS_TESTS_NO_CHROMIUM'
const HOW_TO_GET_ONE = 'run the tests as root on Debian, or set CHROMIUM to the path of one'
const START_LIMIT = 60_000

/** By this the set-up knows what a run needs. */
export const IN_CHROMIUM = 'with a Chromium'

interface ChromiumProgram {
  path: string
  /** Where it is from, in words. */
  origin: string
}

/** Starts one that is the caller's to close. What stands in the way is thrown as one sentence. */
export async function launchChromium(): Promise<Browser> {
  const { path } = await findChromium()
  return launch(path)
}

/** Debian's, because what npm has is a stripped one, whose pages crash when a form opens a tab. */
export async function findChromium(): Promise<ChromiumProgram> {
  const named = process.env['CHROMIUM']
  if (named) return { path: named, origin: 'CHROMIUM' }
  const found = onPath('chromium')
  if (found) return { path: found, origin: 'the PATH' }
  await install(['chromium', 'fonts-dejavu-core'])
  return { path: '/usr/bin/chromium', origin: 'Debian, installed now' }
}

async function launch(executablePath: string): Promise<Browser> {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ]
  return chromium.launch({ executablePath, timeout: START_LIMIT, args }).catch((error: unknown) => {
    throw new Error(`${executablePath} does not start`, { cause: error })
  })
}

let running: Promise<Browser> | undefined

/** One for all suites of a process, whose contexts keep them apart; a new one where it has crashed. */
export async function sharedChromium(): Promise<Browser> {
  const missing = process.env[MISSING]
  if (missing) throw new Error(missing)
  const browser = await running?.catch(() => undefined)
  if (browser?.isConnected()) return browser
  const launched = launchChromium()
  running = launched
  atEndOfRun(async () => (await launched.catch(() => undefined))?.close())
  return launched
}

/** Starts the shared one, and tells where it is from. What one process has found is not looked for again by those that it starts. */
export async function setUpChromium(): Promise<string> {
  try {
    const { path, origin } = await findChromium()
    const browser = await sharedChromium()
    process.env['CHROMIUM'] = path
    return `Chromium ${browser.version()}: ${path}, from ${origin}.`
  } catch (error) {
    const how = process.env['CHROMIUM'] ? 'correct CHROMIUM or unset it' : HOW_TO_GET_ONE
    const missing = `No Chromium (${messageOf(error)}): ${how}.`
    process.env[MISSING] = missing
    return missing
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A suite in real Chromium: pending where there is none, and under `CI=true` a failure. */
export function describeInChromium(title: string, body: (browser: () => Browser) => void): void {
  describe(IN_CHROMIUM, function () {
    this.timeout(90_000)
    let browser: Browser | undefined

    before('Chromium runs', async function () {
      browser = await sharedChromium().catch((error: unknown) => leaveOut(this, messageOf(error)))
    })

    after(async () => {
      for (const context of browser?.contexts() ?? []) await context.close()
    })

    // One level down, where mocha skips its hooks together with its tests.
    describe(`${title}, in Chromium`, () =>
      body(() => {
        if (!browser) throw new Error('Chromium is not running')
        return browser
      }))
  })
}
