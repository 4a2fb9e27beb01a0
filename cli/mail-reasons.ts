/** Why a request came to no mail, and what to do. */
const reasons: { [code: string]: string } = {
  unknown: 'no account is known by that name: check it with `user status`',
  ambiguous: 'several accounts could be meant: name one with --id',
  already_verified: 'the address is verified already: no link is needed',
  not_verified:
    'the address is not verified: send a verification link, or change reset_requires_verified_email',
  throttled:
    'the account has had too many mails lately: use the link that it has, or see mails_per_account_per_hour and resend_cooldown',
  superseded: 'a newer request took its place: look at that one with `user status`',
  sent_before: 'it was sent already',
  expired: 'it waited for so long that its link has expired: see `doctor`, and ask again',
  account_gone: 'the account is gone',
  disabled: 'the account is disabled: enable it first',
  no_address: 'the account has no e-mail address: give it one',
  bad_address: 'the address of the account is not one: correct it',
  no_password: 'the account has no password, and signs in another way',
  unexpected_error: 'the server failed: see its log',
  ERR_MAIL_REFUSED: 'the mail server refused it: see what it says with `mail test`',
  ERR_MAIL_FAILED: 'the mail server could not be used: see why with `doctor`',
  ERR_MAIL_ADDRESS: 'the mail server does not take mails to this address: correct it',
}

/** A reason with its words; one that this program does not know stays as it is. */
export function reasonText(reason: string | undefined): string {
  if (reason === undefined) return ''
  const words = Object.hasOwn(reasons, reason) ? reasons[reason] : undefined
  return words === undefined ? reason : `${reason}: ${words}`
}
