import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface ViewFile {
  /** Below the directory, such as `pages/error.pug`. */
  name: string
  text: string
  isHosts: boolean
}

export type ViewFiles = ReturnType<typeof readViewFiles>

/** Files of editors and systems, and notes. */
const IGNORED = /^\.|~$|\.md$/
const FOLDERS = new Set(['pages', 'mails', 'locales'])

const OURS = fileURLToPath(new URL('../../views/', import.meta.url))

let own: ReadonlyMap<string, ViewFile> | undefined

/** Our own files never change, so each process reads them once. */
export function readViewFiles(directory: string | undefined, problems: string[]) {
  const ours = (own ??= readDirectory(OURS, false, problems))
  const hosts =
    directory === undefined ? new Map<string, ViewFile>() : readDirectory(directory, true, problems)
  return {
    own: ours,
    hosts,
    find: (name: string) => hosts.get(name) ?? ours.get(name),
    hasHostsTemplates: [...hosts.keys()].some((name) => /^(pages|mails)\//.test(name)),
  }
}

/** The files that a damaged package lacks: of `entries`, and of the files that templates include. */
export function missingFrom(own: ReadonlyMap<string, ViewFile>, entries: string[]): string[] {
  const parts = [...own.values()].flatMap(({ name, text }) =>
    [...text.matchAll(/^ *(?:extends|include) (\S+)$/gm)].map(([, part = '']) =>
      posix.join(posix.dirname(name), part.includes('.') ? part : `${part}.pug`),
    ),
  )
  return [...new Set([...entries, ...parts])].filter((name) => !own.has(name))
}

function readDirectory(directory: string, isHosts: boolean, problems: string[]) {
  const files = new Map<string, ViewFile>()
  const root = realpathSync(directory)

  function attempt<T>(work: () => T, problem: string): T | undefined {
    try {
      return work()
    } catch {
      problems.push(problem)
      return undefined
    }
  }

  // Links within the directory are followed, because mounted configuration consists of them.
  function walk(folder: string, above: readonly string[]) {
    const read = () => readdirSync(join(root, folder)).toSorted()
    for (const entry of attempt(read, `${folder || directory} cannot be read`) ?? []) {
      if (IGNORED.test(entry)) continue
      const name = folder ? `${folder}/${entry}` : entry
      const missing = `${name} is a link to a file that does not exist`
      const path = attempt(() => realpathSync(join(root, name)), missing)
      if (path === undefined) continue
      const stats = statSync(path)
      if (isHosts && !path.startsWith(root + sep))
        problems.push(`${name} is a link to a file outside the directory`)
      else if (stats.isFile()) {
        const text = attempt(() => readFileSync(path, 'utf8'), `${name} cannot be read`)
        if (text !== undefined) files.set(name, { name, text, isHosts })
      } else if (!stats.isDirectory()) problems.push(`${name} is not a file`)
      // Keeps only the name, for the warning.
      else if (!folder && !FOLDERS.has(entry))
        files.set(`${name}/`, { name: `${name}/`, text: '', isHosts })
      else if (!above.includes(path)) walk(name, [...above, path])
    }
  }

  walk('', [])
  return files
}
