import type { Clock } from '../../../clock.ts'
import type { AccessTokens } from '../access-tokens.ts'
import type { Seen } from './failures.ts'
import { smtpConnection, type SmtpConnection } from '../connection.ts'
import { tlsPolicy } from '../settings.ts'

/** Remembers the newest token, so that no answer of the mail server is told that repeats it. */
export function watchedTokens(seen: Seen, tokens: AccessTokens): AccessTokens {
  return {
    async get(...asked) {
      const got = await tokens.get(...asked)
      seen.secret = { password: got.token }
      return got
    },
  }
}

/** A connection that keeps what is said over it, without secrets, and that can say one command alone. */
export function listeningConnection(
  { settings, said, heard }: Seen,
  clock: Clock,
  tokens: AccessTokens,
): SmtpConnection {
  return smtpConnection(settings, clock, tokens, {
    // It is judged before the login: a certificate that is refused during the handshake could not be described.
    tls: { ...tlsPolicy(settings).tls, rejectUnauthorized: false },
    transactionLog: true,
    logger: {
      debug({ tnx }: { tnx?: string }, message: string) {
        if (tnx === 'client') said.push(message)
        if (tnx === 'server') heard.push(message)
      },
    },
    customAuth: {
      // How the library says one command alone: it names sender and recipient only to send a mail.
      ASK({ auth, sendCommand, resolve, reject }) {
        sendCommand(String(auth['command']), (_error, { response }) =>
          response.startsWith('2') ? resolve() : reject('Refused'),
        )
      },
    },
  })
}
