import type SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { SMTPConnectionCustomAuthHandler } from 'nodemailer/lib/smtp-connection'
import type { AccessTokens } from './access-tokens.ts'
import type { OAuthSettings, SmtpSettings } from './settings.ts'

/** Waits for one answer of the library. */
type UnderWay = (start: (done: (error?: Error | null) => void) => void) => Promise<unknown>

/** `false`: there is nobody to log in. */
export async function logIn(
  smtp: SMTPConnection,
  underWay: UnderWay,
  { username, password, oauth }: SmtpSettings,
  tokens: AccessTokens,
): Promise<boolean> {
  if (!username || !(password || oauth)) return false
  if (!smtp.allowsAuth) throw Object.assign(new Error('No AUTH'), { code: 'ENOAUTH' })
  const say = (token: string) =>
    underWay((done) => smtp.login({ method: 'TOKEN', user: username, token }, done)).catch(asSaid)
  if (oauth) await byToken(oauth, tokens, say)
  else await underWay((done) => smtp.login({ user: username, pass: password }, done))
  return true
}

// A token may be revoked before its end: then a new one is tried, once.
async function byToken(
  oauth: OAuthSettings,
  tokens: AccessTokens,
  say: (token: string) => Promise<unknown>,
): Promise<void> {
  const { token, isHeld } = await tokens.get(oauth)
  try {
    await say(token)
  } catch (error) {
    if (!isHeld || Reflect.get(Object(error), 'responseCode') !== 535) throw error
    await say((await tokens.get(oauth, token)).token)
  }
}

/** The library renews a token by itself, but only for some servers, and does not tell the first answer then. */
export const sayToken: SMTPConnectionCustomAuthHandler = ({
  auth,
  sendCommand,
  resolve,
  reject,
}) => {
  const { user, token } = auth
  const sasl = Buffer.from(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`).toString('base64')
  sendCommand(`AUTH XOAUTH2 ${sasl}`, (_error, { status, response }) => {
    if (status !== 334) return response.startsWith('2') ? resolve() : reject('Refused')
    // It is a challenge that tells what is wrong: the refusal comes after an empty line.
    sendCommand('', () => reject('Refused'))
  })
}

function asSaid(error: unknown): never {
  throw error instanceof Error ? Object.assign(error, { command: 'AUTH XOAUTH2' }) : error
}
