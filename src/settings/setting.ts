export type SettingType = 'duration' | 'boolean' | 'choice' | 'number' | 'text'

export interface Setting<T> {
  /** Its name on the wire. */
  name: string
  type: SettingType
  /** As sent over the wire. `undefined`: none. */
  default: string | undefined
  /** In force where the stored value is not valid, and none was in force before. `undefined`: the default, whatever was before. */
  strictest?: string
  /** From the least to the most that is accepted. `undefined`: `expected` says it all. */
  bounds: string | undefined
  /** What a value must be, to end the sentence "expected …". */
  expected: string
  /** The values that there are. `undefined`: more than can be told. */
  values: readonly string[] | undefined
  meaning: string
  /** Secrets are encrypted at rest and shown as `"***"`. */
  secret: boolean
  /** `undefined`: not acceptable. */
  parse(value: string): T | undefined
}

/** Settings by name, as sent over the wire. */
export type Values = Record<string, string>

/** Tells what is wrong with a stored value, never the value. */
export type Report = (key: string, value: string, problem: string) => void

/** One thing wrong with a request to change settings. */
export interface SettingProblem {
  key: string
  expected: string
  /** What came; never the value of a secret, or of a setting that does not exist. */
  got: string
}

/** `undefined`: there is none, also by default. */
export function parseOne<T>(
  setting: Setting<T>,
  value: string | undefined,
  report?: Report,
): T | undefined {
  if (value !== undefined) {
    const parsed = setting.parse(value)
    if (parsed !== undefined) return parsed === '' ? undefined : parsed
    report?.(setting.name, value, 'the stored value is not valid; the default is in force')
  }
  return setting.default === undefined ? undefined : setting.parse(setting.default)
}
