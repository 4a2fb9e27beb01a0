import * as z from 'zod'
import { allSettings, type DefaultedName, type SettingTexts } from '../settings/table.ts'
import { count, list, object, optional, text, time } from './schema.ts'

const settingTexts = Object.fromEntries(
  allSettings.map(({ name, meaning, expected, default: byDefault, values, secret }) => {
    const description =
      `${meaning} Expected: ${expected}.` +
      (secret ? ' Shown as "***"; "***" sent back keeps it.' : '')
    const kind: z.ZodType = values ? z.enum([...values]) : text
    const isDefaulted = byDefault !== undefined
    return [name, kind.meta({ description, ...(isDefaulted && { default: byDefault }) })]
  }),
)
const optionalOnes = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, optional(settingTexts[name] ?? text)]))
const undefaulted = allSettings.filter((one) => one.default === undefined).map(({ name }) => name)

export type Settings = Partial<SettingTexts>
/** Not read by this description: the settings judge themselves, and say more. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made of the table that the type is made of
export const Settings = object(
  'Settings by name. All values are strings.',
  optionalOnes(Object.keys(settingTexts)),
) as unknown as z.ZodType<Settings, Settings>

/** Those with a default always have a value. */
export type SettingsInForce = Settings & Pick<SettingTexts, DefaultedName> & { warnings?: string[] }
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
export const SettingsInForce = object(
  'The settings in force. Settings without a value are left out.',
  {
    ...settingTexts,
    ...optionalOnes(undefaulted),
    warnings: optional(list(text, 'Warnings about these settings.')),
  },
) as unknown as z.ZodType<SettingsInForce, SettingsInForce>

export type SettingsVersion = z.infer<typeof SettingsVersion>
export const SettingsVersion = object('One version of the settings.', {
  version: count,
  at: optional(time, 'Left out if a person edited the database.'),
  actor: optional(text, 'Who changed them: the token; `initialSettings`: the host.'),
  changes: optional(
    z
      .array(
        object('A setting that changed. A value that was not stored is left out.', {
          key: text,
          before: optional(text),
          after: optional(text),
        }),
      )
      .describe(
        'Left out if the version before is not kept. The values of secrets are never shown.',
      ),
  ),
  settings: z.record(text, text).describe('What was stored, without secrets.'),
})

export type SettingsHistory = z.infer<typeof SettingsHistory>
export const SettingsHistory = object('The last versions, newest first: the first is in force.', {
  versions: z.array(SettingsVersion),
})

export type KeysRotation = z.infer<typeof KeysRotation>
export const KeysRotation = object(
  'All secrets are now encrypted with the first key of the ring.',
  {
    resealed: list(text, 'Settings that another key had encrypted.'),
    unreadable: list(text, 'Settings that no key of the ring decrypts: set them again.'),
    keys: count.describe('How many keys the ring has.'),
    old_keys_needed_until: optional(
      time,
      'Until this time, verification links may need the other keys of the ring.',
    ),
  },
)
