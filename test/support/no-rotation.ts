import { createAccessTokens, type RefreshTokens } from '../../src/smtp/access-tokens.ts'
import { movableClock } from './time.ts'

/** Refresh tokens stay as they are in the settings. */
export const NO_ROTATION: RefreshTokens = {
  current: ({ refreshToken }) => refreshToken,
  latest: async ({ refreshToken }) => refreshToken,
  keep: async () => {},
}

export const ACCESS_TOKENS = createAccessTokens(movableClock, NO_ROTATION)
