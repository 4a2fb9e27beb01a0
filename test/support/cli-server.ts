import { settingsOf } from './admin-requests.ts'
import { runCli, type CliRun, type Environment, type RunOptions } from './cli-in-process.ts'
import { ADMIN_TOKEN, startHarness, type Harness, type HarnessOptions } from './harness.ts'

export interface CliServer {
  h: Harness
  /** All that the command line needs to reach it. */
  env: Environment
  run(args: string[], options?: RunOptions): Promise<CliRun>
  settings(): Promise<Record<string, string>>
}

/** A service in this process, and the command line that is pointed at it. */
export async function startCliServer(options: HarnessOptions = {}): Promise<CliServer> {
  const h = await startHarness(options)
  const env = { ACCOUNT_FLOWS_URL: h.baseUrl, ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN }
  return {
    h,
    env,
    run: (args, options = {}) => runCli(args, { ...options, env: { ...env, ...options.env } }),
    async settings() {
      const { warnings: _, ...settings } = await settingsOf(h).shown()
      return settings
    },
  }
}
