import type { Log } from '../ports/index.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { RefreshTokens } from './access-tokens.ts'
import type { OAuthSettings } from './settings.ts'

/** Keeps the newest refresh token among the settings, sealed, for all processes. */
export function createRefreshTokens(
  { current, refresh, change }: Pick<SettingsKeeper, 'current' | 'refresh' | 'change'>,
  log: Log,
): RefreshTokens {
  function inForce({ endpoint, clientId, refreshToken }: OAuthSettings): string | undefined {
    const { smtpOauthTokenEndpoint, smtpOauthClientId, smtpOauthRefreshToken } = current()
    const isSame = smtpOauthTokenEndpoint === endpoint && smtpOauthClientId === clientId
    return isSame ? smtpOauthRefreshToken : refreshToken
  }

  return {
    current: inForce,

    async latest(oauth) {
      await refresh()
      return inForce(oauth)
    },

    async keep(stored, next) {
      let isReplaced = false
      try {
        const outcome = await change(
          { smtp_oauth_refresh_token: next },
          {
            // It is called with what is stored in force. An admin who set another one meant that.
            async announce() {
              isReplaced = current().smtpOauthRefreshToken !== stored
              if (isReplaced) throw new Error('replaced')
            },
          },
        )
        if (typeof outcome === 'string' || Array.isArray(outcome)) throw new Error('not taken')
      } catch {
        if (!isReplaced)
          log('warn', 'a new refresh token could not be stored. This is tried again later')
      }
    },
  }
}
