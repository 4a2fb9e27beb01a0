import { existsSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suiteOf } from './suite.ts'

/** Of the checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The texts of the TypeScript files below these folders, by their paths from the root. */
export async function sourcesIn(...folders: string[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const folder of folders) {
    for (const name of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!name.endsWith('.ts')) continue
      texts.set(join(folder, name), await readFile(join(ROOT, folder, name), 'utf8'))
    }
  }
  return texts
}

/** An empty folder of the suite that asks for it: the paths of files in it, by their names. */
export function suiteFolder(): (name: string) => string {
  const folder = suiteOf<{ path: string }>(
    async () => ({ path: await mkdtemp(join(tmpdir(), 'account-flows-test-')) }),
    ({ path }) => rm(path, { recursive: true, force: true }),
  )
  return (name) => join(folder.path, name)
}

const MEMORY_FOLDER = '/dev/shm'
/** More than all servers of a test run need. */
const ROOM = 2 ** 30
const NO_ROOM = { bavail: 0, bsize: 0 }

/** Where databases are, without those that were left behind: in memory where there is room, as most of their time goes into waits for a disk. */
export function folderForData(prefix: string): string {
  const { bavail, bsize } = existsSync(MEMORY_FOLDER) ? statfsSync(MEMORY_FOLDER) : NO_ROOM
  const isRoomy = Math.min(bavail * bsize, process.availableMemory()) > ROOM
  const folder = isRoomy ? MEMORY_FOLDER : tmpdir()
  removeAbandoned(folder, prefix)
  return folder
}

/** Removes what processes left behind that were killed: everything that begins with the prefix and a pid that is gone. */
export function removeAbandoned(folder: string, prefix: string): void {
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(prefix) && parseInt(name.slice(prefix.length), 10)
    if (!pid || isRunning(pid)) continue
    try {
      rmSync(join(folder, name), { recursive: true, force: true })
    } catch {
      // What another user left is that user's.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code !== 'ESRCH'
  }
}
