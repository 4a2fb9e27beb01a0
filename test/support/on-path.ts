import { existsSync } from 'node:fs'
import path from 'node:path'

/** Where the command is that a shell would run. */
export function onPath(command: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter).filter(Boolean)
  return folders.map((folder) => path.join(folder, command)).find((file) => existsSync(file))
}
