import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../clock.ts'
import { certificateFault, day } from './certificate-fault.ts'
import { judgeGreeting } from './check-connect.ts'
import { errorCode, type Found } from './found.ts'
import { isTaken, sayHello, type Hello } from './say-hello.ts'
import type { SmtpDialogue } from './dialogue.ts'
import { tlsPolicy, type SmtpSettings } from './settings.ts'

const DAY_MS = 86_400_000
const SOON_DAYS = 14

/** The server after its last hello. */
export interface Greeted {
  hello: Hello
  isEncrypted: boolean
}

type Shown = (text: string) => string

/** Says hello, and goes on over TLS as `smtp_tls` wants it. `shown` makes text of the server fit to be shown. */
export async function checkTls(
  dialogue: SmtpDialogue,
  settings: SmtpSettings,
  shown: Shown,
  clock: Clock,
): Promise<Found<Greeted>> {
  const { from, tls: setting } = settings
  const policy = tlsPolicy(settings)
  if (policy.secure) return secured(dialogue, settings, shown, clock)

  const hello = await sayHello(dialogue, from, !policy.requireTLS)
  if (hello.isRefused) return refusedHello(hello)
  const { reply } = hello
  const offersTls = hello.extensions?.some((each) => /^STARTTLS\b/i.test(each)) ?? false
  if (policy.ignoreTLS) {
    return {
      status: 'warning',
      message: 'smtp_tls is none: mails, links and the login go over the network in the clear.',
      reply,
      advice: offersTls
        ? 'This server offers STARTTLS: set smtp_tls to starttls.'
        : 'Use it only inside of a network that you trust.',
      next: { hello, isEncrypted: false },
    }
  }
  if (!offersTls && !policy.requireTLS) {
    return {
      status: 'ok',
      message: `No TLS: smtp_tls is ${setting}, and a loopback host that does not offer it may do without.`,
      reply,
      next: { hello, isEncrypted: false },
    }
  }
  const started = await dialogue.ask('STARTTLS')
  if (isTaken(started)) return secured(dialogue, settings, shown, clock)
  return offersTls
    ? {
        status: 'failed',
        message: `The server offers STARTTLS and then refuses it (${started.code}).`,
        reply: started,
        advice: 'Try again; if it stays, the TLS of the mail server is not set up completely.',
      }
    : {
        status: 'failed',
        message: `The server does not offer STARTTLS, which smtp_tls ${setting} requires.`,
        reply: started,
        advice:
          'Check smtp_port (587; for 465 set smtp_tls to implicit). If it offered STARTTLS before, somebody on the way may strip it: do not switch TLS off.',
      }
}

async function secured(
  dialogue: SmtpDialogue,
  settings: SmtpSettings,
  shown: Shown,
  clock: Clock,
): Promise<Found<Greeted>> {
  const { host, from } = settings
  const policy = tlsPolicy(settings)
  let socket: TLSSocket
  try {
    const servername = isIP(host) === 0 ? { servername: host } : {}
    socket = await dialogue.secure({ ...policy.tls, host, ...servername })
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    return { status: 'failed', ...handshakeFault(code, policy.secure) }
  }
  const certificate = socket.getPeerCertificate()
  const distrust = socket.authorized ? undefined : String(socket.authorizationError)
  const way = `${policy.secure ? 'Implicit TLS' : 'STARTTLS'} (smtp_tls ${settings.tls})`
  if (distrust !== undefined && policy.tls.rejectUnauthorized) {
    const { message, advice } = certificateFault(distrust, certificate, {
      host,
      shown,
      now: clock.now(),
    })
    return {
      status: 'failed',
      message: `${way}: the certificate ${message} (${distrust}).`,
      advice,
    }
  }
  if (policy.secure) {
    const greeting = judgeGreeting(await dialogue.reply(), `${way} works`)
    if (greeting.status === 'failed') return greeting
  }
  const hello = await sayHello(dialogue, from, true)
  if (hello.isRefused) return refusedHello(hello)
  const spoken = `${way}: ${socket.getProtocol()} with ${socket.getCipher().standardName}`
  return {
    ...judgeCertificate(distrust, certificate.valid_to, spoken, clock.now()),
    reply: hello.reply,
    next: { hello, isEncrypted: true },
  }
}

function judgeCertificate(distrust: string | undefined, until: string, spoken: string, now: Date) {
  if (distrust !== undefined) {
    const message = `${spoken}; the certificate is not trusted (${distrust}), which is accepted of a loopback host.`
    return { status: 'ok', message } as const
  }
  const days = Math.floor((new Date(until).getTime() - now.getTime()) / DAY_MS)
  const message = `${spoken}; the certificate is valid until ${day(until)}.`
  return days < SOON_DAYS
    ? ({
        status: 'warning',
        message,
        advice: `It expires in ${days} days: renew it on the mail server.`,
      } as const)
    : ({ status: 'ok', message } as const)
}

function refusedHello({ reply }: Hello): Found<Greeted> {
  return {
    status: 'failed',
    message: `The server refuses to go on after our hello (${reply.code}).`,
    reply,
    advice:
      reply.code < 500
        ? 'Try again in a few minutes.'
        : 'It speaks no SMTP with extensions, or it rejects this machine, or the domain of smtp_from, by name: ask its operator.',
  }
}

function handshakeFault(code: string, isImplicit: boolean): { message: string; advice: string } {
  if (/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/.test(code)) {
    return {
      message: `The server knows no TLS version that is safe (${code}).`,
      advice: 'It must speak TLS 1.2 or newer: bring it up to date.',
    }
  }
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH|RECORD_|HTTP_REQUEST/.test(code)) {
    return {
      message: `The server does not answer with TLS (${code}).`,
      advice: isImplicit
        ? 'It speaks in the clear at first: set smtp_tls to starttls, or smtp_port to 465.'
        : 'Something between this machine and the server answers in its place: look for a proxy or a firewall.',
    }
  }
  if (/HANDSHAKE_FAILURE|NO_SHARED_CIPHER|KEY_TOO_SMALL|DH_KEY/.test(code)) {
    return {
      message: `The server and this machine have no safe cipher or key in common (${code}).`,
      advice: 'Bring the TLS of the mail server up to date.',
    }
  }
  return {
    message: `The TLS handshake failed (${code}).`,
    advice: isImplicit
      ? 'See whether the server expects TLS from the first byte on this port; otherwise set smtp_tls to starttls.'
      : 'Look into the log of the mail server.',
  }
}
