import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'

/** A file of a views directory, read once. */
export interface ViewFile {
  /** Below the directory, such as `pages/error.pug`. */
  name: string
  text: string
  isHosts: boolean
}

/** Ours, and what a host puts in their place; nothing else on the disk can be named. */
export interface ViewFiles {
  own: ReadonlyMap<string, ViewFile>
  hosts: ReadonlyMap<string, ViewFile>
  /** The host's where there is one, otherwise ours. */
  find(name: string): ViewFile | undefined
  hasHostsTemplates: boolean
}

const FOLDERS = new Set(['pages', 'mails', 'locales'])

const read = new Map<string, ReadonlyMap<string, ViewFile>>()

/**
 * The package's own files never change: they are read once in a process.
 *
 * @param problems - takes what is wrong with the host's directory.
 */
export function readViewFiles(
  ownDirectory: string,
  directory: string | undefined,
  problems: string[],
): ViewFiles {
  const own = read.get(ownDirectory) ?? readDirectory(ownDirectory, false, problems)
  read.set(ownDirectory, own)
  const hosts =
    directory === undefined ? new Map<string, ViewFile>() : readDirectory(directory, true, problems)
  return {
    own,
    hosts,
    find: (name) => hosts.get(name) ?? own.get(name),
    hasHostsTemplates: [...hosts.keys()].some((name) => /^(pages|mails)\//.test(name)),
  }
}

function readDirectory(
  directory: string,
  isHosts: boolean,
  problems: string[],
): Map<string, ViewFile> {
  const files = new Map<string, ViewFile>()
  const root = realpathSync(directory)

  function add(name: string, path: string) {
    try {
      files.set(name, { name, text: readFileSync(path, 'utf8'), isHosts })
    } catch {
      problems.push(`${name} cannot be read`)
    }
  }

  /** So that it can be told of. */
  function addUnread(name: string) {
    files.set(name, { name, text: '', isHosts })
  }

  function entriesOf(folder: string): string[] {
    try {
      return readdirSync(join(root, folder)).filter(isShown).toSorted()
    } catch {
      problems.push(`${folder || directory} cannot be read`)
      return []
    }
  }

  // Links within the directory are followed: mounted configuration is made of them.
  function walk(folder: string, above: readonly string[]) {
    for (const entry of entriesOf(folder)) {
      const name = folder ? `${folder}/${entry}` : entry
      const path = realPath(join(root, name))
      const kind = path === undefined ? undefined : statSync(path)
      if (path === undefined || kind === undefined)
        problems.push(`${name} is a link to a file that does not exist`)
      else if (isHosts && !path.startsWith(root + sep))
        problems.push(`${name} is a link to a file outside the directory`)
      else if (kind.isFile()) add(name, path)
      else if (!kind.isDirectory()) problems.push(`${name} is not a file`)
      else if (!folder && !FOLDERS.has(entry)) addUnread(`${name}/`)
      else if (!above.includes(path)) walk(name, [...above, path])
    }
  }

  walk('', [])
  return files
}

/** Not what editors and systems keep beside the files. */
function isShown(name: string): boolean {
  return !/^\.|~$|\.md$/.test(name)
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
