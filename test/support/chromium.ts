import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { chromium, type Browser } from 'playwright-core'
import { describeWith, install, messageOf, onPath } from './missing.ts'

const MISSING = 'ACCOUNT_FLOWS_TESTS_NO_CHROMIUM'
const HOW_TO_GET_ONE = 'run the tests as root on Debian, or set CHROMIUM to the path of one'
const START_LIMIT = 60_000

/** By this the set-up knows what a run needs. */
export const IN_CHROMIUM = 'with a Chromium'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A suite in real Chromium: pending where there is none, and under `CI=true` a failure. */
export function describeInChromium(title: string, body: (browser: () => Browser) => void): void {
  let browser: Browser
  const start = async () => (browser = await sharedChromium())
  describeWith(IN_CHROMIUM, start, `${title}, in Chromium`, () => {
    after(async () => {
      for (const context of browser.contexts()) await context.close()
    })

    body(() => browser)
  })
}

let running: Promise<Browser> | undefined

/** One for all suites of a process, whose contexts keep them apart; a new one where it has crashed. It ends with the process. */
async function sharedChromium(): Promise<Browser> {
  const browser = await running
  if (browser?.isConnected()) return browser
  running = launchChromium()
  return running
}

/** Starts one that is the caller's to close. What stands in the way is thrown as one sentence. */
export async function launchChromium(): Promise<Browser> {
  const { path: executablePath } = await findChromium()
  const options = { executablePath, timeout: START_LIMIT, args: ARGUMENTS }
  return chromium.launch(options).catch((error: unknown) => {
    throw new Error(`${executablePath} does not start`, { cause: error })
  })
}

/** Finds one, for the processes that this one starts too, and tells where it is from. */
export async function setUpChromium(): Promise<string> {
  try {
    const { path, origin } = await findChromium()
    const { stdout } = await promisify(execFile)(path, ['--version']).catch(() => ({ stdout: '' }))
    const version = /^Chrom.* [\d.]+/.exec(stdout)?.[0]
    if (version === undefined) throw new Error(`${path} does not start`)
    process.env['CHROMIUM'] = path
    return `${version}: ${path}, from ${origin}.`
  } catch (error) {
    const how = process.env['CHROMIUM'] ? 'correct CHROMIUM or unset it' : HOW_TO_GET_ONE
    return (process.env[MISSING] = `No Chromium (${messageOf(error)}): ${how}.`)
  }
}

/** Debian's, because what npm has is a stripped one, whose pages crash when a form opens a tab. */
async function findChromium(): Promise<{ path: string; origin: string }> {
  const { CHROMIUM: named, [MISSING]: missing } = process.env
  if (missing) throw new Error(missing)
  if (named) return { path: named, origin: 'CHROMIUM' }
  const found = onPath('chromium')
  if (found) return { path: found, origin: 'the PATH' }
  await install(['chromium', 'fonts-dejavu-core'])
  return { path: '/usr/bin/chromium', origin: 'Debian, installed now' }
}
