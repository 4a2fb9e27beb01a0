import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { mailTemplates, type MailTemplate } from '../../src/contract/mail-kinds.ts'
import { collect, option, row, type Connection } from '../command.ts'
import { checkText } from '../words.ts'
import { exitCodes, type Io } from '../output.ts'
import { givenSettings, readNames, type ValueSources } from '../given-settings.ts'

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

export const mailCommands = [
  { name: 'mail', help: 'Test the mail server, and preview mails.' },
  row({
    name: 'mail test',
    help: 'Send a test mail now, and show each step.',
    options: [
      option('--to <address>', 'recipient of the test mail').makeOptionMandatory(),
      option('--set <key>=<value>', 'try it, and store nothing; a secret is asked for', collect),
      option('--from-file <key>=<path>', 'the same; its value is in a file', collect),
      option('--from-env <key>=<NAME>', 'the same; its value is in this variable', collect),
    ],
    examples: [
      'mail test --to me@example.com',
      'mail test --to me@example.com --set smtp_host=mail.example.com --set smtp_port=587',
    ],
    check: (given: TestOptions, { io }) => void triedSettings(given, io),
    run: testMail,
    text: ({ checks }, output) => checks.map((check) => checkText(check, output)).join('\n'),
    isRefusal: ({ ok }) => !ok,
  }),
  row({
    name: 'mail preview',
    help: 'Show a mail as it would be sent, with sample values.',
    options: [
      option('--template <name>', 'which mail').choices(mailTemplates).makeOptionMandatory(),
      option('--locale <locale>', 'language of the mail'),
      option('--html', 'only the HTML part'),
      option('--text', 'only the text part').conflicts(['html', 'open']),
      option('--open', 'show the HTML part in a browser'),
    ],
    examples: [
      'mail preview --template password-reset --locale de',
      'mail preview --template email-verification --open',
    ],
    run: previewMail,
  }),
]

/** Names of the settings to try. `undefined`: there are none. */
function triedSettings({ set = [], fromFile, fromEnv }: TestOptions, io: Io) {
  if (set.length === 0 && !fromFile && !fromEnv) return undefined
  // Each option by itself: two of them are no key and value.
  const lists = set.map((one) => [one])
  return readNames(io, lists, { fromFile, fromEnv })
}

async function testMail(given: TestOptions, { admin, run }: Connection) {
  const tried = triedSettings(given, run.io)
  const settings = tried && (await givenSettings(run, tried))
  return admin.testMail({ to: given.to, ...(settings && { settings }) })
}

async function previewMail(given: PreviewOptions, { admin, output, run }: Connection) {
  const { template, locale, ...options } = given
  const preview = await admin.previewMail({ template, locale })
  const { subject, html, text } = preview
  if (options.html && !options.open) return output.document(preview, html)
  if (options.text) return output.document(preview, text)
  if (!options.open) return output.document(preview, `Subject: ${subject}\n\n${text}`)
  const { path, isOpened } = await openInBrowser(html, run.io)
  output.answer({ path, opened: isOpened }, ({ path }) => path)
  if (isOpened) return
  output.note('No browser could be started. Open the file yourself.')
  run.exitCode = exitCodes.refused
}

const LONG_ENOUGH_MS = 2_000

/** Writes a page where only its owner can read it, and opens it. */
async function openInBrowser(html: string, { env }: Io) {
  // The folder that mkdtemp makes has mode 0700.
  const path = join(await mkdtemp(join(tmpdir(), 'account-flows-')), 'mail.html')
  await writeFile(path, html, { mode: 0o600 })
  const [program = '', ...args] = (env['BROWSER']?.trim() || SYSTEM_BROWSER).split(/\s+/)
  // Without the token, and without the place of the token.
  const others = Object.entries(env).filter(([name]) => !/^ACCOUNT_FLOWS_/i.test(name))
  return { path, isOpened: await starts(program, [...args, path], Object.fromEntries(others)) }
}

const OPENERS = new Map([
  ['win32', 'cmd /c start ""'],
  ['darwin', 'open'],
])
const SYSTEM_BROWSER = OPENERS.get(process.platform) ?? 'xdg-open'

/** Whether a program shows the page: it ends without an error, or still runs after a while. */
function starts(program: string, args: string[], env: Io['env']): Promise<boolean> {
  const child = spawn(program, args, { stdio: 'ignore', detached: true, env })
  child.unref()
  const ended = once(child, 'exit').then(
    ([code]: unknown[]) => code === 0,
    () => false,
  )
  return Promise.race([ended, sleep(LONG_ENOUGH_MS, true)])
}
