import { readdir, rm } from 'node:fs/promises'
import path from 'node:path'

/** Removes what processes left behind that were killed: everything that begins with the prefix and a pid that is gone. */
export async function removeAbandoned(folder: string, prefix: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const pid = name.startsWith(prefix) && parseInt(name.slice(prefix.length), 10)
    if (!pid || isRunning(pid)) continue
    // What another user left is that user's.
    await rm(path.join(folder, name), { recursive: true, force: true }).catch(() => {})
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code !== 'ESRCH'
  }
}
