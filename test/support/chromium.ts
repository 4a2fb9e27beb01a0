import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import * as playwright from 'playwright-core'
import type { Browser } from 'playwright-core'
import { describeWith, install, onPath, partOfTests } from './missing.ts'

const START_LIMIT = 300_000

const HOW_TO_GET_ONE = 'run the tests as root on Debian, or set CHROMIUM to the path of one'

export const chromium = partOfTests('Chromium', [HOW_TO_GET_ONE, 'CHROMIUM'], findChromium)

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
  describeWith(chromium.title, start, `${title}, in Chromium`, () => {
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
  const { path: executablePath } = await chromium.find()
  const options = { executablePath, timeout: START_LIMIT, args: ARGUMENTS }
  return playwright.chromium.launch(options).catch((error: unknown) => {
    throw new Error(`${executablePath} does not start`, { cause: error })
  })
}

/** Debian's, because what npm has is a stripped one, whose pages crash when a form opens a tab. */
async function findChromium(): Promise<{ path: string; origin: string }> {
  const { CHROMIUM: named } = process.env
  const found = named ?? onPath('chromium')
  if (found === undefined) await install(['chromium', 'fonts-dejavu-core'])
  const path = found ?? '/usr/bin/chromium'
  const { stdout } = await promisify(execFile)(path, ['--version']).catch(() => ({ stdout: '' }))
  if (!/^Chrom.* \d/.test(stdout)) throw new Error(`${path} does not start`)
  const whence = found === undefined ? 'Debian, installed now' : 'the PATH'
  return { path, origin: named === undefined ? whence : 'CHROMIUM' }
}
