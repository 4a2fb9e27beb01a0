import { timeout, type Clock } from '../../clock.ts'
import type { MailTransport } from '../../contract/index.ts'
import { AccountFlowsError } from '../../errors.ts'
import { missingForLogin } from '../../settings/rules.ts'
import { isSmtpConfigured, settingsTable, type Settings } from '../../settings/table.ts'
import { finding, type CheckMail, type Finding, type MailCheckOptions } from '../sending.ts'
import { createAccessTokens, type RefreshTokens } from './access-tokens.ts'
import { CHECK_MS, checkServer, stepsOf } from './check/server.ts'
import { smtpSettings } from './connection.ts'
import { handOver } from './transport.ts'

export function createMailCheck(
  clock: Clock,
  refreshTokens: RefreshTokens,
  transport?: MailTransport,
): CheckMail {
  // The checked settings may not be those in force.
  const givenTokens: RefreshTokens = {
    ...refreshTokens,
    current: ({ smtpOauthRefreshToken }) => smtpOauthRefreshToken,
    latest: async () => undefined,
  }

  return async (settings, options) => {
    // Production mails never leave through a stand-in, so the check covers SMTP instead.
    if (transport && !transport.isStandIn) {
      return [
        { step: 'configuration', ...checkSender(settings) },
        { step: 'transport', ...(await checkTransport(transport, settings, options, clock)) },
      ]
    }
    const smtp = smtpSettings(settings)
    // A held token would hide that the endpoint gives no new one.
    const tokens = createAccessTokens(clock, givenTokens, settings)
    const checked = smtp ? await checkServer({ settings: smtp, clock, tokens }, options) : []
    const isFailed = !smtp || checked.some(({ status }) => status === 'failed')
    const message = isFailed ? 'Not tried: an earlier step failed.' : 'No mail was sent.'
    const rest = stepsOf(smtp).slice(checked.length)
    return [
      { step: 'configuration', ...checkSettings(settings) },
      ...checked,
      ...rest.map((step) => ({ step, status: 'skipped', message }) as const),
    ]
  }
}

function checkSettings(settings: Settings): Finding {
  if (settings.smtpFault !== undefined) {
    const message = `${settings.smtpFault}. Mails wait until this is mended.`
    return finding('failed', message, 'Put the key back, or set the value again.')
  }
  const missing = (['smtpHost', 'smtpPort', 'smtpFrom'] as const)
    .filter((key) => settings[key] === undefined)
    .map((key) => settingsTable[key].name)
    .join(' and ')
  if (missing) {
    const message = `Mail is not configured: ${missing} missing. Mails wait until it is set.`
    return finding('failed', message, `Set ${missing}.`)
  }
  const half = missingForLogin(settings).join(' and ')
  if (!half) return finding('ok', 'smtp_host, smtp_port and smtp_from are set.')
  if (settings.smtpAuth === 'xoauth2') {
    const message = `smtp_auth is xoauth2, but ${half} missing, so there is no login.`
    return finding('warning', message, `Set ${half}.`)
  }
  const given = half === 'smtp_username' ? 'smtp_password' : 'smtp_username'
  const message = `${given} is set but ${half} is not, so there is no login.`
  return finding('warning', message, `Set ${half}, or remove ${given}.`)
}

/** Replaces the SMTP steps. Only a handed-over mail shows whether a transport works. */
async function checkTransport(
  transport: MailTransport,
  settings: Settings,
  { to, mail }: MailCheckOptions,
  clock: Clock,
): Promise<Finding> {
  if (to === undefined || !mail) {
    const message = 'Not checked: only a sent mail shows that the transport works.'
    return finding('skipped', message, 'Run account-flows mail test --to <your address>.')
  }
  const { signal, cancel } = timeout(clock, CHECK_MS)
  try {
    const { queueId } = await handOver(transport, { ...mail, to }, settings, signal)
    const name = queueId === undefined ? '' : `, as ${queueId}`
    return finding('ok', `The transport accepted the mail${name}.`)
  } catch (error) {
    if (!(error instanceof AccountFlowsError)) throw error
    const advice = 'Read what the mail service says, and check your code in the option transport.'
    return finding('failed', `${error.message}.`, advice, error.fault?.reply)
  } finally {
    cancel()
  }
}

function checkSender(settings: Settings): Finding {
  const { smtpFrom: from } = settings
  const unset = 'smtp_from is not set, so the transport chooses the sender'
  const sender = from === undefined ? unset : `the sender is ${from}`
  const message = `Mails go to the transport of this server; ${sender}.`
  if (!isSmtpConfigured(settings)) return finding('ok', message)
  const advice =
    'smtp_host and smtp_port are set, but not used: unset them, or remove the option transport.'
  return finding('advice', message, advice)
}
