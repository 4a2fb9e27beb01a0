import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const made: string[] = []

/** A directory with these files, by their names below it. */
export function viewsDirectory(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'views-'))
  made.push(directory)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  return directory
}

export function removeViewsDirectories(): void {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true })
}
