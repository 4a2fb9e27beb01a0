import { createHmac } from 'node:crypto'
import type { Greeted } from './check-tls.ts'
import type { Found } from './found.ts'
import { isTaken, type Hello } from './say-hello.ts'
import type { ReplyFilter } from './shown-reply.ts'
import type { SmtpDialogue, SmtpReply } from './dialogue.ts'
import { isLoopbackHost } from '../settings/loopback-host.ts'
import type { SmtpSettings } from './settings.ts'

/** In the order in which mails are sent with them. */
const MECHANISMS = ['PLAIN', 'LOGIN', 'CRAM-MD5'] as const
type Mechanism = (typeof MECHANISMS)[number]

interface Credentials {
  username: string
  password: string
}

const WRONG_LOGIN =
  'Check smtp_username (often the whole address) and smtp_password; many providers want an app password or an API key here.'

const REFUSALS: Record<number, string> = {
  421: 'Try again in a few minutes.',
  432: 'The operator of the server has to change the password of this user once.',
  454: 'Try again in a few minutes: the server cannot check logins now.',
  530: 'The server wants TLS first: set smtp_tls to starttls, or to implicit on port 465.',
  534: 'The provider wants an app password, or another way of login than by password.',
  538: 'The server wants TLS first: set smtp_tls to starttls, or to implicit on port 465.',
}

/** Logs in the way a mail is sent. What it sends is told to the filter. */
export async function checkAuth(
  dialogue: SmtpDialogue,
  settings: SmtpSettings,
  { hello, isEncrypted }: Greeted,
  filter: ReplyFilter,
): Promise<Found> {
  const { username, password } = settings
  if (!username || !password) {
    const message = 'No smtp_username and smtp_password: not needed up to here.'
    return { status: 'skipped', message, next: undefined }
  }
  const offered = offeredBy(hello)
  if (!offered) return notOffered(hello, isEncrypted)
  // Like the library that sends: an offer without a known mechanism is answered with PLAIN.
  const mechanism = MECHANISMS.find((each) => offered.includes(each)) ?? 'PLAIN'
  const reply = await LOGINS[mechanism](dialogue, { username, password }, filter)
  if (!isTaken(reply)) return refused(reply, mechanism, offered)
  const isOpen = !isEncrypted && !isLoopbackHost(settings.host)
  return {
    status: isOpen ? 'warning' : 'ok',
    message: `Logged in with AUTH ${mechanism}${isEncrypted ? '' : ', unencrypted'}.`,
    reply,
    ...(isOpen && {
      advice:
        'Whoever reads along on the network has the password now: set smtp_tls to starttls or implicit, then change it.',
    }),
    next: undefined,
  }
}

/** `undefined`: no login is offered. Who knows only HELO cannot offer one, and may know it. */
function offeredBy({ extensions }: Hello): string[] | undefined {
  if (!extensions) return []
  const offers = extensions.filter((each) => /^AUTH\b/i.test(each))
  return offers.length === 0
    ? undefined
    : offers.flatMap((each) =>
        each
          .toUpperCase()
          .split(/[\s=]+/)
          .slice(1),
      )
}

type Login = (
  dialogue: SmtpDialogue,
  credentials: Credentials,
  filter: ReplyFilter,
) => Promise<SmtpReply>

const LOGINS: Record<Mechanism, Login> = {
  PLAIN: (dialogue, { username, password }) =>
    dialogue.ask(`AUTH PLAIN ${base64(`\0${username}\0${password}`)}`),

  async LOGIN(dialogue, { username, password }) {
    const first = await dialogue.ask('AUTH LOGIN')
    if (first.code !== 334) return first
    const second = await dialogue.ask(base64(username))
    return second.code === 334 ? dialogue.ask(base64(password)) : second
  },

  async 'CRAM-MD5'(dialogue, { username, password }, filter) {
    const challenge = await dialogue.ask('AUTH CRAM-MD5')
    if (challenge.code !== 334) return challenge
    const digest = createHmac('md5', password)
      .update(Buffer.from(challenge.lines.join(''), 'base64'))
      .digest('hex')
    const answer = base64(`${username} ${digest}`)
    filter.alsoHide(digest)
    filter.alsoHide(answer)
    return dialogue.ask(answer)
  },
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

function notOffered({ reply }: Hello, isEncrypted: boolean): Found {
  return {
    status: 'failed',
    message: 'There are smtp_username and smtp_password, but the server offers no login here.',
    reply,
    advice: isEncrypted
      ? 'Check smtp_host and smtp_port: port 25 often takes no login, 587 does. If this server needs none, remove both.'
      : 'Many servers offer it only over TLS: set smtp_tls to starttls or implicit. If this server needs none, remove both.',
  }
}

function refused(reply: SmtpReply, mechanism: Mechanism, offered: string[]): Found {
  const isUnknown = offered.length > 0 && !offered.includes(mechanism)
  return {
    status: 'failed',
    message: `The server refuses the login with AUTH ${mechanism} (${reply.code}).`,
    reply,
    advice: isUnknown
      ? `The server offers only ways of login that are not supported here; ${MECHANISMS.join(', ')} are.`
      : (REFUSALS[reply.code] ?? WRONG_LOGIN),
  }
}
