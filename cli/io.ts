import type { ExitCode } from './failure.ts'

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
  once(signal: Ending, listener: (signal: Ending) => void): unknown
  off(signal: Ending, listener: (signal: Ending) => void): unknown
}

/** One run of the program. */
export interface Run {
  io: Io
  exitCode: ExitCode
  isStdinRead: boolean
  /** As the last answer of the server told it. */
  serverTime?: Date
}

/** Where nobody knows the width. */
export const USUAL_COLUMNS = 80

/** In columns; `undefined`: no terminal. */
export function widthOf({ isTTY, columns }: Screen): number | undefined {
  return isTTY ? columns || USUAL_COLUMNS : undefined
}
