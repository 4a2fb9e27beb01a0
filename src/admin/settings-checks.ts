import type { CheckedStep } from '../ports/index.ts'
import type { SettingsKeeper } from '../settings/settings.ts'

export type StoredSettingsKeeper = Pick<SettingsKeeper, 'refresh' | 'reseal' | 'faults'>

/** What the doctor says of the stored secrets. */
export async function secretsCheck(
  settings: StoredSettingsKeeper,
): Promise<CheckedStep<'secrets'>> {
  const step = 'secrets'
  const outcome = await settings.reseal({ isDryRun: true })
  if (outcome === 'unreadable') return { step, status: 'skipped', message: 'Not tried.' }
  const { resealed, unreadable } = outcome
  if (unreadable.length > 0) {
    return {
      step,
      status: 'failed',
      message: `No key of the ring opens ${unreadable.join(', ')}.`,
      advice: 'Put the former key back behind the first, or set the value again.',
    }
  }
  if (resealed.length === 0) {
    return { step, status: 'ok', message: 'Stored secrets are encrypted with the first key.' }
  }
  return {
    step,
    status: 'warning',
    message: `${resealed.join(', ')}: encrypted with a key that is not the first, and still needed.`,
    advice: 'Run account-flows keys rotate once all processes have the same key in front.',
  }
}

/** What the doctor says of everything that is stored of the settings. */
export async function settingsCheck(
  settings: StoredSettingsKeeper,
): Promise<CheckedStep<'settings'>> {
  const step = 'settings'
  await settings.refresh()
  const faults = settings.faults()
  if (faults.length === 0) return { step, status: 'ok', message: 'All stored settings are valid.' }
  return {
    step,
    status: 'failed',
    message: `${faults.map(({ key, problem }) => `${key}: ${problem}`).join('. ')}.`,
    advice:
      'Set or unset what is not valid with account-flows settings; repair or delete a record that cannot be read in the database.',
  }
}
