import type { PeerCertificate } from 'node:tls'

const MAX_NAMES = 5
const UNKNOWN_AUTHORITY =
  'Use a certificate of a public authority, or name the file of your own authority in NODE_EXTRA_CA_CERTS and start again.'

/** Why a certificate is not trusted. */
export interface CertificateFault {
  /** Continues "the certificate …". */
  message: string
  advice: string
}

interface Shown {
  host: string
  /** Fit to be shown. */
  names: string
  today: string
}

type Explain = (certificate: PeerCertificate, shown: Shown) => CertificateFault

const expired: Explain = ({ valid_to: until }, { today }) => ({
  message: `expired (${day(until)})`,
  advice: `It has to be renewed on the mail server. The clock of this machine says ${today}: see whether it is right.`,
})

const selfSigned: Explain = () => ({
  message: 'is vouched for by nobody but itself',
  advice: UNKNOWN_AUTHORITY,
})

const unknownAuthority: Explain = () => ({
  message: 'comes from an authority that is not trusted here, or a link to it is missing',
  advice: `${UNKNOWN_AUTHORITY} The server must also send the certificates in between.`,
})

const EXPLAINED: Record<string, Explain> = {
  CERT_HAS_EXPIRED: expired,
  CERT_NOT_YET_VALID: ({ valid_from: from }, { today }) => ({
    message: `is valid only from ${day(from)} on`,
    advice: `The clock of this machine says ${today}: see whether it is right.`,
  }),
  ERR_TLS_CERT_ALTNAME_INVALID: (_certificate, { host, names }) => ({
    message: `is not for ${host} but for ${names || 'nobody'}`,
    advice: 'Set smtp_host to one of these names if it is the same server.',
  }),
  DEPTH_ZERO_SELF_SIGNED_CERT: selfSigned,
  SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  CERT_SIGNATURE_FAILURE: () => ({
    message: 'was not signed by the authority that it names',
    advice: `Somebody may be in between, or the authority was made anew. ${UNKNOWN_AUTHORITY}`,
  }),
  CERT_REVOKED: () => ({
    message: 'was revoked',
    advice: 'It has to be replaced on the mail server.',
  }),
}

/** `shown` makes text of the server fit to be shown. */
export function certificateFault(
  code: string,
  certificate: PeerCertificate,
  { host, shown, now }: { host: string; shown: (text: string) => string; now: Date },
): CertificateFault {
  const explain = EXPLAINED[code]
  if (!explain) return { message: 'is not trusted', advice: UNKNOWN_AUTHORITY }
  const names = shown(namesOf(certificate))
  return explain(certificate, { host, names, today: now.toISOString().slice(0, 10) })
}

export function day(time: string): string {
  const at = new Date(time)
  return Number.isNaN(at.getTime()) ? 'a day that cannot be read' : at.toISOString().slice(0, 10)
}

function namesOf({ subjectaltname, subject }: PeerCertificate): string {
  const names = subjectaltname?.split(', ') ?? [subject?.CN ?? []].flat()
  const shown = names.slice(0, MAX_NAMES).map((name) => name.slice(name.indexOf(':') + 1))
  const more = names.length - shown.length
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
