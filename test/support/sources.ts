import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

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
