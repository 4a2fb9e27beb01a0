/** What a command is: one row, from which commander makes the command. */
import { InvalidArgumentError, Option, type Argument, type Command } from 'commander'
import {
  exitCodes,
  outputOf,
  plain,
  widthOf,
  type Output,
  type OutputOptions,
  type Run,
} from './output.ts'
import { createAdminClient } from '../src/admin/client.ts'
import { isInTheClear } from '../src/settings/addresses.ts'
import { parseDuration } from '../src/settings/kinds.ts'
import { refused, usageError } from './failure.ts'
import { ask, canAsk, readStdin, readTextFile, utf8Text } from './input.ts'

/** `Given` has the argument and the options by their names. */
export interface Row<Given, Answer> {
  /** As the user types it: `user verify`. */
  name: string
  help: string
  argument?: Argument
  options?: Option[]
  examples: string[]
  /** What the help says below the examples. */
  moreHelp?(columns: number | undefined): string
  /** Whether it changes something. Then it takes `--yes`, even if it never asks. */
  changes?: true
  /** Throws if an argument or an option is wrong, before the command asks or sends anything. */
  check?(given: Given, run: Run): void
  /** What it asks the user first, without the name of the server. `undefined`: nothing. */
  question?(given: Given, connection: Connection): string | Promise<string | undefined> | undefined
  /** Does the work. Without `text`, it also prints the answer. */
  run(given: Given, connection: Connection): Answer | Promise<Answer>
  /** How the answer reads for people. */
  text?(answer: Answer, output: Output): string
  /** Whether the answer means exit code 1. */
  isRefusal?(answer: Answer): boolean
}

/** What the help says about the commands that begin with these words. */
type Group = Pick<AnyRow, 'name' | 'help'>

type AnyRow = Row<never, unknown>
export type CommandRow = AnyRow | Group

/** Gives each row its own types. */
export function row<Given, Answer>(row: Row<Given, Answer>): AnyRow {
  return row
}

/** @param read - makes a value from the typed text. */
export function option<T>(flags: string, help: string, read?: (text: string, before: T) => T) {
  const made = new Option(flags, help)
  return read ? made.argParser(read) : made
}

const YES = option('--yes', 'do not ask')

/** Adds a command or a group. A group must come before its commands. */
export function addCommand(program: Command, row: CommandRow, run: Run): void {
  const words = row.name.split(' ')
  const name = words.pop() ?? ''
  const group = words.reduce(
    (group, word) => group.commands.find((each) => each.name() === word) ?? group,
    program,
  )
  const command = group.command(name).description(row.help).helpCommand(false)
  if (!('run' in row)) return
  const { argument, changes, moreHelp, text } = row
  if (argument) command.addArgument(argument)
  for (const each of [...(row.options ?? []), ...(changes ? [YES] : [])]) command.addOption(each)
  addExamples(command, row.examples)
  if (moreHelp) command.addHelpText('after', () => moreHelp(widthOf(run.io.stdout)))
  command.action(async () => {
    const { yes = false, ...options } = command.opts<{ yes?: boolean }>()
    const [value]: unknown[] = command.processedArgs
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the row says what it takes
    const given = { ...options, ...(argument && { [argument.name()]: value }) } as never
    row.check?.(given, run)
    const connection = await connect(run, command.optsWithGlobals(), yes)
    const question = yes ? undefined : await row.question?.(given, connection)
    if (question !== undefined) await confirm(connection, question)
    const answer = await row.run(given, connection)
    const { output } = connection
    if (text) output.answer(answer, (answer) => text(answer, output))
    if (row.isRefusal?.(answer)) run.exitCode = exitCodes.refused
  })
}

export function addExamples(command: Command, examples: string[]): void {
  const lines = examples.map((example) => `  $ account-flows ${example}`)
  command.addHelpText('after', ['', 'Example:', ...lines].join('\n'))
}

