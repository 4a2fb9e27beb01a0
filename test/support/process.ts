import { type ChildProcess, spawn } from 'node:child_process'
import { eventually } from './eventually.ts'
import { ROOT } from './folders.ts'

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

/** Starts a server, and answers how to stop it once it is up. What it said is thrown where it ends before. */
export async function startServer(program: string, args: string[], isUp: () => Promise<boolean>) {
  const { process: child, exited, stderr } = startProcess(program, args, process.env)
  const stop = async () => {
    child.kill()
    await exited
  }
  const looks = () => {
    if (child.exitCode !== null) throw new Error(stderr())
    return isUp()
  }
  await eventually(`${program} is up`, looks).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return stop
}
