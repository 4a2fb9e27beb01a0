import { Command } from 'commander'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { wholeNumber, withExamples } from './arguments.ts'
import { exitCodes, exitCodesHelp, usageError, type ExitCode } from './exit-codes.ts'
import { USUAL_COLUMNS, widthOf, withRun, type Io, type Run } from './io.ts'
import { utf8Text } from './plain-text.ts'

/** What has to know all commands. */
const TELLS_ALL = new Set(['--help', '-h', 'completion'])

/** Runs one command. Whatever happens is told, and is the exit code. */
export async function run(args: string[], io: Io): Promise<ExitCode> {
  const run: Run = { io, exitCode: exitCodes.done, isStdinRead: false }
  try {
    refuseTokens(args)
    for (const [index, arg] of args.entries()) utf8Text(arg, `Argument ${index + 1}`)
    const isHelp =
      args.some((arg) => TELLS_ALL.has(arg)) || !groups.some(([name]) => args.includes(name))
    const program = createProgram(run, isHelp)
    if (isHelp) await Promise.all(program.commands.map((group) => load(group, true)))
    // Only what is asked for, as it takes time.
    else program.hook('preSubcommand', (_, group) => load(group, false))
    await program.parseAsync(args, { from: 'user' })
    return run.exitCode
  } catch (error) {
    const { tellFailure } = await import('./failure.ts')
    return tellFailure(error, io.stderr, args.includes('--json'))
  }
}

/** What is in an argument is in the history of the shell, and every user of the machine can see it. */
function refuseTokens(args: string[]): void {
  if (args.some((arg) => /^--token(?!-)/.test(arg))) {
    throw usageError(
      'A token is never an argument: others can see arguments. Nothing was sent. Give the token in the environment variable ' +
        'ACCOUNT_FLOWS_TOKEN, with --token-file <path>, or with --token-file - on stdin.',
    )
  }
}

function createProgram(run: Run, isHelp: boolean): Command {
  const { stdout, stderr } = run.io
  const program = withRun(new Command('account-flows'), run)
    .description('Password reset and e-mail verification: settings, mails, accounts and links.')
    .option('--url <url>', 'base URL of the service (environment: ACCOUNT_FLOWS_URL)')
    .option(
      '--admin-path <path>',
      'path of the admin API, if not /admin/api (environment: ACCOUNT_FLOWS_ADMIN_PATH)',
    )
    .option(
      '--token-file <path>',
      'file with the admin token; - for stdin (environment: ACCOUNT_FLOWS_TOKEN, ACCOUNT_FLOWS_TOKEN_FILE)',
    )
    .option('--insecure-http', 'allow the token over http to another machine')
    .option(
      '--timeout <seconds>',
      'how long to wait for an answer (default 60)',
      wholeNumber(1, 3_600),
    )
    .option('--json', 'print one JSON value; errors are JSON on stderr')
    .option('--no-color', 'no colours (environment: NO_COLOR)')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: () => undefined,
      getOutHelpWidth: () => widthOf(stdout) ?? USUAL_COLUMNS,
      getErrHelpWidth: () => widthOf(stderr) ?? USUAL_COLUMNS,
    })
    .exitOverride()
    .helpCommand(false)
    .addHelpText('after', exitCodesHelp)
  // It is read from a file.
  if (isHelp) program.version(version())
  withExamples(program, 'settings list', 'doctor --to me@example.com', 'user status alice')
  for (const [name, description] of groups) {
    program.command(name).description(description).helpCommand(false)
  }
  return program
}

async function load(group: Command, isHelp: boolean): Promise<void> {
  const [, , load] = groups.find(([name]) => name === group.name()) ?? []
  const commands = await load?.()
  await commands?.add(group, isHelp)
}

function version(): string {
  const file = fileURLToPath(import.meta.resolve('oidc-account-flows/package.json'))
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}

/** The commands of a group. */
interface Commands {
  /** @param isHelp - whether the help is asked for, which tells more. */
  add(group: Command, isHelp: boolean): void | Promise<void>
}

/** To import the commands of a group takes time. */
const groups: [name: string, description: string, load: () => Promise<Commands>][] = [
  ['settings', 'Read and change settings.', () => import('./commands/settings.ts')],
  ['mail', 'Test the mail server, and preview mails.', () => import('./commands/mail.ts')],
  [
    'doctor',
    'Check the connection to the server. Then the server checks keys, database, clock, base URL and mail server.',
    () => import('./commands/doctor.ts'),
  ],
  ['user', 'Accounts, their links and their mails.', () => import('./commands/user.ts')],
  ['link', 'Links from mails.', () => import('./commands/link.ts')],
  ['audit', 'The audit log.', () => import('./commands/audit.ts')],
  ['outbox', 'Mails that wait, and dead letters.', () => import('./commands/outbox.ts')],
  ['keys', 'Keys that encrypt the stored secrets.', () => import('./commands/keys.ts')],
  [
    'completion',
    'Print a completion script for your shell.',
    () => import('./commands/completion.ts'),
  ],
]
