import { refused, usageError, type CliError } from './exit-codes.ts'
import { WAYS_TO_GIVE_A_SECRET } from './secrets.ts'
import { fitted, table } from './table.ts'
import { allSettings, settingNamed } from '../src/settings/table.ts'

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
