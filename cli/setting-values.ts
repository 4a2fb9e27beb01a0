import type { Settings } from '../src/admin/client.ts'
import { usageError } from './exit-codes.ts'
import type { Io, Run } from './io.ts'
import { askSecret, canAsk } from './prompt.ts'
import { readStdin, readTextFile, readVariable, WAYS_TO_GIVE_A_SECRET } from './secrets.ts'
import { isSecret, meansSecret, requireNames } from './setting-names.ts'

export interface ValueSources {
  fromStdin?: string
  fromFile?: string[]
  fromEnv?: string[]
  file?: string
}

const KEPT = '***'

interface NamedSettings {
  assigned: [key: string, value: string][]
  fromEnv: [key: string, name: string][]
  fromFile: [key: string, path: string][]
  fromStdin?: string | undefined
  /** Key of a secret to ask for. */
  asked?: string | undefined
  /** Path of a file of settings. */
  file?: string | undefined
}

/** The settings that a command line names, from wherever their values are. */
export async function givenSettings(run: Run, named: NamedSettings): Promise<Settings> {
  const { assigned, fromEnv, fromFile, fromStdin, asked, file } = named
  const settings = new Map<string, unknown>()
  const add = (key: string, value: unknown) => {
    if (settings.has(key)) throw usageError('One setting is given twice.')
    settings.set(key, value)
  }

  for (const [key, value] of assigned) add(key, value)
  for (const [key, name] of fromEnv) {
    add(key, usable(key, readVariable(run.io, name, `The environment variable for ${key}`)))
  }
  for (const [key, path] of fromFile) {
    add(key, usable(key, await readTextFile(path, `The file for ${key}`)))
  }
  if (fromStdin !== undefined) {
    add(fromStdin, usable(fromStdin, await readStdin(run, `${fromStdin}: `)))
  }
  if (file !== undefined) {
    for (const [key, value] of await readSettingsFile(run, file)) add(key, value)
  }
  if (asked !== undefined) add(asked, usable(asked, await askSecret(run.io, `${asked}: `)))
  if (settings.size === 0) throw usageError('Which setting? Give <key>=<value>, or see --help.')
  // The server judges values, and the names that are in a file.
  return Object.fromEntries(settings)
}

/** Refuses a secret, and what is no name. No argument is repeated in a message: it may be the secret. */
export function readNames(io: Io, args: string[], sources: ValueSources): NamedSettings {
  const given = readArguments(io, args)
  const fromEnv = pairs(sources.fromEnv, '--from-env <key>=<NAME>')
  const fromFile = pairs(sources.fromFile, '--from-file <key>=<path>')
  const { fromStdin, file } = sources
  requireNames([
    ...[...given.assigned, ...fromEnv, ...fromFile].map(([key]) => key),
    ...(fromStdin === undefined ? [] : [fromStdin]),
  ])
  return { ...given, fromEnv, fromFile, fromStdin, file }
}

function readArguments(io: Io, args: string[]): Pick<NamedSettings, 'assigned' | 'asked'> {
  const [first = '', second = ''] = args
  if (args.length === 1 && !first.includes('=')) return { assigned: [], asked: askedFor(io, first) }
  const isPair = args.length === 2 && !first.includes('=')
  const assigned: [string, string][] = isPair ? [[first, second]] : pairs(args, '<key>=<value>')
  // A key before its pair is a slip that would make a value of the secret.
  const mayBeSecret =
    isPair && second.includes('=') ? [...assigned, ...pairs([second], '')] : assigned
  for (const [key, value] of mayBeSecret) {
    const isTold = isSecret(key) && (value === '' || value === KEPT)
    if (meansSecret(key) && !isTold) {
      throw usageError(
        `A secret is never an argument: others can see arguments. Nothing was sent. ${WAYS_TO_GIVE_A_SECRET}`,
      )
    }
  }
  return { assigned }
}

function askedFor(io: Io, name: string): string {
  if (!meansSecret(name)) throw usageError('Which value? Give <key> <value>, or <key>=<value>.')
  if (!isSecret(name)) throw usageError(`A secret has another name. ${WAYS_TO_GIVE_A_SECRET}`)
  if (!canAsk(io)) throw usageError(`There is no terminal to ask. ${WAYS_TO_GIVE_A_SECRET}`)
  return name
}

function pairs(texts: string[] = [], form: string): [string, string][] {
  return texts.map((text, index) => {
    const at = text.indexOf('=')
    if (at < 0) throw usageError(`Argument ${index + 1} is not ${form}.`)
    return [text.slice(0, at), text.slice(at + 1)]
  })
}

/** An empty secret is what a failed command pipes; to forget one is said on purpose. */
function usable(key: string, value: string): string {
  if (value === '' && isSecret(key)) {
    throw usageError(`The value is empty. To remove it: account-flows settings unset ${key}`)
  }
  return value
}

async function readSettingsFile(run: Run, path: string): Promise<[string, unknown][]> {
  const text =
    path === '-' ? await readStdin(run, 'Settings: ') : await readTextFile(path, 'The file')
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw usageError('The file must be one JSON object with settings by name.')
  }
  // What `settings get --json` says beside the settings.
  return Object.entries(value).filter(
    ([key, value]) => !(key === 'warnings' && Array.isArray(value)),
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw usageError('The file is not JSON.')
  }
}
