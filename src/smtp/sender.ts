import type { Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import type { Mailer, MailSender } from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import { smtpPool, type SmtpPool } from './pool.ts'
import { smtpSettings, type SmtpSettings } from './settings.ts'

export function createMailSender(
  settings: () => Settings,
  clock: Clock,
  development?: Mailer,
): MailSender {
  const pools = new Map<string, SmtpPool>()

  // One pool for each set of SMTP settings, the credentials included; the old one is closed when they change. It is kept until it
  // is empty, so that settings that come back find it, and not a second one.
  function poolOf(configured: SmtpSettings): SmtpPool {
    const key = JSON.stringify(configured)
    for (const [other, pool] of pools) {
      if (other === key) continue
      pool.close()
      if (pool.isEmpty()) pools.delete(other)
    }
    const pool = pools.get(key) ?? smtpPool(configured, clock)
    pools.set(key, pool)
    return pool
  }

  return {
    canSend: () => smtpSettings(settings()) !== undefined || development !== undefined,

    async connect(settings, signal) {
      const configured = smtpSettings(settings)
      if (configured) return poolOf(configured).connect(signal)
      if (!development) throw new AccountFlowsError('ERR_MAIL_FAILED', 'SMTP is not configured')
      return { send: (mail) => development.send(mail), release() {} }
    },

    close() {
      for (const pool of pools.values()) pool.close()
    },
  }
}
