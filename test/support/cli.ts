/**
 * The command line: in this process, as a process of its own, at a terminal, and pointed at a service.
 *
 * @module
 */
import { spawnSync } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { expect } from 'chai'
import type { Ending } from '../../cli/output.ts'
import { run } from '../../cli/program.ts'
import { settingsOf } from './admin.ts'
import { compiledCheckout } from './compiled-checkout.ts'
import { ADMIN_TOKEN, suiteHarness, type Harness, type HarnessOptions } from './harness.ts'
import { startProcess } from './process.ts'
import { serve, type Served } from './serve.ts'

type Environment = Record<string, string>

export interface CliRun {
  exitCode: number | null
  stdout: string
  stderr: string
}

interface RunOptions {
  /** All that the command line has in its environment. */
  env?: Environment
  /** `undefined`: none, and at its end. */
  stdin?: string | Buffer
}

/** Runs the command line in this process until it ends. */
export async function runCli(args: string[], { env, stdin }: RunOptions = {}): Promise<CliRun> {
  const cli = startCli(args, env)
  cli.stdin.end(stdin)
  return { exitCode: await cli.exited, stdout: cli.stdout(), stderr: cli.stderr() }
}

/** Starts the command line in this process, to be watched; with `isTTY` at terminals of 80 columns. */
export function startCli(args: string[], env: Environment = {}, isTTY = false) {
  const stdin = Object.assign(new PassThrough(), { isTTY })
  const [stdout, stderr] = [screen(isTTY), screen(isTTY)]
  const signals = new EventEmitter()
  const io = Object.assign(signals, {
    stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    env,
  })
  return {
    stdin,
    exited: run(args, io),
    stdout: stdout.text,
    stderr: stderr.text,
    signal: (signal: Ending) => void signals.emit(signal, signal),
  }
}

function screen(isTTY: boolean) {
  let text = ''
  const stream = new Writable({
    write(chunk, _, done) {
      text += String(chunk)
      done()
    },
  })
  return { stream: Object.assign(stream, { isTTY, columns: 80 }), text: () => text }
}

/** All of it is in the text. */
export function expectSaid(text: string, ...said: (string | RegExp)[]): void {
  for (const each of said) {
    if (typeof each === 'string') expect(text).to.include(each)
    else expect(text).to.match(each)
  }
}

/** The one JSON value that was printed. */
function jsonOf({ stdout, stderr }: CliRun) {
  try {
    return JSON.parse(stdout)
  } catch {
    return expect.fail(`no JSON on stdout: ${stdout}\nand on stderr: ${stderr}`)
  }
}

/** Whether it has seen to the request; otherwise that goes on to the service. */
type Doorkeeper = (request: IncomingMessage, response: ServerResponse) => unknown

/** A service in this process for the suite that asks for it, and the command line that is pointed at it. */
export function suiteCli(options: HarnessOptions = {}) {
  const cli = cliOf(suiteHarness(options))
  const doors: Served[] = []
  after(() => Promise.all(doors.map((door) => door.close())))
  return {
    ...cli,

    /** A server in front of the service that may answer in its place: what points the command line at it, and method and path of each request so far. */
    async door(keeper: Doorkeeper = () => false) {
      const requests: string[] = []
      const door = await serve((request, response) => {
        requests.push(`${request.method} ${request.url}`)
        if (keeper(request, response)) return
        const { method = '', headers, url = '' } = request
        const onward = forward(new URL(url, cli.h.baseUrl), { method, headers }, (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.pipe(response)
        })
        request.pipe(onward)
      })
      doors.push(door)
      return { env: { ACCOUNT_FLOWS_URL: door.url }, requests }
    },
  }
}

export type CliServer = ReturnType<typeof cliOf>

export function cliOf(h: Harness) {
  const env: Environment = {
    get ACCOUNT_FLOWS_URL() {
      return h.baseUrl
    },
    ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN,
  }
  const run = (args: readonly string[], more: RunOptions = {}) =>
    runCli([...args], { ...more, env: { ...env, ...more.env } })

  /** Ends with this code; answers all that it printed. */
  async function ended(args: readonly string[], exitCode: number, more?: RunOptions) {
    const ran = await run(args, more)
    expect(ran.exitCode, `${args.join(' ')}\n${ran.stdout}${ran.stderr}`).to.equal(exitCode)
    return ran
  }
  return {
    h,
    /** All that the command line needs to reach it. */
    env,
    run,
    ended,
    done: (args: readonly string[], more?: RunOptions) => ended(args, 0, more),

    /** Says on stderr alone why not, and no secret; answers what it says. */
    async refused(args: readonly string[], exitCode: number, more?: RunOptions) {
      const { stdout, stderr } = await ended(args, exitCode, more)
      expect(stdout).to.equal('')
      expect(stderr).not.to.equal('').and.not.include('canary')
      return stderr
    },

    /** Ends with this code at a terminal, where the answer is there before the question; answers what is shown. */
    async atTerminal(args: readonly string[], answer: string, exitCode: number, more = {}) {
      const terminal = startCli([...args], { ...env, ...more }, true)
      terminal.stdin.write(answer)
      const code = await terminal.exited
      const shown = terminal.stdout() + terminal.stderr()
      expect(code, shown).to.equal(exitCode)
      return shown
    },

    /** The one JSON value that it prints with `--json`. */
    json: async (args: readonly string[], exitCode = 0) =>
      jsonOf(await ended([...args, '--json'], exitCode)),

    async settings(): Promise<Record<string, string>> {
      const { warnings: _, ...settings } = await settingsOf(h).shown()
      return settings
    },
  }
}

/** The command line as it is published: compiled. */
export function cliProgram(): string {
  return join(compiledCheckout(), 'cli/account-flows.js')
}

/** Starts the command line as a process of its own, to be watched. */
export function startCliProcess(args: string[], env: Environment = {}) {
  return startProcess(process.execPath, [cliProgram(), ...args], env)
}

/** Runs a line of the shell, in which `"$@"` is the command line. */
export async function runInShell(line: string, env: Environment = {}): Promise<CliRun> {
  const shell = startProcess('/bin/sh', ['-c', line, 'sh', process.execPath, cliProgram()], env)
  shell.process.stdin.end()
  return { exitCode: await shell.exited, stdout: shell.stdout(), stderr: shell.stderr() }
}

/** Whether a terminal can be made for the command line. */
export function hasTerminals(): boolean {
  return spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0
}

/** Runs the command line at a terminal of 80 columns, where both its outputs are one; its end is how the terminal is left. */
export function startCliAtTerminal(args: string[], env: Environment = {}) {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const command = [process.execPath, cliProgram(), ...args].map(quoted).join(' ')
  return startAtTerminal(`${command}; code=$?; stty -a; exit $code`, env)
}

/** Runs a line of the shell at a terminal of 80 columns. */
export function startAtTerminal(line: string, env: Environment = {}) {
  const terminal = startProcess('script', ['-qec', `stty cols 80; ${line}`, '/dev/null'], {
    PATH: process.env['PATH'] ?? '',
    TERM: 'xterm',
    SHELL: '/bin/sh',
    ...env,
  })
  return { ...terminal, type: (text: string) => void terminal.process.stdin.write(text) }
}
