import { timeout, type Clock } from '../../../clock.ts'
import { AccountFlowsError } from '../../../errors.ts'
import type { MailTransport } from '../../../contract/index.ts'
import { isSmtpConfigured, type Settings } from '../../../settings/table.ts'
import { finding } from './failures.ts'
import { handOver } from '../transport.ts'
import type { CheckedStep, MailCheckOptions } from '../../sending.ts'

const CHECK_MS = 30_000

/** In place of the SMTP steps. A transport shows what it does only where it is handed a mail. */
export async function checkTransport(
  transport: MailTransport,
  settings: Settings,
  { to, mail }: MailCheckOptions,
  clock: Clock,
): Promise<CheckedStep<'configuration' | 'transport'>[]> {
  const configuration = { step: 'configuration', ...judgeSettings(settings) } as const
  if (to === undefined || !mail) {
    const message = 'Not checked: only a sent mail shows that the transport works.'
    const advice = 'Run account-flows mail test --to <your address>.'
    return [configuration, { step: 'transport', ...finding('skipped', message, { advice }) }]
  }
  const { signal, cancel } = timeout(clock, CHECK_MS)
  try {
    const { queueId } = await handOver(transport, { ...mail, to }, settings, signal)
    const message = `The transport accepted the mail${queueId === undefined ? '' : `, as ${queueId}`}.`
    return [configuration, { step: 'transport', ...finding('ok', message) }]
  } catch (error) {
    if (!(error instanceof AccountFlowsError)) throw error
    const { reply } = error.fault ?? {}
    const advice = 'Read what the mail service says, and check your code in the option transport.'
    const told = { advice, ...(reply !== undefined && { reply }) }
    return [configuration, { step: 'transport', ...finding('failed', `${error.message}.`, told) }]
  } finally {
    cancel()
  }
}

function judgeSettings(settings: Settings) {
  const { smtpFrom: from } = settings
  const sender =
    from === undefined
      ? 'smtp_from is not set, so the transport chooses the sender'
      : `the sender is ${from}`
  const message = `Mails go to the transport of this server; ${sender}.`
  if (!isSmtpConfigured(settings)) return finding('ok', message)
  const advice =
    'smtp_host and smtp_port are set, but not used: unset them, or remove the option transport.'
  return finding('advice', message, { advice })
}
