import { Command } from 'commander'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { wholeNumber, withExamples } from './arguments.ts'
import { addAudit } from './commands/audit.ts'
import { addCompletion } from './commands/completion.ts'
import { addDoctor } from './commands/doctor.ts'
import { addKeys } from './commands/keys.ts'
import { addLink } from './commands/link.ts'
import { addMail } from './commands/mail.ts'
import { addOutbox } from './commands/outbox.ts'
import { addSettings } from './commands/settings.ts'
import { addUser } from './commands/user.ts'
import { exitCodes, exitCodesHelp, usageError, type ExitCode } from './exit-codes.ts'
import { tellFailure } from './failure.ts'
import { USUAL_COLUMNS, widthOf, withRun, type Io, type Run } from './io.ts'
import { utf8Text } from './plain-text.ts'

/** Runs one command. Whatever happens is told, and is the exit code. */
export async function run(args: string[], io: Io): Promise<ExitCode> {
  const run: Run = { io, exitCode: exitCodes.done, isStdinRead: false }
  try {
    refuseTokens(args)
    for (const [index, arg] of args.entries()) utf8Text(arg, `Argument ${index + 1}`)
    await createProgram(run).parseAsync(args, { from: 'user' })
    return run.exitCode
  } catch (error) {
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

function createProgram(run: Run): Command {
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
    .version(version())
  withExamples(program, 'settings list', 'doctor --to me@example.com', 'user status alice')
  for (const [name, description, add] of groups) {
    add(program.command(name).description(description).helpCommand(false))
  }
  return program
}

function version(): string {
  const file = fileURLToPath(import.meta.resolve('oidc-account-flows/package.json'))
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}

/** `add`: puts the commands of the group into it. */
const groups: [name: string, description: string, add: (group: Command) => void][] = [
  ['settings', 'Read and change settings.', addSettings],
  ['mail', 'Test the mail server, and preview mails.', addMail],
  [
    'doctor',
    'Check the connection to the server. Then the server checks keys, database, clock, base URL and mail server.',
    addDoctor,
  ],
  ['user', 'Accounts, their links and their mails.', addUser],
  ['link', 'Links from mails.', addLink],
  ['audit', 'The audit log.', addAudit],
  ['outbox', 'Mails that wait, and dead letters.', addOutbox],
  ['keys', 'Keys that encrypt the stored secrets.', addKeys],
  ['completion', 'Print a completion script for your shell.', addCompletion],
]
