import type { Command } from 'commander'
import { isInTheClear } from '../src/settings/loopback-host.ts'
import { usageError } from './exit-codes.ts'
import { runOf, type Run } from './io.ts'
import { outputOf, type Output } from './output.ts'
import { utf8Text } from './plain-text.ts'
import { askSecret, canAsk } from './prompt.ts'
import { readStdin, readTextFile } from './secrets.ts'
import { createAdminClient, type AdminClient } from '../src/admin/client.ts'

/** What a command works with. */
export interface Connection {
  admin: AdminClient
  /** Base URL of the service. */
  url: string
  run: Run
  output: Output
}

interface Given {
  url?: string
  adminPath?: string
  tokenFile?: string
  insecureHttp?: boolean
  /** In seconds. */
  timeout?: number
}

export async function connect(command: Command): Promise<Connection> {
  const url = baseUrl(command)
  const token = await adminToken(command)
  try {
    const { timeout }: Given = command.optsWithGlobals()
    const run = runOf(command)
    const admin = createAdminClient(url, token, adminPath(command), {
      ...(timeout !== undefined && { timeoutMs: timeout * 1_000 }),
      onServerTime: (time) => (run.serverTime = time),
    })
    return { admin, url, run, output: outputOf(command) }
  } catch (error) {
    throw error instanceof TypeError ? usageError(`The ${error.message}.`) : error
  }
}

/** Where the service is, without `/admin/api`. */
export function baseUrl(command: Command): string {
  const given: Given = command.optsWithGlobals()
  const text = given.url || runOf(command).io.env['ACCOUNT_FLOWS_URL']
  if (!text) {
    throw usageError('Which server? Give its base URL with --url or in ACCOUNT_FLOWS_URL.')
  }
  utf8Text(text, 'The URL')
  if (!URL.canParse(text)) throw usageError('The URL must be an absolute http or https address.')
  const url = new URL(text)
  if (isInTheClear(url) && given.insecureHttp !== true) {
    throw usageError(
      'Over http, others could read the token. Use an https URL, or --insecure-http.',
    )
  }
  return url.href.replace(/(?<!\/)\/+$/, '').replace(/\/admin\/api$/, '')
}

function adminPath(command: Command): string | undefined {
  const { adminPath = runOf(command).io.env['ACCOUNT_FLOWS_ADMIN_PATH'] }: Given =
    command.optsWithGlobals()
  return adminPath || undefined
}

async function adminToken(command: Command): Promise<string> {
  const { tokenFile }: Given = command.optsWithGlobals()
  const run = runOf(command)
  const { ACCOUNT_FLOWS_TOKEN: token, ACCOUNT_FLOWS_TOKEN_FILE: file } = run.io.env
  const path = tokenFile ?? (token ? undefined : file && utf8Text(file, 'ACCOUNT_FLOWS_TOKEN_FILE'))
  if (token && !path) return utf8Text(token, 'ACCOUNT_FLOWS_TOKEN').trim()
  if (path === '-') return (await readStdin(run, 'Admin token: ')).trim()
  if (path !== undefined && path !== '') return (await readTextFile(path, 'The token file')).trim()
  if (canAsk(run.io)) return (await askSecret(run.io, 'Admin token: ')).trim()
  throw usageError(
    'Which token? Give it in ACCOUNT_FLOWS_TOKEN, or in a file with --token-file or ACCOUNT_FLOWS_TOKEN_FILE.',
  )
}
