import type { Settings } from '../src/admin/client.ts'
import { isJsonObject, jsonOf } from '../src/errors.ts'
import { refused, usageError, type CliError } from './failure.ts'
import type { Io, Run } from './io.ts'
import {
  WAYS_TO_GIVE_A_SECRET,
  ask,
  canAsk,
  readStdin,
  readTextFile,
  readVariable,
} from './input.ts'
import { fitted, table } from './table.ts'
import { allSettings, settingNamed } from '../src/settings/table.ts'

export interface ValueSources {
  fromStdin?: string
  fromFile?: string[] | undefined
  fromEnv?: string[] | undefined
  file?: string
}

const KEPT = '***'

/** A setting that a command line names, and how its value is read. */
type Named = [key: string, read: (run: Run) => string | Promise<string>]

/** The settings that a command line names, from wherever their values are. */
export async function givenSettings(
  run: Run,
  { named, file }: ReturnType<typeof readNames>,
): Promise<Settings> {
  const settings = new Map<string, unknown>()
  const add = (key: string, value: unknown) => {
    if (settings.has(key)) throw usageError('One setting is given twice.')
    settings.set(key, value)
  }
  if (file !== undefined) {
    for (const [key, value] of await readSettingsFile(run, file)) add(key, value)
  }
  for (const [key, read] of named) add(key, await read(run))
  if (settings.size === 0) throw usageError('Which setting? Give <key>=<value>, or see --help.')
  // The server judges values, and the names that are in a file.
  return Object.fromEntries(settings)
}

/** Refuses a secret, and what is no name. No argument is repeated in a message: it may be the secret. */
export function readNames(io: Io, args: string[], sources: ValueSources) {
  const given = readArguments(io, args)
  const { fromStdin, file } = sources
  const elsewhere: Named[] = [
    ...pairs(sources.fromEnv, '--from-env <key>=<NAME>').map(([key, name]): Named => {
      return [key, ({ io }) => readVariable(io, name, `The environment variable for ${key}`)]
    }),
    ...pairs(sources.fromFile, '--from-file <key>=<path>').map(([key, path]): Named => {
      return [key, () => readTextFile(path, `The file for ${key}`)]
    }),
  ]
  if (fromStdin !== undefined)
    elsewhere.push([fromStdin, (run) => readStdin(run, `${fromStdin}: `)])
  requireNames([...given, ...elsewhere].map(([key]) => key))
  return { named: [...given, ...elsewhere.map(usable)], file }
}

function readArguments(io: Io, args: string[]): Named[] {
  const [first = '', second = ''] = args
  if (args.length === 1 && !first.includes('=')) return [usable(askedFor(io, first))]
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
  return assigned.map(([key, value]) => [key, () => value])
}

function askedFor(io: Io, name: string): Named {
  if (!meansSecret(name)) throw usageError('Which value? Give <key> <value>, or <key>=<value>.')
  if (!isSecret(name)) throw usageError(`A secret has another name. ${WAYS_TO_GIVE_A_SECRET}`)
  if (!canAsk(io)) throw usageError(`There is no terminal to ask. ${WAYS_TO_GIVE_A_SECRET}`)
  return [name, (run) => ask(run.io, `${name}: `)]
}

function pairs(texts: string[] = [], form: string): [string, string][] {
  return texts.map((text, index) => {
    const at = text.indexOf('=')
    if (at < 0) throw usageError(`Argument ${index + 1} is not ${form}.`)
    return [text.slice(0, at), text.slice(at + 1)]
  })
}

/** An empty secret is what a failed command pipes; to forget one is said on purpose. */
function usable([key, read]: Named): Named {
  return [
    key,
    async (run) => {
      const value = await read(run)
      if (value !== '' || !isSecret(key)) return value
      throw usageError(`The value is empty. To remove it: account-flows settings unset ${key}`)
    },
  ]
}

async function readSettingsFile(run: Run, path: string): Promise<[string, unknown][]> {
  const text =
    path === '-' ? await readStdin(run, 'Settings: ') : await readTextFile(path, 'The file')
  const value = jsonOf(text)
  if (value === undefined) throw usageError('The file is not JSON.')
  if (!isJsonObject(value)) {
    throw usageError('The file must be one JSON object with settings by name.')
  }
  // What `settings get --json` says beside the settings.
  return Object.entries(value).filter(
    ([key, value]) => !(key === 'warnings' && Array.isArray(value)),
  )
}

const MISTYPED_LETTERS = 2

export function isSecret(name: string): boolean {
  return settingNamed(name)?.secret === true
}

/** Whether a secret is meant, however it is spelled. */
export function meansSecret(name: string): boolean {
  return settingNamed(name) ? isSecret(name) : settingsLike(name).some(({ secret }) => secret)
}

/** Refuses what is no name before anything is sent. It is not repeated: it may hold a secret. */
export function requireNames(names: string[]): void {
  for (const [index, name] of names.entries()) {
    if (settingNamed(name)) continue
    const at = name.indexOf('=')
    if (at >= 0) {
      const ways = meansSecret(name.slice(0, at)) ? ` ${WAYS_TO_GIVE_A_SECRET}` : ''
      throw usageError(`A name must not have "=". Nothing was sent.${ways}`)
    }
    const what = `Argument ${index + 1} is not the name of a setting. Nothing was sent.`
    throw unknownSetting(what, name)
  }
}

/** Does not say what was typed: it may hold a secret. */
export function unknownSetting(what: string, typed: string): CliError {
  const near = settingsLike(typed).map(({ name }) => name)
  const meant = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
  return refused('unknown_setting', `${what}${meant} All names: account-flows settings list`)
}

function settingsLike(typed: string) {
  const given = lettersOf(typed)
  return allSettings.filter(({ name }) => isWithin(MISTYPED_LETTERS, lettersOf(name), given))
}

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '')
}

/** Whether at most so many letters are more, fewer or others. */
function isWithin(letters: number, one: string, other: string): boolean {
  if (letters < 0) return false
  let same = 0
  while (same < one.length && one[same] === other[same]) same++
  const [left, right] = [one.slice(same), other.slice(same)]
  if (left === '' || right === '') return left.length + right.length <= letters
  return (
    isWithin(letters - 1, left.slice(1), right.slice(1)) ||
    isWithin(letters - 1, left.slice(1), right) ||
    isWithin(letters - 1, left, right.slice(1))
  )
}

/** Every setting, for the help of `settings set`. */
export function settingsHelp(columns: number | undefined): string {
  const rows = allSettings.map(
    ({ name, default: byDefault = 'none', meaning, expected, secret }) => [
      secret ? `${name} (secret)` : name,
      byDefault,
      `${meaning} Expected: ${expected}.`,
    ],
  )
  return `\nSettings:\n${fitted(table(['setting', 'default', 'meaning'], rows, columns), columns)}`
}
