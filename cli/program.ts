import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { addAudit } from './commands/audit.ts'
import { addDoctor } from './commands/doctor.ts'
import { addKeys } from './commands/keys.ts'
import { addLink } from './commands/link.ts'
import { addMail } from './commands/mail.ts'
import { addOutbox } from './commands/outbox.ts'
import { addSettings } from './commands/settings.ts'
import { addUser } from './commands/user.ts'
import { withExamples } from './examples.ts'
import { exitCodesHelp, usageError } from './exit-codes.ts'
import { tellFailure } from './failure.ts'

const HELP = new Set(['help', '--help', '-h'])

/** Runs one command. Whatever happens is told, and is the exit code of the process. */
export async function run(args: string[]): Promise<void> {
  try {
    refuseTokens(args)
    const program = createProgram(args.some((arg) => HELP.has(arg)) ? await settingsHelp() : '')
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    process.exitCode = tellFailure(error, args.includes('--json'))
  }
}

/** What is in an argument is in the history of the shell, and every user of the machine can see it. */
function refuseTokens(args: string[]): void {
  if (args.some((arg) => arg === '--token' || arg.startsWith('--token='))) {
    throw usageError(
      'A token is never an argument, where others can see it; nothing was sent. Give it in the environment variable ' +
        'ACCOUNT_FLOWS_TOKEN, with --token-file <path>, or with --token-file - on stdin.',
    )
  }
}

async function settingsHelp(): Promise<string> {
  const { settingsHelp } = await import('./settings-help.ts')
  return settingsHelp(process.stdout.isTTY ? process.stdout.columns : undefined)
}

function createProgram(settingsHelp: string): Command {
  const program = new Command('account-flows')
    .description('Password reset and e-mail verification: settings, mails, accounts and links.')
    .version(version())
    .option('--url <url>', 'base URL of the service (environment: ACCOUNT_FLOWS_URL)')
    .option(
      '--token-file <path>',
      'file with the admin token, - for stdin (environment: ACCOUNT_FLOWS_TOKEN, ACCOUNT_FLOWS_TOKEN_FILE)',
    )
    .option('--insecure-http', 'send the token over http to another machine')
    .option('--json', 'answer one JSON value; errors are JSON on stderr')
    .option('--no-color', 'no colours (environment: NO_COLOR)')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => undefined })
    .exitOverride()
    .addHelpText('after', exitCodesHelp)
  withExamples(program, 'settings list', 'doctor --to me@example.com', 'user status alice')
  addSettings(program, settingsHelp)
  addMail(program)
  addDoctor(program)
  addUser(program)
  addLink(program)
  addAudit(program)
  addOutbox(program)
  addKeys(program)
  return program
}

function version(): string {
  const file = fileURLToPath(import.meta.resolve('oidc-account-flows/package.json'))
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}
