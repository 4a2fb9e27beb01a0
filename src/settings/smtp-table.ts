import { choice, isEndpoint, isHost, isPrintable, number, text } from './kinds.ts'
import { isMailAddress } from './mail-address.ts'

/** The settings of the mail server, and of the login to it. */
export const smtpTable = {
  smtpHost: text('smtp_host', {
    meaning: 'SMTP server host name.',
    expected: 'a host name or an IP address, without port',
    accepts: isHost,
  }),
  smtpPort: number('smtp_port', undefined, 65_535, { meaning: 'SMTP server port, typically 587.' }),
  smtpUsername: text('smtp_username', { meaning: 'SMTP authentication user name.' }),
  smtpPassword: text('smtp_password', {
    meaning: 'SMTP authentication password.',
    secret: true,
  }),
  smtpAuth: choice('smtp_auth', 'password', ['password', 'xoauth2'], {
    meaning:
      'How to log in to the SMTP server. password: with smtp_username and smtp_password. ' +
      'xoauth2: with smtp_username and an access token. Microsoft 365 and Google need this.',
  }),
  smtpOauthTokenEndpoint: text('smtp_oauth_token_endpoint', {
    meaning: 'Address that gives access tokens, for smtp_auth xoauth2.',
    expected: 'an https address, or an http one of this machine',
    accepts: isEndpoint,
  }),
  smtpOauthClientId: text('smtp_oauth_client_id', { meaning: 'Client ID at the token endpoint.' }),
  smtpOauthClientSecret: text('smtp_oauth_client_secret', {
    meaning: 'Client secret at the token endpoint.',
    secret: true,
  }),
  smtpOauthRefreshToken: text('smtp_oauth_refresh_token', {
    meaning:
      'Refresh token of the mailbox. Without it, the client asks with its own credentials (client credentials grant).',
    expected: 'at most 4096 characters of ASCII',
    accepts: (value) => /^[!-~]{1,4096}$/.test(value),
    secret: true,
  }),
  smtpOauthScope: text('smtp_oauth_scope', { meaning: 'Scope to ask for at the token endpoint.' }),
  smtpFrom: text('smtp_from', {
    meaning: 'Sender e-mail address.',
    expected: 'one plain e-mail address',
    accepts: isMailAddress,
  }),
  smtpFromName: text('smtp_from_name', {
    meaning: 'Sender name, shown before the address.',
    expected: 'at most 64 printable characters, without spaces at its ends',
    accepts: (value) => isPrintable(value) && value.length <= 64 && value.trim() === value,
  }),
} as const
