import type { Log } from '../../contract/index.ts'
import type { SettingsKeeper } from '../../settings/settings.ts'
import type { RefreshTokens } from './access-tokens.ts'
import type { OAuthSettings } from './settings.ts'

/** Keeps the newest refresh token among the settings, sealed, for all processes. */
export function createRefreshTokens(
  { current, refresh, change }: Pick<SettingsKeeper, 'current' | 'refresh' | 'change'>,
  log: Log,
): RefreshTokens {
  let unstored: { next: string; placeOf: string } | undefined

  function newest({ endpoint, clientId, refreshToken }: OAuthSettings): string | undefined {
    const { smtpOauthTokenEndpoint, smtpOauthClientId, smtpOauthRefreshToken } = current()
    const isSame = smtpOauthTokenEndpoint === endpoint && smtpOauthClientId === clientId
    const stored = isSame ? smtpOauthRefreshToken : refreshToken
    return unstored && unstored.placeOf === stored ? unstored.next : stored
  }

  return {
    current: newest,

    async latest(oauth) {
      // The provider has refused it, or never gave it out.
      unstored = undefined
      await refresh()
      return newest(oauth)
    },

    async keep(used, next) {
      const placeOf = unstored?.next === used ? unstored.placeOf : used
      const isPlaceLeft = () => current().smtpOauthRefreshToken === placeOf
      if (next === placeOf || !isPlaceLeft()) return
      unstored = { next, placeOf }
      // It is called with what is stored in force. An admin who set another one meant that.
      const announce = async () => {
        if (!isPlaceLeft()) throw new Error('replaced')
      }
      await change({ smtp_oauth_refresh_token: next }, { announce }).catch(() => {})
      if (!isPlaceLeft()) unstored = undefined
      else log('warn', 'a new refresh token could not be stored. This is tried again later')
    },
  }
}
