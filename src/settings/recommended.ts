import type { Settings, SettingTexts } from './table.ts'

export interface Recommendation {
  name: keyof SettingTexts
  /** As sent over the wire. */
  value: string
  /** What it is good for, to end the sentence "so that …". */
  reason: string
  /** Whether these settings are as good, or stricter: nobody is talked out of that. */
  isMet(settings: Settings): boolean
}

/** What suits most services better than the default, which goes by the letter of the specification. Each row says why. */
export const recommendations: readonly Recommendation[] = [
  {
    name: 'email_link_confirmation',
    value: 'other_browser',
    reason: 'an address is confirmed only by a person who has its mailbox and knows the password',
    isMet: ({ emailLinkConfirmation }) => emailLinkConfirmation !== 'off',
  },
  {
    name: 'reset_requires_verified_email',
    value: 'true',
    reason:
      'reset links go only to verified addresses; with require_email_verification, people verify theirs',
    isMet: ({ resetRequiresVerifiedEmail }) => resetRequiresVerifiedEmail,
  },
  {
    name: 'resend_cooldown',
    value: '30s',
    reason: 'a second click sends no second mail',
    isMet: ({ resendCooldown }) => resendCooldown >= 30_000,
  },
  {
    name: 'password_blocklist',
    value: 'common',
    reason: 'nobody sets a password that everybody tries first',
    isMet: ({ passwordBlocklist }) => passwordBlocklist !== 'off',
  },
  {
    name: 'validation_min_password_length',
    value: '15',
    reason: 'a password is hard to guess also where it is the only factor',
    // Above a lower maximum it would be refused, and all others with it.
    isMet: ({ minPasswordLength, maxPasswordLength }) =>
      minPasswordLength >= 15 || maxPasswordLength < 15,
  },
]

/** Those that these settings do not meet. */
export function unmetBy(settings: Settings): Recommendation[] {
  return recommendations.filter(({ isMet }) => !isMet(settings))
}
