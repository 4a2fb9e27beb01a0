import { EventEmitter } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { expect } from 'chai'
import type { Ending } from '../../cli/io.ts'
import { run } from '../../cli/program.ts'

export type Environment = Record<string, string>

export interface CliRun {
  exitCode: number | null
  stdout: string
  stderr: string
}

export interface RunOptions {
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
    pid: NaN,
    kill: (_: number, signal: Ending) => expect.fail(`${signal} ended it`),
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

/** The one JSON value that was printed. */
export function jsonOf({ stdout, stderr }: CliRun) {
  try {
    return JSON.parse(stdout)
  } catch {
    return expect.fail(`no JSON on stdout: ${stdout}\nand on stderr: ${stderr}`)
  }
}
