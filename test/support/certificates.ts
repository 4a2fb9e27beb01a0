import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'

export interface Certificate {
  /** PEM. */
  cert: string
  /** PEM. */
  key: string
}

interface CertificateWish {
  /** DNS names and IPv4 addresses. None: the certificate is one of an authority. */
  names?: string[]
  /** Who signs. `undefined`: the certificate itself. */
  signer?: Certificate
  validFrom?: Date
  validUntil?: Date
}

const YEAR_MS = 365 * 86_400_000
/** Their numbers, as they are written: 2.5.4.3, 2.5.29.19, 2.5.29.17 and 1.2.840.10045.4.3.2. */
const COMMON_NAME = Buffer.from('0603550403', 'hex')
const BASIC_CONSTRAINTS = Buffer.from('0603551d13', 'hex')
const ALTERNATIVE_NAMES = Buffer.from('0603551d11', 'hex')
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex')

/** A fresh X.509 certificate, valid for a year around now, written without any outside program. */
export function newCertificate({
  names = [],
  signer,
  validFrom,
  validUntil,
}: CertificateWish): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = names[0] ?? AUTHORITY
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.of(2))),
    tagged(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
    sequence(ECDSA_WITH_SHA256),
    commonName(signer ? AUTHORITY : subject),
    sequence(
      time(validFrom ?? new Date(Date.now() - YEAR_MS)),
      time(validUntil ?? new Date(Date.now() + YEAR_MS)),
    ),
    commonName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(names.length === 0 ? authority() : alternativeNames(names))),
  )
  return {
    cert: pem(
      sequence(body, sequence(ECDSA_WITH_SHA256), signature(body, signer?.key ?? privateKey)),
    ),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

const AUTHORITY = 'authority of the tests'

function signature(body: Buffer, key: string | KeyObject) {
  return tagged(0x03, Buffer.concat([Buffer.of(0), sign('sha256', body, key)]))
}

function authority() {
  const isCritical = tagged(0x01, Buffer.of(0xff))
  return sequence(BASIC_CONSTRAINTS, isCritical, tagged(0x04, sequence(isCritical)))
}

function alternativeNames(names: string[]) {
  const list = names.map((name) =>
    isIP(name)
      ? tagged(0x87, Buffer.from(name.split('.').map(Number)))
      : tagged(0x82, Buffer.from(name)),
  )
  return sequence(ALTERNATIVE_NAMES, tagged(0x04, sequence(...list)))
}

function commonName(name: string) {
  const attribute = sequence(COMMON_NAME, tagged(0x0c, Buffer.from(name)))
  return sequence(tagged(0x31, attribute))
}

function time(at: Date) {
  return tagged(0x18, Buffer.from(at.toISOString().replace(/\.\d+|[-:T]/g, '')))
}

function sequence(...parts: Buffer[]) {
  return tagged(0x30, Buffer.concat(parts))
}

function tagged(tag: number, content: Buffer) {
  const { length } = content
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...head), content])
}

function pem(der: Buffer) {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
