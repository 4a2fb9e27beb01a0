import type { Settings } from '../src/admin/client.ts'
import { settingNamed } from '../src/settings/table.ts'
import { usageError } from './exit-codes.ts'
import { askSecret, canAsk } from './prompt.ts'
import { readStdin, readTextFile, readVariable, WAYS_TO_GIVE_A_SECRET } from './secrets.ts'

export interface ValueSources {
  fromStdin?: string
  fromFile?: string[]
  fromEnv?: string[]
  file?: string
}

const KEPT = '***'

export interface SettingArguments {
  assigned: [key: string, value: string][]
  /** Key of a secret to ask for. */
  asked?: string
}

/** The settings that a command line names, from wherever their values are. */
export async function givenSettings(
  { assigned, asked }: SettingArguments,
  sources: ValueSources,
): Promise<Settings> {
  const settings = new Map<string, unknown>()
  const add = (key: string, value: unknown) => {
    if (settings.has(key)) throw usageError('One setting is given twice.')
    settings.set(key, value)
  }
  const fromFile = pairs(sources.fromFile, '--from-file <key>=<path>')
  const fromEnv = pairs(sources.fromEnv, '--from-env <key>=<NAME>')

  for (const [key, value] of assigned) add(key, value)
  for (const [key, name] of fromEnv) {
    add(key, usable(key, readVariable(name, `The environment variable for ${key}`)))
  }
  for (const [key, path] of fromFile) {
    add(key, usable(key, await readTextFile(path, `The file for ${key}`)))
  }
  if (sources.fromStdin !== undefined) {
    add(sources.fromStdin, usable(sources.fromStdin, await readStdin(`${sources.fromStdin}: `)))
  }
  if (sources.file !== undefined) {
    for (const [key, value] of await readSettingsFile(sources.file)) add(key, value)
  }
  if (asked !== undefined) add(asked, usable(asked, await askSecret(`${asked}: `)))
  if (settings.size === 0) throw usageError('Which setting? Give <key>=<value>, or see --help.')
  // The server judges names and values.
  return Object.fromEntries(settings)
}

/** Refuses a secret. No argument is repeated in a message: it may be the secret. */
export function readArguments(args: string[]): SettingArguments {
  const [first = '', second] = args
  if (args.length === 0) return { assigned: [] }
  const isPair = args.length === 2 && !first.includes('=')
  const isAsked = args.length === 1 && !first.includes('=')
  if (isAsked) {
    if (!isSecret(first)) throw usageError('Which value? Give <key> <value>, or <key>=<value>.')
    if (!canAsk()) throw usageError(`There is no terminal to ask at. ${WAYS_TO_GIVE_A_SECRET}`)
    return { assigned: [], asked: first }
  }
  const assigned: [string, string][] = isPair
    ? [[first, second ?? '']]
    : pairs(args, '<key>=<value>')
  for (const [key, value] of assigned) {
    if (isSecret(key) && value !== '' && value !== KEPT) {
      throw usageError(
        `A secret is never an argument, where others can see it; nothing was sent. ${WAYS_TO_GIVE_A_SECRET}`,
      )
    }
  }
  return { assigned }
}

function isSecret(key: string): boolean {
  return settingNamed(key.trim().toLowerCase())?.secret === true
}

function pairs(texts: string[] = [], form: string): [string, string][] {
  return texts.map((text, index) => {
    const at = text.indexOf('=')
    if (at < 0) throw usageError(`Number ${index + 1} of what was given is not ${form}.`)
    return [text.slice(0, at), text.slice(at + 1)]
  })
}

/** An empty secret is what a failed command pipes; to forget one is said on purpose. */
function usable(key: string, value: string): string {
  if (value === '' && isSecret(key)) {
    throw usageError(`There is nothing in it. To forget it: account-flows settings unset ${key}`)
  }
  return value
}

async function readSettingsFile(path: string): Promise<[string, unknown][]> {
  const text = path === '-' ? await readStdin('Settings: ') : await readTextFile(path, 'The file')
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw usageError('The file must hold one JSON object, of settings by name.')
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
