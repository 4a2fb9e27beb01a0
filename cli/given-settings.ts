/** Settings and their values on a command line. No message repeats what the user typed: it may be a secret. */
import type { Settings } from '../src/admin/client.ts'
import { isJsonObject, jsonOf } from '../src/errors.ts'
import { MASK } from '../src/settings/rules.ts'
import { allSettings, settingNamed } from '../src/settings/table.ts'
import { refused, usageError } from './failure.ts'
import type { Io, Run } from './output.ts'
import { ask, canAsk, readStdin, readTextFile, readVariable } from './input.ts'

export interface ValueSources {
  fromStdin?: string
  fromFile?: string[] | undefined
  fromEnv?: string[] | undefined
  file?: string
}

/** A refusal says this, and does not repeat the value. */
const WAYS_TO_GIVE_A_SECRET = `Give it in one of these ways:
  account-flows settings set smtp_password                      asks for it, without showing it
  account-flows settings set --from-stdin smtp_password         reads it from stdin
  account-flows settings set --from-file smtp_password=<path>   reads it from a file
  account-flows settings set --from-env smtp_password=<NAME>    reads it from an environment variable`

/** A setting that a command line names, and how its value is read. */
type Named = [key: string, read: (run: Run) => string | Promise<string>]

/** The settings that a command line names, with their values from all sources. */
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
  // The server checks values, and the names that are in a file.
  return Object.fromEntries(settings)
}

/** Reads the names of the settings. It refuses a secret in an argument, and unknown names. Each list of arguments is read by itself. */
export function readNames(io: Io, lists: string[][], sources: ValueSources) {
  const given = lists.flatMap((args) => readArguments(io, args))
  const { fromStdin, fromFile, fromEnv, file } = sources
  const named = [
    ...given,
    ...pairs(fromEnv, '--from-env <key>=<NAME>').map(([key, name]) =>
      usable(key, ({ io }) => readVariable(io, name, `The environment variable for ${key}`)),
    ),
    ...pairs(fromFile, '--from-file <key>=<path>').map(([key, path]) =>
      usable(key, () => readTextFile(path, `The file for ${key}`)),
    ),
    ...(fromStdin === undefined
      ? []
      : [usable(fromStdin, (run) => readStdin(run, `${fromStdin}: `))]),
  ]
  requireNames(named.map(([key]) => key))
  return { named, file }
}

function readArguments(io: Io, args: string[]): Named[] {
  const [first = '', second = ''] = args
  if (args.length === 1 && !first.includes('=')) return [askedFor(io, first)]
  const isPair = args.length === 2 && !first.includes('=')
  const assigned: [string, string][] = isPair ? [[first, second]] : pairs(args, '<key>=<value>')
  // A key before a pair is a slip, and the pair may hold a secret.
  const mayBeSecret =
    isPair && second.includes('=') ? [...assigned, ...pairs([second], '')] : assigned
  for (const [key, value] of mayBeSecret) {
    const isTold = isSecret(key) && (value === '' || value === MASK)
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
  return usable(name, (run) => ask(run.io, `${name}: `))
}

function pairs(texts: string[] = [], form: string): [string, string][] {
  return texts.map((text, index) => {
    const at = text.indexOf('=')
    if (at < 0) throw usageError(`Argument ${index + 1} is not ${form}.`)
    return [text.slice(0, at), text.slice(at + 1)]
  })
}

/** Refuses an empty secret, which a failed command may have piped. `settings unset` deletes a secret. */
function usable(...[key, read]: Named): Named {
  const readOrRefuse = async (run: Run) => {
    const value = await read(run)
    if (value !== '' || !isSecret(key)) return value
    throw usageError(`The value is empty. To remove it: account-flows settings unset ${key}`)
  }
  return [key, readOrRefuse]
}

async function readSettingsFile(run: Run, path: string): Promise<[string, unknown][]> {
  const text =
    path === '-' ? await readStdin(run, 'Settings: ') : await readTextFile(path, 'The file')
  const value = jsonOf(text)
  if (value === undefined) throw usageError('The file is not JSON.')
  if (!isJsonObject(value)) {
    throw usageError('The file must be one JSON object with settings by name.')
  }
  // `settings get --json` prints `warnings` beside the settings.
  return Object.entries(value).filter(
    ([key, value]) => !(key === 'warnings' && Array.isArray(value)),
  )
}

const MISTYPED_LETTERS = 2

const isSecret = (name: string) => settingNamed(name)?.secret === true

/** Whether a secret is meant, however it is spelled. */
function meansSecret(name: string): boolean {
  return settingNamed(name) ? isSecret(name) : settingsLike(name).some(({ secret }) => secret)
}

/** Refuses unknown names, before anything is sent. */
export function requireNames(names: string[]): void {
  for (const [index, name] of names.entries()) {
    if (settingNamed(name)) continue
    const at = name.indexOf('=')
    if (at >= 0) {
      const ways = meansSecret(name.slice(0, at)) ? ` ${WAYS_TO_GIVE_A_SECRET}` : ''
      throw usageError(`A name must not have "=". Nothing was sent.${ways}`)
    }
    const near = settingsLike(name).map(({ name }) => name)
    const meant = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`
    const what = `Argument ${index + 1} is not the name of a setting. Nothing was sent.${meant}`
    throw refused('unknown_setting', `${what} All names: account-flows settings list`)
  }
}

function settingsLike(typed: string) {
  const given = lettersOf(typed)
  return allSettings.filter(({ name }) => isWithin(MISTYPED_LETTERS, lettersOf(name), given))
}

const lettersOf = (name: string) => name.toLowerCase().replace(/[\s_-]/g, '')

/** Whether the texts differ by at most so many letters: added, missing or replaced. */
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
