import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './sources.ts'

/** What runs elsewhere until it is replaced by this version. Whoever releases puts the new release here. */
export const LAST_RELEASE = '0045c7c7482cea3e3ddf6dca6350eacb905f6ac5'

export const HOW_TO_GET_IT =
  'run the tests in a clone with the last release in its history (git fetch --unshallow)'

const CACHE = join(ROOT, '.cache')
const NEEDED = ['package.json', 'tsconfig.json', 'src', 'examples', 'views']

/**
 * The command that starts the example server of the last release, with the dependencies of this checkout, which therefore keep those that
 * only it needs (`rate-limiter-flexible`). `undefined`: it is not in
 * the history here.
 */
export function lastRelease(): string | undefined {
  if (!git('cat-file', '-e', `${LAST_RELEASE}^{commit}`)) return undefined
  const target = join(CACHE, `last-release-${LAST_RELEASE.slice(0, 12)}`)
  if (!existsSync(target)) make(target)
  return `exec '${process.execPath}' --import tsx/esm '${join(target, 'examples/server.ts')}'`
}

/** Elsewhere first, and moved into place in one step. */
function make(target: string): void {
  mkdirSync(CACHE, { recursive: true })
  const draft = mkdtempSync(`${target}-`)
  const archive = join(draft, 'archive.tar')
  const isThere =
    git('archive', '--output', archive, LAST_RELEASE, ...NEEDED) &&
    spawnSync('tar', ['-x', '-f', archive, '-C', draft]).status === 0
  if (!isThere) throw new Error('the last release cannot be unpacked')
  rmSync(archive)
  try {
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { recursive: true })
    if (!existsSync(target)) throw error
  }
}

function git(...args: string[]): boolean {
  return spawnSync('git', args, { cwd: ROOT }).status === 0
}
