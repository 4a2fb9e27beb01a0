import type { Clock } from '../../clock.ts'
import { AccountFlowsError } from '../../errors.ts'
import type { MailTransport } from '../../contract/index.ts'
import type { Settings } from '../../settings/table.ts'
import { createAccessTokens, tokenKey, type RefreshTokens } from './access-tokens.ts'
import { createLine, createConnectionGate, type Line, type Peer } from './line.ts'
import { nodemailer } from './nodemailer.ts'
import { createMailServer } from './server.ts'
import { smtpSettings, type SmtpSettings } from './settings.ts'
import { handOver, isInUse } from './transport.ts'
import type { MailSender } from '../sending.ts'

export function createMailSender(
  settings: () => Settings,
  clock: Clock,
  refreshTokens: RefreshTokens,
  transport?: MailTransport,
): MailSender {
  if (!transport) nodemailer()
  const all = new Map<string, Line>()
  const tokens = createAccessTokens(clock, refreshTokens)
  const toTransport = transport && createLine(clock, transportPeer(transport, settings))

  // Each set of SMTP settings, the credentials included, has its own; the connections of the others are closed. A line is kept
  // until it is empty, so that settings that come back find its connections, and not five more.
  function toServer(configured: SmtpSettings): Line {
    const { oauth, ...others } = configured
    const key = JSON.stringify([others, oauth && tokenKey(oauth)])
    for (const [other, line] of all) {
      if (other === key) continue
      line.close()
      if (line.isEmpty()) all.delete(other)
    }
    const line = all.get(key) ?? createLine(clock, createMailServer(configured, clock, tokens))
    all.set(key, line)
    line.use()
    return line
  }

  function lineNow(): Line {
    if (toTransport && isInUse(transport, settings())) return toTransport
    const configured = smtpSettings(settings())
    if (configured) return toServer(configured)
    throw new AccountFlowsError('ERR_MAIL_FAILED', 'SMTP is not configured')
  }

  return {
    canSend: () => smtpSettings(settings()) !== undefined || isInUse(transport, settings()),

    async withPlace(stop, work) {
      const line = lineNow()
      return line.withPlace(stop, async (place) => (line === lineNow() ? work(place) : undefined))
    },

    close() {
      for (const line of all.values()) line.close()
    },
  }
}

function transportPeer(transport: MailTransport, settings: () => Settings): Peer {
  return {
    connections: createConnectionGate(),
    open: async (signal) => ({
      send: (mail) => handOver(transport, mail, settings(), signal),
      end: async () => {},
    }),
    close() {},
    use() {},
  }
}
