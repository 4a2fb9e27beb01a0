import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { AccountFlowsError } from '../../src/errors.ts'
import type {
  CheckedStep,
  MailCheckOptions,
  MailSender,
  MailSlot,
  MailStep,
  OutgoingMail,
  SentMail,
} from '../../src/mail/sending.ts'
import type { Settings } from '../../src/settings/table.ts'
import type { RefreshTokens } from '../../src/mail/smtp/access-tokens.ts'
import { createMailCheck } from '../../src/mail/smtp/check.ts'
import { createMailSender } from '../../src/mail/smtp/sender.ts'
import { newCertificate } from '../support/certificates.ts'
import { startFaultySmtp, type FaultySmtp, type FaultySmtpOptions } from '../support/mail-server.ts'
import { movableClock, resetTime } from '../support/time.ts'

/**
 * What the tests of `src/mail/smtp/` share: a suite's servers and connections, sending and checking, and the authority that one process trusts.
 * That process is this file, run as a script.
 */

export const CREDENTIALS = { username: 'mailer', password: 'S3cr3t canary' }
export const NO_LOGIN = { username: undefined, password: undefined }
export const SENDER = 'no-reply@login.example.com'

export const MAIL: OutgoingMail = {
  to: 'Ada@example.org',
  subject: 'Set a new password',
  text: 'Open https://id.example.com/x?token=t1 now. Grüße',
  html: '<p>Open <a href="https://id.example.com/x?token=t1">this</a></p>',
}

/** Refresh tokens stay as they are in the settings. */
export const NO_ROTATION: RefreshTokens = {
  current: ({ smtpOauthRefreshToken }) => smtpOauthRefreshToken,
  latest: async ({ smtpOauthRefreshToken }) => smtpOauthRefreshToken,
  keep: async () => {},
}

/** What a test says of a mail server, by short names. */
export interface SmtpSettings {
  host: string
  port: number
  tls: Settings['smtpTls']
  from: string
  fromName?: string | undefined
  username?: string | undefined
  password?: string | undefined
}

export const LOOPBACK = ['localhost', '127.0.0.1']
const authority = newCertificate({})
/** Of a loopback host, signed by the authority. */
export const good = signed()

export function signed(wish: Parameters<typeof newCertificate>[0] = {}) {
  return newCertificate({ names: LOOPBACK, signer: authority, ...wish })
}

export const noSignal = () => new AbortController().signal

export function settingsFor(
  { port }: { port: number },
  other: Partial<SmtpSettings> = {},
): SmtpSettings {
  return { host: '127.0.0.1', port, tls: 'auto', from: SENDER, ...CREDENTIALS, ...other }
}

/** What the tests of a suite start, and have closed after each: the connections, then their servers. */
export function suiteSmtp() {
  const ends: (() => unknown)[] = []
  const endWith = (end: () => unknown) => void ends.push(end)
  const open = new Set<Socket>()
  let most = 0

  function count(message: unknown) {
    const { socket } = message as { socket: Socket }
    open.add(socket)
    most = Math.max(most, open.size)
    socket.once('close', () => open.delete(socket))
  }

  beforeEach(() => {
    open.clear()
    most = 0
    subscribe('net.client.socket', count)
  })
  afterEach(async () => {
    unsubscribe('net.client.socket', count)
    for (const end of ends.splice(0).toReversed()) await end()
  })
  after(resetTime)

  return {
    endWith,

    /** The client sockets of this process, from their creation until they are closed. */
    sockets: {
      open: () => open.size,
      /** The most that were open at once. */
      most: () => most,
      /** As it is when the other side is gone. */
      destroyAll() {
        for (const socket of open) socket.destroy()
      },
    },

    async start(options: FaultySmtpOptions = {}): Promise<FaultySmtp> {
      const server = await startFaultySmtp({ offersAuth: true, ...options })
      endWith(server.close)
      return server
    },

    senderFor(server: { port: number }, other?: Partial<SmtpSettings>): MailSender {
      const sender = newSender(settingsFor(server, other))
      endWith(sender.close)
      return sender
    },

    /** Sends a mail. Every answer is whole, and has no socket behind it. */
    async check(settings: SmtpSettings, options?: MailCheckOptions): Promise<CheckedStep[]> {
      const steps = await checked(settings, options)
      expect(open.size).to.equal(0)
      expectWhole(steps)
      return steps
    },
  }
}

const newSender = (settings: SmtpSettings) =>
  createMailSender(() => allOf(settings), movableClock, NO_ROTATION)

/** `undefined`: it got no slot. */
export function sendThrough(
  sender: MailSender,
  mail = MAIL,
  signal = noSignal(),
): Promise<SentMail | undefined> {
  return sender.withSlot(signal, ({ send }) => send(mail))
}

