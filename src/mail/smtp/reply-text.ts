import type { SmtpSettings } from './settings.ts'

const MAX_CHARS = 500
const MAX_KEPT = 200
const MAX_READ = 2_000

/** Printable and short; only the codes where it repeats the password, as it is or as it was sent. */
export function shown(
  reply: string,
  { username = '', password = '' }: Pick<SmtpSettings, 'username' | 'password'>,
): string {
  const text = reply
    .replaceAll(/\n\d{3}[ -]/g, ' ')
    .replace(/^(\d{3})-/, '$1 ')
    .replaceAll(/[\p{Cc}\p{Z}]+/gu, ' ')
    .replaceAll(/\p{C}/gu, '')
    .trim()
  const base64 = (secret: string) => Buffer.from(secret).toString('base64')
  const sasl = [
    `\0${username}\0${password}`,
    `user=${username}\u0001auth=Bearer ${password}\u0001\u0001`,
  ]
  const secrets = [password, ...[password, ...sasl].map(base64)]
  const isTelling = password !== '' && secrets.some((each) => `${reply}\n${text}`.includes(each))
  const codes = /^\d{3}(?: [245]\.\d{1,3}\.\d{1,3}(?!\S))?/.exec(text)?.[0] ?? ''
  return isTelling ? `${codes} …`.trim() : text.slice(0, MAX_CHARS)
}

/** One short line, without addresses, and without what could be a token: whoever says it may have seen that of an earlier mail. */
export function harmless(
  text: string,
  settings: Pick<SmtpSettings, 'username' | 'password'> = {},
): string {
  return shown(text.slice(0, MAX_READ), settings)
    .replaceAll(/[^\s<>]+/g, (word) => (/@|%40/.test(word) ? '…' : word))
    .replaceAll(/[\w-]{20,}/g, '…')
    .slice(0, MAX_KEPT)
}
