import { Option, type Command } from 'commander'
import { withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { outputOf } from '../output.ts'
import { checkText } from '../words.ts'
import { mailTemplates, type MailTemplate } from '../../src/ports/mail-kinds.ts'

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
    .description('Send a test mail at once, and tell each step.')
    .requiredOption('--to <address>', 'where it goes')
    .action(testMail)
  withExamples(test, 'mail test --to me@example.com')

  const preview = mail
    .command('preview')
    .description('Show a mail as it would leave, with made-up values.')
    .addOption(
      new Option('--template <name>', 'which mail').choices(mailTemplates).makeOptionMandatory(),
    )
    .option('--locale <locale>', 'in which language')
    .option('--html', 'the HTML part alone')
    .addOption(new Option('--text', 'the text part alone').conflicts(['html', 'open']))
    .option('--open', 'show the HTML part in a browser')
    .action(previewMail)
  withExamples(
    preview,
    'mail preview --template password-reset --locale de',
    'mail preview --template email-verification --open',
  )
}

async function testMail({ to }: { to: string }, command: Command) {
  const output = outputOf(command)
  const { admin, run } = await connect(command)
  const report = await admin.testMail({ to })
  output.answer(report, ({ checks }) => checks.map((check) => checkText(check, output)).join('\n'))
  if (!report.ok) run.exitCode = exitCodes.refused
}

async function previewMail(options: PreviewOptions, command: Command) {
  const { template, locale } = options
  const output = outputOf(command)
  const { admin, run } = await connect(command)
  const preview = await admin.previewMail({ template, ...(locale !== undefined && { locale }) })
  if (options.open) {
    const { openInBrowser } = await import('../browser.ts')
    const { path, isOpened } = await openInBrowser(preview.html, run.io)
    output.answer({ path, opened: isOpened }, ({ path }) => path)
    if (isOpened) return
    output.note('No browser could be started: open the file yourself.')
    run.exitCode = exitCodes.refused
  } else if (options.html) output.document(preview, preview.html)
  else if (options.text) output.document(preview, preview.text)
  else output.document(preview, `Subject: ${preview.subject}\n\n${preview.text}`)
}
