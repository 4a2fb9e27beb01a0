type Words = [message: string, advice: string]

export const LATER = 'Try again in a few minutes.'
const WANTS_TLS = 'Set smtp_tls to starttls, or to implicit on port 465.'
const REFUSED_CLIENT: Words = [
  'The token endpoint {endpoint} refuses this client ({code}).',
  'Check smtp_oauth_client_id and smtp_oauth_client_secret. A secret may have expired: make a new one there.',
]

/** For each way in which a step fails, what happened and what to do. */
export const FAILURES: Record<string, Words> = {
  dns: [
    '{host} cannot be found ({code}).',
    'Look for a typing error in smtp_host, and see whether this machine reaches its name server (/etc/resolv.conf). A name of a container or of a private network is known only inside of it.',
  ],
  connect: [
    'No connection to {host} port {port} ({code}).',
    'Look for a firewall between this machine and the server, and check smtp_host and smtp_port. Many hosting providers block port 25: use 587.',
  ],
  'connect ECONNREFUSED': [
    'Nothing listens at {host} port {port} ({code}).',
    'Check smtp_port (587, or 465 for implicit TLS) and whether the server runs.',
  ],
  greeting: [
    'Connected to {host} port {port}, but no mail server greets there ({code}).',
    'Check smtp_host and smtp_port. A server that expects TLS from the first byte, as on port 465, does not greet: then set smtp_tls to implicit. It may also block this machine: ask its operator.',
  ],
  'refused greeting': [
    'The server does not talk to this machine ({code}).',
    'Ask its operator whether the address of this machine is blocked, or use the server and port of your provider for submission.',
  ],
  hello: [
    'The server refuses to go on after our hello ({code}).',
    'It rejects this machine, or the domain of smtp_from: ask its operator.',
  ],
  stripped: [
    'The server does not offer STARTTLS, which smtp_tls {tls} requires.',
    'Check smtp_port (587; for 465 set smtp_tls to implicit). If it offered STARTTLS before, somebody on the way may strip it: do not switch TLS off.',
  ],
  starttls: ['The server offers STARTTLS and then refuses it ({code}).', LATER],
  handshake: [
    'The TLS handshake failed ({code}).',
    'A server that speaks in the clear at first needs smtp_tls starttls; one that knows nothing newer than TLS 1.1 has to be brought up to date. A proxy or a firewall may also answer in its place.',
  ],
  token: [
    'No access token came from {endpoint} ({code}).',
    'Check smtp_oauth_token_endpoint, and whether this machine reaches it.',
  ],
  'refused token': [
    'The token endpoint {endpoint} gives no access token ({code}).',
    'It answered: look its error code up, and check smtp_oauth_token_endpoint.',
  ],
  'refused token invalid_client': REFUSED_CLIENT,
  'refused token unauthorized_client': REFUSED_CLIENT,
  'refused token invalid_grant': [
    'The token endpoint {endpoint} refuses the refresh token ({code}).',
    'It has expired or was revoked: sign in again there, and set the new smtp_oauth_refresh_token.',
  ],
  'refused token invalid_scope': [
    'The token endpoint {endpoint} refuses the scope ({code}).',
    'Check smtp_oauth_scope. For Microsoft 365 it is https://outlook.office365.com/.default.',
  ],
  auth: [
    'The server refuses the login with {login} ({code}).',
    'Check smtp_username (often the whole address) and smtp_password; many providers want an app password or an API key here.',
  ],
  'auth token': [
    'The mail server refuses the access token with {login} ({code}).',
    'The token endpoint gave this token. Check smtp_username (the mailbox) and smtp_oauth_scope, and whether this client may send as that mailbox.',
  ],
  'auth token 504': [
    'The server refuses the login with {login} ({code}).',
    'It does not know XOAUTH2: check smtp_host, or set smtp_auth to password.',
  ],
  'auth 504': [
    'The server refuses the login with {login} ({code}).',
    'It offers only ways of login that are not supported here; PLAIN, LOGIN and CRAM-MD5 are.',
  ],
  'auth 530': ['The server wants TLS before the login ({code}).', WANTS_TLS],
  'auth 538': ['The server wants TLS before the login ({code}).', WANTS_TLS],
  'auth ENOAUTH': [
    'A login is set, but the server offers none here.',
    'Many servers offer it only over TLS, and on port 587 rather than 25. If this server needs none, remove it.',
  ],
  from: [
    'The server refuses the sender {from} ({code}).',
    'Set smtp_from to an address that this login may send from, or register its domain with the provider.',
  ],
  'from 530': [
    'The server wants a login first ({code}).',
    'Set smtp_username and smtp_password, or what smtp_auth xoauth2 needs.',
  ],
  rcpt: [
    'The server refuses the recipient ({code}).',
    'See whether the address exists. If the server forwards no mail of ours, it wants a login, or does not know this machine: set one, or ask its operator.',
  ],
  data: [
    'The server refuses the mail ({code}).',
    'It is a filter, a quota, or a rule of the domain of smtp_from (SPF, DKIM, DMARC): its answer tells which.',
  ],
  unanswered: [
    'No proper answer came ({code}).',
    'Look into the log of the mail server: it may block this machine, or be restarting. A proxy or a firewall may also answer in its place.',
  ],
}
