import { expect } from 'chai'
import { settingsOf } from './admin.ts'
import { jsonOf, runCli, type CliRun, type Environment, type RunOptions } from './cli-in-process.ts'
import { ADMIN_TOKEN, type Harness, type HarnessOptions } from './harness.ts'
import { suiteHarness } from './suite-harness.ts'

export interface CliServer {
  h: Harness
  /** All that the command line needs to reach it. */
  env: Environment
  run(args: string[], options?: RunOptions): Promise<CliRun>
  /** Exit 0. */
  done(args: string[], options?: RunOptions): Promise<CliRun>
  /** The one JSON value that it prints with `--json`. */
  json(args: string[], options?: RunOptions): Promise<ReturnType<typeof jsonOf>>
  settings(): Promise<Record<string, string>>
}

/** A service in this process for the suite that asks for it, and the command line that is pointed at it. */
export function suiteCli(options: HarnessOptions = {}): CliServer {
  return cliOf(suiteHarness(options))
}

export function cliOf(h: Harness): CliServer {
  const env: Environment = {
    get ACCOUNT_FLOWS_URL() {
      return h.baseUrl
    },
    ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN,
  }
  const run: CliServer['run'] = (args, more = {}) =>
    runCli(args, { ...more, env: { ...env, ...more.env } })
  return {
    h,
    env,
    run,
    async done(args, more) {
      const ran = await run(args, more)
      expect(ran.exitCode, ran.stdout + ran.stderr).to.equal(0)
      return ran
    },
    json: async (args, more) => jsonOf(await run([...args, '--json'], more)),
    async settings() {
      const { warnings: _, ...settings } = await settingsOf(h).shown()
      return settings
    },
  }
}