/** An open connection, until it is given back. */
export async function connectTo(
  sender: MailSender,
  signal = noSignal(),
): Promise<Pick<MailSlot, 'send'> & { release(): Promise<unknown> }> {
  let end = () => {}
  const ended = new Promise<void>((resolve) => (end = resolve))
  let over: Promise<unknown> = ended
  const { send } = await new Promise<MailSlot>((resolve, reject) => {
    over = sender.withSlot(signal, async (slot) => {
      await slot.open()
      resolve(slot)
      await ended
    })
    over.then(() => reject(new Error('It got no slot')), reject)
  })
  return {
    send,
    release() {
      end()
      return over
    },
  }
}

/** The error with which it failed; fails where it did not, or with another kind of error. */
export async function failureOf(trying: Promise<unknown>): Promise<AccountFlowsError> {
  const error: unknown = await trying.then(
    () => new Error('It went well'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof AccountFlowsError)) throw error
  return error
}

export const STEPS: MailStep[] = ['dns', 'connect', 'tls', 'auth', 'from', 'rcpt', 'data']
const { to, ...mail } = MAIL

function allOf({ host, port, tls, from, fromName, username, password }: SmtpSettings) {
  const smtp = { smtpHost: host, smtpPort: port, smtpTls: tls, smtpFrom: from }
  const named = { ...smtp, smtpFromName: fromName }
  return { ...named, smtpUsername: username, smtpPassword: password } as Settings
}

/** What the check finds out about the server, after its step about the settings. */
async function checked(settings: SmtpSettings, options: MailCheckOptions = { to, mail }) {
  const check = createMailCheck(movableClock, NO_ROTATION)
  const [, ...steps] = await check(allOf(settings), options)
  return steps as CheckedStep[]
}

/** All steps in their order, nothing after a failure, and no secret. */
export function expectWhole(steps: CheckedStep[]) {
  expect(steps.map(({ step }) => step)).to.deep.equal(STEPS)
  const failedAt = steps.findIndex(({ status }) => status === 'failed')
  if (failedAt >= 0) {
    expect(steps.slice(0, failedAt).map(({ status }) => status)).not.to.include('failed')
    for (const { status, message } of steps.slice(failedAt + 1)) {
      expect([status, message]).to.deep.equal(['skipped', 'Not tried: an earlier step failed.'])
    }
    expect(steps[failedAt]?.advice).to.be.a('string')
  }
  expect(JSON.stringify(steps)).not.to.include(CREDENTIALS.password)
  for (const { reply, message } of steps) {
    expect(message.length).to.be.greaterThan(0)
    expect(reply ?? '').to.match(/^\P{C}{0,500}$/u)
  }
}

export const failureIn = (steps: CheckedStep[]) =>
  steps.find(({ status }) => status === 'failed') ??
  expect.fail(`nothing failed: ${JSON.stringify(steps)}`)

export const statuses = (steps: Pick<CheckedStep, 'status'>[]) => steps.map(({ status }) => status)

export interface Outcome {
  /** `sent`, or code and message of the error. */
  sent: string
  steps: CheckedStep[]
}

/** Sends a mail under each of these settings, and checks them, in a process that trusts the authority (`NODE_EXTRA_CA_CERTS`). */
export async function inTrustingProcess(settings: SmtpSettings[]): Promise<Outcome[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'trusting-process-'))
  const NODE_EXTRA_CA_CERTS = path.join(directory, 'authority.pem')
  await writeFile(NODE_EXTRA_CA_CERTS, authority.cert)
  const args = ['--import', 'tsx/esm', fileURLToPath(import.meta.url), JSON.stringify(settings)]
  const env = { ...process.env, NODE_EXTRA_CA_CERTS }
  const { stdout } = await promisify(execFile)(process.execPath, args, { env })
  await rm(directory, { recursive: true })
  return JSON.parse(stdout)
}

async function outcomeOf(settings: SmtpSettings): Promise<Outcome> {
  const sender = newSender(settings)
  const sent = await sendThrough(sender, MAIL, AbortSignal.timeout(20_000)).then(
    () => 'sent',
    ({ code, message }: AccountFlowsError) => `${code}: ${message}`,
  )
  sender.close()
  return { sent, steps: await checked(settings) }
}

const [, script, given = '[]'] = process.argv
if (script === fileURLToPath(import.meta.url)) {
  const outcomes = await Promise.all((JSON.parse(given) as SmtpSettings[]).map(outcomeOf))
  process.stdout.write(JSON.stringify(outcomes))
}