export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN
    if (number >= least && number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** Of an option that may be given several times. */
export const collect = (value: string, values: string[] = []) => [...values, value]

/** Reads a time, or how long ago it was: `2h`, `1d12h`, `2026-01-31`, `2026-01-31T08:00:00Z`, `2026-01-31 08:00:00 UTC`. Answers ISO 8601. */
export function timeSince(text: string): string {
  const ms = parseDuration(text)
  const time = ms === undefined ? new Date(text) : new Date(Date.now() - ms)
  const isTime =
    ms !== undefined ||
    (/^\d{4}-\d\d-\d\d(T|$| [\d:]{8} UTC$)/.test(text) && isDay(text.slice(0, 10)))
  if (isTime && !Number.isNaN(time.getTime())) return time.toISOString()
  throw new InvalidArgumentError(
    'It must be a duration such as 2h, or a time such as 2026-01-31T08:00:00Z.',
  )
}

/** `Date` reads the 31st of February as a day in March. */
function isDay(day: string): boolean {
  const date = new Date(day)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day)
}

/** Options that every command has. */
interface GeneralOptions extends OutputOptions {
  url?: string
  adminPath?: string
  tokenFile?: string
  insecureHttp?: boolean
  /** In seconds. */
  timeout?: number
}

export type Connection = Awaited<ReturnType<typeof connect>>

/** What a command works with. `url` is the base URL of the service. `yes`: `--yes` answers all questions. */
async function connect(run: Run, options: GeneralOptions, yes: boolean) {
  const { adminPath = run.io.env['ACCOUNT_FLOWS_ADMIN_PATH'], timeout } = options
  const url = baseUrl(run, options)
  const token = await adminToken(run, options)
  try {
    const admin = createAdminClient(url, token, adminPath || undefined, {
      ...(timeout !== undefined && { timeoutMs: timeout * 1_000 }),
      onServerTime: (time) => (run.serverTime = time),
    })
    return { admin, url, run, output: outputOf(run, options), yes }
  } catch (error) {
    throw error instanceof TypeError ? usageError(`The ${error.message}.`) : error
  }
}

/** The base URL of the service, without `/admin/api`. */
function baseUrl({ io }: Run, { url: given, insecureHttp }: GeneralOptions): string {
  const text = given || io.env['ACCOUNT_FLOWS_URL']
  if (!text) {
    throw usageError('Which server? Give its base URL with --url or in ACCOUNT_FLOWS_URL.')
  }
  utf8Text(text, 'The URL')
  if (!URL.canParse(text)) throw usageError('The URL must be an absolute http or https address.')
  const url = new URL(text)
  if (isInTheClear(url) && !insecureHttp) {
    throw usageError(
      'Over http, others could read the token. Use an https URL, or --insecure-http.',
    )
  }
  return url.href.replace(/(?<!\/)\/+$/, '').replace(/\/admin\/api$/, '')
}

async function adminToken(run: Run, { tokenFile }: GeneralOptions): Promise<string> {
  const { ACCOUNT_FLOWS_TOKEN: token, ACCOUNT_FLOWS_TOKEN_FILE: file } = run.io.env
  const path = tokenFile ?? (token ? undefined : file && utf8Text(file, 'ACCOUNT_FLOWS_TOKEN_FILE'))
  if (token && !path) return utf8Text(token, 'ACCOUNT_FLOWS_TOKEN').trim()
  if (path === '-') return (await readStdin(run, 'Admin token: ')).trim()
  if (path !== undefined && path !== '') return (await readTextFile(path, 'The token file')).trim()
  if (canAsk(run.io)) return (await ask(run.io, 'Admin token: ')).trim()
  throw usageError(
    'Which token? Give it in ACCOUNT_FLOWS_TOKEN, or in a file with --token-file or ACCOUNT_FLOWS_TOKEN_FILE.',
  )
}

/** Asks the user before a change that cannot be taken back, and names the server. Without a terminal, it needs `--yes`. */
export async function confirm({ run: { io }, url, yes }: Connection, what: string): Promise<void> {
  if (yes) return
  if (!canAsk(io)) throw usageError('There is no terminal to ask: confirm with --yes.')
  const answer = await ask(io, plain(`${what} on ${url}? [y/N] `), true)
  if (!/^y(es)?$/i.test(answer.trim())) throw refused('not_confirmed', 'Nothing was changed.')
}
