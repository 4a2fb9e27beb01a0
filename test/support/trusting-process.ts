import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { SmtpSettings } from '../../src/smtp/settings.ts'
import type { Certificate } from './certificates.ts'

const SCRIPT = fileURLToPath(new URL('smtp-process.ts', import.meta.url))
const run = promisify(execFile)

/** Sends or checks under each of these settings in a process that trusts the authority (`NODE_EXTRA_CA_CERTS`); answers what it printed. */
export async function inTrustingProcess<T>(
  work: 'send' | 'check',
  authority: Certificate,
  settings: SmtpSettings[],
): Promise<T[]> {
  const directory = await mkdtemp(path.join(tmpdir(), 'trusting-process-'))
  const NODE_EXTRA_CA_CERTS = path.join(directory, 'authority.pem')
  await writeFile(NODE_EXTRA_CA_CERTS, authority.cert)
  const args = ['--import', 'tsx/esm', SCRIPT, work, JSON.stringify(settings)]
  const env = { ...process.env, NODE_EXTRA_CA_CERTS }
  const { stdout } = await run(process.execPath, args, { env })
  await rm(directory, { recursive: true })
  return JSON.parse(stdout)
}
