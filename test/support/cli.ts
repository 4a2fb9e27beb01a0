import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import type { CliRun, Environment } from './cli-in-process.ts'
import { compiledCheckout } from './compiled-checkout.ts'
import { ROOT } from './sources.ts'

/** The command line as it is published: compiled. */
export function cliProgram(): string {
  return join(compiledCheckout(), 'cli/account-flows.js')
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

/** Runs the command line at a terminal of 80 columns, where both its outputs are one; its end is how the terminal is left. */
export function startCliAtTerminal(args: string[], env: Environment = {}) {
  const command = [process.execPath, cliProgram(), ...args].map(quoted).join(' ')
  return startAtTerminal(`${command}; code=$?; stty -a; exit $code`, env)
}

/** Runs a line of the shell at a terminal of 80 columns. */
export function startAtTerminal(line: string, env: Environment = {}) {
  const child = spawn('script', ['-qec', `stty cols 80; ${line}`, '/dev/null'], {
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
