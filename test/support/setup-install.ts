import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { onPath } from './on-path.ts'

const run = promisify(execFile)

/** The limits are apt's own, because half an installation is worse than a slow one. */
const OPTIONS = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=2']

/** Why nothing can be installed here. `undefined`: it can. */
export function whyNotInstall(): string | undefined {
  if (!mayFetch()) return 'ACCOUNT_FLOWS_TESTS_INSTALL=never'
  if (!onPath('apt-get')) return 'this system has no apt-get'
  if (process.getuid?.() !== 0) return 'that takes root'
  return undefined
}

/** Whether the network may be asked for what is missing. */
export function mayFetch(): boolean {
  return process.env['ACCOUNT_FLOWS_TESTS_INSTALL'] !== 'never'
}

/** Debian's or Ubuntu's. What stands in the way is thrown as one sentence. */
export async function install(packages: string[]): Promise<void> {
  const names = packages.join(' ')
  const obstacle = whyNotInstall()
  if (obstacle) throw new Error(`${names} cannot be installed, as ${obstacle}`)
  console.warn(`Installing ${names} with apt-get.`)
  const installed = installing.then(() => installNow(packages))
  installing = installed.catch(() => {})
  await installed
}

/** One after the other, because apt-get locks. */
let installing = Promise.resolve()

async function installNow(packages: string[]): Promise<void> {
  try {
    await aptGet('update')
    await finishInterrupted()
    await aptGet('install', '--yes', '--no-install-recommends', ...packages)
  } catch (error) {
    throw new Error(`apt-get could not install ${packages.join(' ')}: ${whyAptFailed(error)}`, {
      cause: error,
    })
  }
}

/** A run that was killed may have left packages half installed, and then apt-get refuses all others. It tells what stays in the way. */
async function finishInterrupted(): Promise<void> {
  await run('dpkg', ['--configure', '-a'], { env: aptEnvironment() }).catch(() => {})
}

async function aptGet(...args: string[]): Promise<void> {
  await run('apt-get', [...OPTIONS, ...args], { env: aptEnvironment() })
}

function aptEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }
}

function whyAptFailed(error: unknown): string {
  const output = error instanceof Error && 'stderr' in error ? String(error.stderr) : ''
  return /^E: (.+)$/m.exec(output)?.[1]?.trim() ?? 'it gave no reason'
}
