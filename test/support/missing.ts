import { execFile, type ExecFileOptions } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { Context, Suite } from 'mocha'

/**
 * What the tests are missing on a machine is installed where that is possible. Otherwise the suites that need it are left out, and
 * one line at the end says what to do.
 *
 * @module
 */

const run = promisify(execFile)

/** The limits are apt's own, because half an installation is worse than a slow one. */
const OPTIONS = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=2']

/** One process after the other, as apt-get does not wait for all of its locks. */
const LOCK = join(tmpdir(), 'account-flows-tests-apt.lock')

/** On a busy machine, whatever limit a run sets for its tests. */
const START_LIMIT = 600_000

/** All processes of a test run write there what they left out. */
const ADVICE = 'ACCOUNT_FLOWS_TESTS_MISSING'

/** Where the command is that a shell would run. */
export function onPath(command: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return folders.map((folder) => join(folder, command)).find((file) => existsSync(file))
}

/** Whether the network may be asked for what is missing. */
export function mayFetch(): boolean {
  return process.env['ACCOUNT_FLOWS_TESTS_INSTALL'] !== 'never'
}

/** Why nothing can be installed here. `undefined`: it can. */
export function whyNotInstall(): string | undefined {
  if (!mayFetch()) return 'ACCOUNT_FLOWS_TESTS_INSTALL=never'
  if (!onPath('apt-get')) return 'this system has no apt-get'
  if (process.getuid?.() !== 0) return 'that takes root'
  return undefined
}

/** Debian's or Ubuntu's. What stands in the way is thrown as one sentence. */
export async function install(packages: string[]): Promise<void> {
  const names = packages.join(' ')
  const obstacle = whyNotInstall()
  if (obstacle) throw new Error(`${names} cannot be installed, as ${obstacle}`)
  console.warn(`Installing ${names} with apt-get.`)
  try {
    await aptGet(['update'])
    // A run that was killed may have left packages half installed, and then apt-get refuses all others. It tells what stays in the way.
    await run('dpkg', ['--configure', '-a'], asRobot()).catch(() => {})
    await aptGet(['install', '--yes', '--no-install-recommends', ...packages])
  } catch (error) {
    const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
    const why = /^E: (.+)$/m.exec(output)?.[1]?.trim() ?? 'it gave no reason'
    throw new Error(`apt-get could not install ${names}: ${why}`, { cause: error })
  }
}

export async function aptGet(args: string[], options: ExecFileOptions = {}): Promise<void> {
  await run('flock', [LOCK, 'apt-get', ...OPTIONS, ...args], { ...asRobot(), ...options })
}

function asRobot(): ExecFileOptions {
  return { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' } }
}

/**
 * What tests need on a machine, and look for once: processes that a run starts are told by their environment.
 *
 * @param namedBy - variables by which somebody names the one to take.
 */
export function partOfTests<Found extends { origin: string; path?: string }>(
  name: string,
  [howToGetOne, ...namedBy]: string[],
  find: () => Promise<Found>,
) {
  const variable = `ACCOUNT_FLOWS_TESTS_${name.toUpperCase()}`
  let looked: Promise<Found> | undefined

  async function look(): Promise<Found> {
    const { found, missing } = JSON.parse(process.env[variable] ?? '{}')
    if (missing) throw new Error(missing)
    return found ?? find().catch(advise)
  }

  function advise(reason: unknown): never {
    const named = namedBy.find((each) => process.env[each])
    const advice = named ? `correct ${named} or unset it` : howToGetOne
    throw new Error(`No ${name} (${messageOf(reason)}): ${advice}.`)
  }

  const part = {
    /** Begins the title around each suite that needs it: by this the set-up knows what a run needs. */
    title: `with a ${name}`,

    /** What stands in the way is thrown as one sentence with what to do. */
    find: () => (looked ??= look()),

    /** Tells in words where it is from, or what stands in the way. */
    async setUp(): Promise<string> {
      const outcome = await part.find().then(
        (found) => ({
          found,
          told: `${name}: ${found.path ?? 'a running one'}, from ${found.origin}.`,
        }),
        (error: unknown) => ({ missing: messageOf(error), told: messageOf(error) }),
      )
      process.env[variable] = JSON.stringify(outcome)
      return outcome.told
    },
  }
  return part
}

/**
 * A suite that needs a part: pending where there is none, and under `CI=true` a failure.
 *
 * @param part - the title around it.
 * @param start - throws one sentence for whoever runs the tests.
 */
export function describeWith(
  part: string,
  start: () => Promise<unknown>,
  title: string,
  body: (this: Suite) => void,
): void {
  describe(part, () => {
    before('it runs', async function () {
      this.timeout(START_LIMIT)
      await start().catch((error: unknown) => leaveOut(this, messageOf(error)))
    })

    // One level down, where mocha skips its hooks together with its tests.
    describe(title, body)
  })
}

/** Leaves a suite out, pending as a whole, for the one reason that is told at the end; under `CI=true` it fails. */
export function leaveOut(suite: Context, advice: string): never {
  if (process.env['CI'] === 'true') throw new Error(advice)
  const file = process.env[ADVICE]
  if (file) appendFileSync(file, `${advice}\n`)
  return suite.skip()
}

/** Before there are workers. */
export function collectAdvice(): void {
  process.env[ADVICE] = join(tmpdir(), `tests-miss-${randomUUID()}`)
}

/** One line for everything that was left out. */
export function tellAdvice(): void {
  const file = process.env[ADVICE]
  if (!file || !existsSync(file)) return
  const advice = new Set(readFileSync(file, 'utf8').trimEnd().split('\n'))
  rmSync(file)
  console.warn(`Pending for what is missing. ${[...advice].join(' ')}`)
}

/** Its first line. */
export function messageOf(error: unknown): string {
  return /.*/.exec(error instanceof Error ? error.message : String(error))?.[0] ?? ''
}
