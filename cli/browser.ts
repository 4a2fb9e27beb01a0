import { spawn } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Io } from './io.ts'

const LONG_ENOUGH_MS = 2_000

/** Writes a page where only its owner can read it, and opens it. */
export async function openInBrowser(
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
