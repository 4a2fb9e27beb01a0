import { gzipSync } from 'node:zlib'
import { FORM, type RawRequest } from '../support/raw-request.ts'

/** A field that matters, as an honest form would have it, and the other fields of that form. */
interface HonestForm {
  name: string
  value: string
  others: Record<string, string>
}

const SUFFIXES =
  '[] [0] [$gt] [$ne] [$regex] [$in][] [$where] [$exists] [length] [__proto__] ' +
  '[constructor][prototype] .$gt .0 %00 %20'

/** Ways to send a form whose one field that matters is not exactly one string of well-formed UTF-8: `N` is its name, `V` its value, `&REST` the others. */
const BAD_FORMS: [what: string, body: string, type?: string][] = [
  ['nothing at all', ''],
  ['the field left out', 'REST'],
  ['an empty value', 'N=&REST'],
  ['the field twice', 'N=V&N=V&REST'],
  ['the field twice, once encoded', 'N=V&ENCODED=x&REST'],
  ['another field twice', 'N=V&REST&state=a&state=b'],
  ['an empty name twice', 'N=V&REST&=a&=b'],
  ...[...SUFFIXES.split(' '), '[a]'.repeat(200)].map((suffix): [string, string] => {
    return [`the name with ${suffix.slice(0, 24)} behind it`, `N${suffix}=V&REST`]
  }),
  ['a property of a prototype', '__proto__[N]=V&constructor[prototype][N]=V&REST'],
  ['a $ before the name', '$N=V&REST'],
  ['the name in upper case', 'UPPER=V&REST'],
  ['a broken escape', 'N=V%&REST'],
  ['an escape of no digits', 'N=V%zz&REST'],
  ['a byte that is no UTF-8, encoded', 'N=V%FF&REST'],
  ['a lone surrogate', 'N=V%ED%A0%80&REST'],
  ['a surrogate pair as CESU-8', 'N=V%ED%A0%BD%ED%B8%80&REST'],
  ['an overlong slash', 'N=V%C0%AF&REST'],
  ['an overlong NUL', 'N=V%C0%80&REST'],
  ['a broken field beside it', 'N=V&REST&x=%E0%A4'],
  ['a mebibyte', `N=V${'a'.repeat(2 ** 20)}&REST`],
  ['JSON', '{"N":"V"}', 'application/json'],
  ['JSON with an operator', '{"N":{"$gt":""}}', 'application/json'],
  [
    'JSON that looks like a string',
    '{"N":{"length":43,"toString":"x","__proto__":{"a":1}}}',
    'application/json',
  ],
  ['JSON 200 deep', `{"N":${'['.repeat(200)}${']'.repeat(200)}}`, 'application/json'],
  ['JSON of a vendor', '{"N":V}', 'application/csp-report+json'],
  ['a form that says JSON', 'N=V&REST', 'application/json'],
  ['JSON that says form', '{"N":"V"}', FORM],
  [
    'multipart',
    '--b\r\nContent-Disposition: form-data; name="N"\r\n\r\nV\r\n--b--\r\n',
    'multipart/form-data; boundary=b',
  ],
  ['plain text', 'N=V&REST', 'text/plain'],
  ['XML', '<N>V</N>', 'application/xml'],
  ['an empty type', 'N=V&REST', ''],
  ['a type that only begins like it', 'N=V&REST', `${FORM}-x`],
  ['two types', 'N=V&REST', `${FORM}, application/json`],
  ['a form in UTF-7', 'N+AD0-V&REST', `${FORM}; charset=utf-7`],
]

/** All of them for one form, and those that are no text, by what is wrong with each. */
export function badForms({ name, value, others }: HonestForm): [what: string, RawRequest][] {
  const words: Record<string, string> = {
    N: name,
    V: encodeURIComponent(value),
    REST: new URLSearchParams(others).toString(),
    UPPER: name.toUpperCase(),
    ENCODED: `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
  }
  const filled = (body: string) =>
    body.replaceAll(/REST|ENCODED|UPPER|N|V/g, (word) => words[word] ?? word)
  const honest = filled('N=V&REST')
  const latin1 = Buffer.concat([
    Buffer.from(filled('N=V')),
    Buffer.from([0xe9]),
    Buffer.from(filled('&REST')),
  ])
  const utf16 = { 'content-type': `${FORM}; charset=utf-16le` }
  const gzip = { 'content-type': FORM, 'content-encoding': 'gzip' }
  return [
    ...BAD_FORMS.map(([what, body, type]): [string, RawRequest] => {
      const headers = type === undefined ? {} : { 'content-type': type }
      return [what, { body: filled(body), headers }]
    }),
    ['a byte that is no UTF-8, raw', { body: latin1 }],
    ['a mebibyte in pieces', { body: filled(`N=V${'a'.repeat(2 ** 20)}&REST`), isChunked: true }],
    ['a form in UTF-16', { headers: utf16, body: Buffer.from(honest, 'utf16le') }],
    ['gzip that is said', { headers: gzip, body: gzipSync(honest) }],
    ['gzip that is not said', { body: gzipSync(honest) }],
  ]
}
