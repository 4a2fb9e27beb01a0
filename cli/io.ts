import type { Command } from 'commander'
import type { ExitCode } from './exit-codes.ts'

/** Signals that end a program. */
export type Ending = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

export const endings: readonly Ending[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

export type Screen = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

/** What a run uses of its process; `process` is one. */
export interface Io {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown }
  stdout: Screen
  stderr: Screen
  env: { [name: string]: string | undefined }
  pid: number
  kill(pid: number, signal: Ending): unknown
  once(signal: Ending, listener: (signal: Ending) => void): unknown
  off(signal: Ending, listener: (signal: Ending) => void): unknown
}

/** One run of the program; its commands carry it. */
export interface Run {
  io: Io
  exitCode: ExitCode
  isStdinRead: boolean
  /** As the last answer of the server told it. */
  serverTime?: Date
}

export function withRun(program: Command, run: Run): Command {
  return program.setOptionValue('run', run)
}

export function runOf(command: Command): Run {
  const { run }: { run: Run } = command.optsWithGlobals()
  return run
}

/** Where nobody knows the width. */
export const USUAL_COLUMNS = 80

/** In columns; `undefined`: no terminal. */
export function widthOf({ isTTY, columns }: Screen): number | undefined {
  return isTTY ? columns || USUAL_COLUMNS : undefined
}
