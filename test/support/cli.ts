import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CliRun, Environment } from './cli-in-process.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CACHE = join(ROOT, '.cache')

let compiled: string | undefined

/** The command line as it is published: compiled, once for each run of the tests. */
export function cliProgram(): string {
  if (compiled !== undefined) return compiled
  mkdirSync(CACHE, { recursive: true })
  const folder = mkdtempSync(join(CACHE, 'cli-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const config = join(folder, 'tsconfig.json')
  const compilerOptions = { rootDir: ROOT, outDir: folder, declaration: false, sourceMap: false }
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions,
      include: [join(ROOT, 'cli')],
    }),
  )
  const { stdout } = spawnSync(
    process.execPath,
    [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', config],
    { encoding: 'utf8' },
  )
  compiled = join(folder, 'cli/account-flows.js')
  if (!existsSync(compiled)) throw new Error(`the command line was not compiled:\n${stdout}`)
  return compiled
}

/** Runs a line of the shell, in which `"$@"` is the command line. */
export async function runInShell(line: string, env: Environment = {}): Promise<CliRun> {
  const started = watched(
    spawn('/bin/sh', ['-c', line, 'sh', process.execPath, cliProgram()], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )
  const exitCode = await started.exited
  return { exitCode, stdout: started.stdout(), stderr: started.stderr() }
}

/** Starts the command line as a process of its own, to be watched. */
export function startCliProcess(args: string[], env: Environment = {}) {
  const child = spawn(process.execPath, [cliProgram(), ...args], {
    cwd: ROOT,
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return watched(child)
}

/** Whether a terminal can be made for the command line. */
export function hasTerminals(): boolean {
  return spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0
}

/** Runs the command line at a terminal, where both its outputs are one; its end is how the terminal is left. */
export function startCliAtTerminal(args: string[], env: Environment = {}) {
  const command = [process.execPath, cliProgram(), ...args].map(quoted).join(' ')
  const line = `${command}; code=$?; stty -a; exit $code`
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return { ...watched(child), type: (text: string) => void child.stdin.write(text) }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function watched(child: ChildProcess) {
  running.add(child)
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      running.delete(child)
      resolve(code)
    })
  })
  return { process: child, stdout: () => stdout, stderr: () => stderr, exited }
}

// A test run that breaks off leaves nothing behind.
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
