import { timeout, type Clock } from '../clock.ts'
import type { CheckMail } from '../ports/index.ts'
import { settingsTable, type Settings } from '../settings/table.ts'
import { checkSmtp, MAIL_STEPS, skippedStep } from './check.ts'
import { smtpSettings } from './settings.ts'

const CHECK_MS = 30_000

/** Checks the settings first, then the server. Takes at most 30 seconds, and 2 to say goodbye. */
export function createMailCheck(clock: Clock): CheckMail {
  return async (settings, options) => {
    const smtp = smtpSettings(settings)
    if (!smtp) return [incomplete(settings), ...MAIL_STEPS.map(skippedStep)]
    const { signal, cancel } = timeout(clock, CHECK_MS)
    try {
      return [complete(settings), ...(await checkSmtp(smtp, { ...options, signal }, clock))]
    } finally {
      cancel()
    }
  }
}

type Configuration = Awaited<ReturnType<CheckMail>>[number]

function incomplete(settings: Settings): Configuration {
  const missing = (['smtpHost', 'smtpPort', 'smtpFrom'] as const)
    .filter((key) => settings[key] === undefined)
    .map((key) => settingsTable[key].name)
  return {
    step: 'configuration',
    status: 'failed',
    message: `Mail is not configured: ${missing.join(' and ')} missing. Until then mails wait.`,
    advice: `Set ${missing.join(' and ')}.`,
  }
}

function complete({ smtpUsername: username, smtpPassword: password }: Settings): Configuration {
  const step = 'configuration'
  if ((username === undefined) === (password === undefined)) {
    return { step, status: 'ok', message: 'smtp_host, smtp_port and smtp_from are set.' }
  }
  const { smtpUsername: user, smtpPassword: secret } = settingsTable
  const [given, missing] =
    username === undefined ? [secret.name, user.name] : [user.name, secret.name]
  return {
    step,
    status: 'warning',
    message: `There is ${given} but no ${missing}, so nobody logs in.`,
    advice: `Set ${missing}, or remove ${given}.`,
  }
}
