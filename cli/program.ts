import { Command } from 'commander'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { addCommand, addExamples, wholeNumber } from './command.ts'
import { addCompletion } from './commands/completion.ts'
import { commands } from './commands/index.ts'
import { tellFailure, usageError } from './failure.ts'
import { utf8Text } from './input.ts'
import {
  exitCodes,
  exitCodesHelp,
  type ExitCode,
  USUAL_COLUMNS,
  widthOf,
  type Io,
  type Run,
} from './io.ts'

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

function createProgram(run: Run): Command {
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
    .addHelpText('after', exitCodesHelp)
    .addHelpText('afterAll', ({ command }) =>
      command === program ? '' : '\nGeneral options, and all commands: account-flows --help',
    )
    .version(version())
  addExamples(program, ['settings list', 'doctor --to me@example.com', 'user status alice'])
  for (const row of commands) addCommand(program, row, run)
  addCompletion(program, run)
  return program
}

function version(): string {
  const file = fileURLToPath(import.meta.resolve('oidc-account-flows/package.json'))
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}
