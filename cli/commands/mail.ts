import { Option, type Command } from 'commander'
import { spawn } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collect, withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { runOf, type Io } from '../io.ts'
import { givenSettings, readNames, type ValueSources } from '../setting-values.ts'
import { checkText } from '../words.ts'
import { mailTemplates, type MailTemplate } from '../../src/ports/mail-kinds.ts'

interface TestOptions extends Pick<ValueSources, 'fromFile' | 'fromEnv'> {
  to: string
  set?: string[]
}

interface PreviewOptions {
  template: MailTemplate
  locale?: string
  html?: true
  text?: true
  open?: true
}

export function addMail(mail: Command): void {
  withExamples(mail, 'mail test --to me@example.com', 'mail preview --template password-reset')

  const test = mail
    .command('test')
    .description('Send a test mail now, and show each step.')
    .requiredOption('--to <address>', 'recipient of the test mail')
    .option(
      '--set <key>=<value>',
      'try this setting without storing it; you are asked for a secret',
      collect,
    )
    .option('--from-file <key>=<path>', 'try this setting; its value is in a file', collect)
    .option(
      '--from-env <key>=<NAME>',
      'try this setting; its value is in an environment variable',
      collect,
    )
    .action(testMail)
  withExamples(
    test,
    'mail test --to me@example.com',
    'mail test --to me@example.com --set smtp_host=mail.example.com --set smtp_port=587',
  )

  const preview = mail
    .command('preview')
    .description('Show a mail as it would be sent, with sample values.')
    .addOption(
      new Option('--template <name>', 'which mail').choices(mailTemplates).makeOptionMandatory(),
    )
    .option('--locale <locale>', 'language of the mail')
    .option('--html', 'only the HTML part')
    .addOption(new Option('--text', 'only the text part').conflicts(['html', 'open']))
    .option('--open', 'show the HTML part in a browser')
    .action(previewMail)
  withExamples(
    preview,
    'mail preview --template password-reset --locale de',
    'mail preview --template email-verification --open',
  )
}

async function testMail(
  { to, set = [], fromFile = [], fromEnv = [] }: TestOptions,
  command: Command,
) {
  const isTrial = set.length + fromFile.length + fromEnv.length > 0
  const named = isTrial && readNames(runOf(command).io, set, { fromFile, fromEnv })
  const { admin, output, run } = await connect(command)
  const settings = named && (await givenSettings(run, named))
  const report = await admin.testMail({ to, ...(settings && { settings }) })
  output.answer(report, ({ checks }) => checks.map((check) => checkText(check, output)).join('\n'))
  if (!report.ok) run.exitCode = exitCodes.refused
}

async function previewMail(options: PreviewOptions, command: Command) {
  const { template, locale } = options
  const { admin, output, run } = await connect(command)
  const preview = await admin.previewMail({ template, locale })
  if (options.open) {
    const { path, isOpened } = await openInBrowser(preview.html, run.io)
    output.answer({ path, opened: isOpened }, ({ path }) => path)
    if (isOpened) return
    output.note('No browser could be started. Open the file yourself.')
    run.exitCode = exitCodes.refused
  } else if (options.html) output.document(preview, preview.html)
  else if (options.text) output.document(preview, preview.text)
  else output.document(preview, `Subject: ${preview.subject}\n\n${preview.text}`)
}

const LONG_ENOUGH_MS = 2_000

/** Writes a page where only its owner can read it, and opens it. */
async function openInBrowser(
  html: string,
  { env }: Io,
): Promise<{ path: string; isOpened: boolean }> {
  // The folder that mkdtemp makes has mode 0700.
  const path = join(await mkdtemp(join(tmpdir(), 'account-flows-')), 'mail.html')
  await writeFile(path, html, { mode: 0o600 })
  for (const [program, ...args] of browsers(path, env)) {
    if (await starts(program, args, withoutOurs(env))) return { path, isOpened: true }
  }
  return { path, isOpened: false }
}

type Call = [program: string, ...args: string[]]

function browsers(path: string, env: Io['env']): Call[] {
  const system: Call =
    process.platform === 'win32' ? ['cmd', '/c', 'start', '""', path] : ['open', path]
  const [program, ...args] = env['BROWSER']?.trim().split(/\s+/) ?? []
  if (!program) return [['xdg-open', path], system]
  const isPlaced = args.some((arg) => arg.includes('%s'))
  const placed = args.map((arg) => arg.replaceAll('%s', path))
  return [[program, ...placed, ...(isPlaced ? [] : [path])], ['xdg-open', path], system]
}

/** A program that still runs after a while shows the page. */
function starts(program: string, args: string[], env: Io['env']): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: 'ignore', detached: true, env })
    const timer = setTimeout(() => resolve(true), LONG_ENOUGH_MS)
    const ended = (isStarted: boolean) => {
      clearTimeout(timer)
      resolve(isStarted)
    }
    child.once('error', () => ended(false))
    child.once('exit', (code) => ended(code === 0))
    child.unref()
  })
}

/** What a browser may know: not the token, nor where to find it. */
function withoutOurs(env: Io['env']): Io['env'] {
  const others = Object.entries(env).filter(([name]) => !/^ACCOUNT_FLOWS_/i.test(name))
  return Object.fromEntries(others)
}
