import { createAdminClient, type AdminClient } from '../src/admin/client.ts'
import { isInTheClear } from '../src/settings/addresses.ts'
import { refused, usageError } from './failure.ts'
import { ask, canAsk, readStdin, readTextFile, utf8Text } from './input.ts'
import type { Run } from './io.ts'
import { outputOf, type Output, type OutputOptions } from './output.ts'

/** What a command works with. */
export interface Connection {
  admin: AdminClient
  /** Base URL of the service. */
  url: string
  run: Run
  output: Output
  /** Whether `--yes` answers all questions. */
  yes: boolean
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

export async function connect(
  run: Run,
  options: GeneralOptions,
  yes: boolean,
): Promise<Connection> {
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
  const answer = await ask(io, `${what} on ${url}? [y/N] `, true)
  if (!/^y(es)?$/i.test(answer.trim())) throw refused('not_confirmed', 'Nothing was changed.')
}
