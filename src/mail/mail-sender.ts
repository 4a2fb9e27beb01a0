import { AccountFlowsError } from '../errors.ts'
import type { MailConnection, Mailer } from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import { smtpMailer, type SmtpSettings } from './smtp-mailer.ts'

/** Sends through the SMTP server of the settings in force at that time, or into the development mailbox while there is none. */
export interface MailSender {
  canSend(): boolean
  connect(settings: Settings, signal: AbortSignal): Promise<MailConnection>
  close(): void
}

export function createMailSender(settings: () => Settings, development?: Mailer): MailSender {
  let open: { key: string; mailer: ReturnType<typeof smtpMailer> } | undefined

  // One transport for each set of SMTP settings; the old one is closed when they change.
  function smtp(configured: SmtpSettings): Mailer {
    const key = JSON.stringify(configured)
    if (open?.key !== key) {
      open?.mailer.close()
      open = { key, mailer: smtpMailer(configured) }
    }
    return open.mailer
  }

  return {
    canSend: () => smtpSettings(settings()) !== undefined || development !== undefined,

    async connect(settings) {
      const configured = smtpSettings(settings)
      const mailer = configured ? smtp(configured) : development
      if (!mailer) throw new AccountFlowsError('ERR_MAIL_FAILED', 'SMTP is not configured')
      return { send: (mail) => mailer.send(mail), release() {} }
    },

    close() {
      open?.mailer.close()
      open = undefined
    },
  }
}

// User and password only as a pair (D23).
function smtpSettings(settings: Settings): SmtpSettings | undefined {
  const { smtpHost: host, smtpPort: port, smtpFrom: from } = settings
  const { smtpUsername: username, smtpPassword: password } = settings
  if (host === undefined || port === undefined || from === undefined) return undefined
  return username === undefined || password === undefined
    ? { host, port, from }
    : { host, port, from, username, password }
}
