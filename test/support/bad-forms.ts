import { gzipSync } from 'node:zlib'
import { FORM, type RawRequest } from './raw-request.ts'

/** A field that matters, as an honest form would have it, and the other fields of that form. */
export interface HonestForm {
  name: string
  value: string
  others: Record<string, string>
}

type BadForm = (name: string, value: string, others: string) => string | RawRequest

const typed = (type: string, body: string): RawRequest => ({
  headers: { 'content-type': type },
  body,
})

const SUFFIXES =
  '[] [0] [$gt] [$ne] [$regex] [$in][] [$where] [$exists] [length] [__proto__] ' +
  '[constructor][prototype] .$gt .0 %00 %20'

/** Every way to send a form whose one field that matters is not exactly one string of well-formed UTF-8. */
const BAD_FORMS: Record<string, BadForm> = {
  'nothing at all': () => '',
  'the field left out': (_name, _value, others) => others,
  'an empty value': (name, _value, others) => `${name}=&${others}`,
  'the field twice': (name, value, others) => `${name}=${value}&${name}=${value}&${others}`,
  'the field twice, once encoded': (name, value, others) =>
    `${name}=${value}&%${name.charCodeAt(0).toString(16)}${name.slice(1)}=x&${others}`,
  'another field twice': (name, value, others) => `${name}=${value}&${others}&state=a&state=b`,
  'an empty name twice': (name, value, others) => `${name}=${value}&${others}&=a&=b`,
  ...Object.fromEntries(
    [...SUFFIXES.split(' '), '[a]'.repeat(200)].map((suffix): [string, BadForm] => [
      `the name with ${suffix.slice(0, 24)} behind it`,
      (name, value, others) => `${name}${suffix}=${value}&${others}`,
    ]),
  ),
  'a property of a prototype': (name, value, others) =>
    `__proto__[${name}]=${value}&constructor[prototype][${name}]=${value}&${others}`,
  'a $ before the name': (name, value, others) => `$${name}=${value}&${others}`,
  'the name in upper case': (name, value, others) => `${name.toUpperCase()}=${value}&${others}`,
  'a broken escape': (name, value, others) => `${name}=${value}%&${others}`,
  'an escape of no digits': (name, value, others) => `${name}=${value}%zz&${others}`,
  'a byte that is no UTF-8, encoded': (name, value, others) => `${name}=${value}%FF&${others}`,
  'a byte that is no UTF-8, raw': (name, value, others) => ({
    body: Buffer.concat([
      Buffer.from(`${name}=${value}`),
      Buffer.from([0xe9]),
      Buffer.from(`&${others}`),
    ]),
  }),
  'a lone surrogate': (name, value, others) => `${name}=${value}%ED%A0%80&${others}`,
  'a surrogate pair as CESU-8': (name, value, others) =>
    `${name}=${value}%ED%A0%BD%ED%B8%80&${others}`,
  'an overlong slash': (name, value, others) => `${name}=${value}%C0%AF&${others}`,
  'an overlong NUL': (name, value, others) => `${name}=${value}%C0%80&${others}`,
  'a broken field beside it': (name, value, others) => `${name}=${value}&${others}&x=%E0%A4`,
  'a mebibyte': (name, value, others) => `${name}=${value}${'a'.repeat(2 ** 20)}&${others}`,
  'a mebibyte in pieces': (name, value, others) => ({
    body: `${name}=${value}${'a'.repeat(2 ** 20)}&${others}`,
    isChunked: true,
  }),
  JSON: (name, value) => typed('application/json', JSON.stringify({ [name]: value })),
  'JSON with an operator': (name) =>
    typed('application/json', JSON.stringify({ [name]: { $gt: '' } })),
  'JSON that looks like a string': (name) =>
    typed('application/json', `{"${name}":{"length":43,"toString":"x","__proto__":{"a":1}}}`),
  'JSON 200 deep': (name) =>
    typed('application/json', `{"${name}":${'['.repeat(200)}${']'.repeat(200)}}`),
  'JSON of a vendor': (name, value) => typed('application/csp-report+json', `{"${name}":${value}}`),
  'a form that says JSON': (name, value, others) =>
    typed('application/json', `${name}=${value}&${others}`),
  'JSON that says form': (name, value) => typed(FORM, JSON.stringify({ [name]: value })),
  multipart: (name, value) =>
    typed(
      'multipart/form-data; boundary=b',
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n--b--\r\n`,
    ),
  'plain text': (name, value, others) => typed('text/plain', `${name}=${value}&${others}`),
  XML: (name, value) => typed('application/xml', `<${name}>${value}</${name}>`),
  'an empty type': (name, value, others) => typed('', `${name}=${value}&${others}`),
  'a type that only begins like it': (name, value, others) =>
    typed(`${FORM}-x`, `${name}=${value}&${others}`),
  'two types': (name, value, others) =>
    typed(`${FORM}, application/json`, `${name}=${value}&${others}`),
  'a form in UTF-16': (name, value, others) => ({
    headers: { 'content-type': `${FORM}; charset=utf-16le` },
    body: Buffer.from(`${name}=${value}&${others}`, 'utf16le'),
  }),
  'a form in UTF-7': (name, value, others) =>
    typed(`${FORM}; charset=utf-7`, `${name}+AD0-${value}&${others}`),
  'gzip that is said': (name, value, others) => ({
    headers: { 'content-type': FORM, 'content-encoding': 'gzip' },
    body: gzipSync(`${name}=${value}&${others}`),
  }),
  'gzip that is not said': (name, value, others) => ({
    body: gzipSync(`${name}=${value}&${others}`),
  }),
}

/** All of them for one form, by what is wrong with each. */
export function badForms({ name, value, others }: HonestForm): [what: string, RawRequest][] {
  const rest = new URLSearchParams(others).toString()
  return Object.entries(BAD_FORMS).map(([what, build]) => {
    const built = build(name, encodeURIComponent(value), rest)
    return [what, typeof built === 'string' ? { body: built } : built]
  })
}
