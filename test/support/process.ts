import { type ChildProcess, spawn } from 'node:child_process'
import { eventually } from './eventually.ts'
import { ROOT } from './folders.ts'

/** Before mocha gives up, which could not tell why. */
export const START_LIMIT_MS = 300_000

// A test run that breaks off leaves nothing behind.
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Starts a process whose output is kept. It ends with that of the tests. */
export function startProcess(program: string, args: string[], env: NodeJS.ProcessEnv) {
  const child = spawn(program, args, { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'pipe'] })
  running.add(child)
  const said = { stdout: '', stderr: '', output: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
      said.output += text
    })
  }
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      running.delete(child)
      resolve(code)
    })
  })
  return {
    process: child,
    exited,
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    /** Both, in the order in which they came. */
    output: () => said.output,
  }
}

/** Waits until it is up, and answers what there is to see then. All that it said is thrown where it ends before. */
export async function untilUp<T>(
  { process: child, exited, output }: ReturnType<typeof startProcess>,
  look: () => T | undefined | false | Promise<T | false>,
): Promise<T> {
  const looks = () => {
    if ((child.exitCode ?? child.signalCode) !== null) throw new Error('it ended')
    return look()
  }
  return eventually('it is up', looks, START_LIMIT_MS).catch(async (cause: unknown) => {
    child.kill('SIGKILL')
    await exited
    throw new Error(`${child.spawnfile} did not come up:\n${output()}`, { cause })
  })
}

/** Starts a server, and answers how to stop it once it is up. */
export async function startServer(program: string, args: string[], isUp: () => Promise<boolean>) {
  const started = startProcess(program, args, process.env)
  await untilUp(started, isUp)
  return async () => {
    started.process.kill()
    await started.exited
  }
}
