/** Signals that end a program. */
export const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type Ending = (typeof endings)[number]

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
  /** The server's time in its last answer. */
  serverTime?: Date
}

/** Used if the width is unknown. */
export const USUAL_COLUMNS = 80

/** The width in columns; `undefined`: there is no terminal. */
export function widthOf({ isTTY, columns }: Screen): number | undefined {
  return isTTY ? columns || USUAL_COLUMNS : undefined
}

export const exitCodes = {
  done: 0,
  refused: 1,
  usage: 2,
  unreachable: 3,
  notAllowed: 4,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export const exitCodesHelp = `
Exit codes:
  0  done
  1  refused or invalid, a check failed, a mail was not sent, or work is left
  2  wrong usage
  3  no admin API could be reached
  4  not allowed: wrong token, or too many requests`
