import { Command } from 'commander'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { addCommand, addExamples, wholeNumber, type CommandRow } from './command.ts'
import { addCompletion } from './commands/completion.ts'
import { tellFailure, usageError } from './failure.ts'
import { utf8Text } from './input.ts'
import { USUAL_COLUMNS, exitCodes, widthOf, type ExitCode, type Io, type Run } from './output.ts'
import { auditCommands } from './commands/audit.ts'
import { doctorCommand } from './commands/doctor.ts'
import { keysCommands } from './commands/keys.ts'
import { linkCommands } from './commands/link.ts'
import { mailCommands } from './commands/mail.ts'
import { outboxCommands } from './commands/outbox.ts'
import { settingsCommands } from './commands/settings.ts'
import { userCommands } from './commands/user.ts'

const EXIT_CODES = `
Exit codes:
  0  done
  1  refused or invalid, a check failed, a mail was not sent, or work is left
  2  wrong usage
  3  no admin API could be reached, or it cannot work now (503)
  4  not allowed: wrong token, missing scope, or too many requests`

/** In the order of the help. */
const COMMANDS: CommandRow[] = [
  settingsCommands,
  mailCommands,
  doctorCommand,
  userCommands,
  linkCommands,
  auditCommands,
  outboxCommands,
  keysCommands,
].flat()

/** Runs one command, prints what happens, and answers the exit code. */
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

/** Arguments are in the history of the shell, and every user of the machine can see them. */
function refuseTokens(args: string[]): void {
  if (args.some((arg) => /^--token(?!-)/.test(arg))) {
    throw usageError(
      'A token is never an argument: others can see arguments. Nothing was sent. Give the token in the environment variable ' +
        'ACCOUNT_FLOWS_TOKEN, with --token-file <path>, or with --token-file - on stdin.',
    )
  }
}

export function createProgram(run: Run): Command {
  const { stdout, stderr } = run.io
  const program: Command = new Command('account-flows')
    .description('Password reset and e-mail verification: settings, mails, accounts and links.')
    .option('--url <url>', 'base URL of the service (or ACCOUNT_FLOWS_URL)')
    .option('--admin-path <path>', 'path of the admin API (or ACCOUNT_FLOWS_ADMIN_PATH)')
    .option('--token-file <path>', 'file with the token; - for stdin (or ACCOUNT_FLOWS_TOKEN)')
    .option('--insecure-http', 'allow the token over http to another machine')
    .option('--timeout <seconds>', 'for an answer (default 60)', wholeNumber(1, 3_600))
    .option('--json', 'print one JSON value; errors are JSON on stderr')
    .option('--no-color', 'no colours (or NO_COLOR)')
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: () => undefined,
      getOutHelpWidth: () => widthOf(stdout) ?? USUAL_COLUMNS,
      getErrHelpWidth: () => widthOf(stderr) ?? USUAL_COLUMNS,
    })
    .exitOverride()
    .helpCommand(false)
    .addHelpText('after', EXIT_CODES)
    .addHelpText('afterAll', ({ command }) =>
      command === program ? '' : '\nGeneral options, and all commands: account-flows --help',
    )
    .version(version())
  addExamples(program, ['settings list', 'doctor --to me@example.com', 'user status alice'])
  for (const row of COMMANDS) addCommand(program, row, run)
  addCompletion(program, run)
  return program
}

function version(): string {
  const file = fileURLToPath(import.meta.resolve('oidc-account-flows/package.json'))
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}
