import { startExampleServer, type ExampleServer, type Variables } from './example-server.ts'
import { cliProgram, runCli, type CliRun, type Environment, type RunOptions } from './cli.ts'

export interface CliServer {
  server: ExampleServer
  /** All that the command line needs to reach it. */
  env: Environment
  run(args: string[], options?: RunOptions): Promise<CliRun>
  settings(): Promise<Record<string, string>>
  put(settings: Record<string, string>): Promise<void>
  close(): Promise<unknown>
}

/** An example server, and the command line that is pointed at it. */
export async function startCliServer(variables: Variables = {}): Promise<CliServer> {
  cliProgram()
  const server = await startExampleServer(variables)
  const env = { ACCOUNT_FLOWS_URL: server.baseUrl, ACCOUNT_FLOWS_TOKEN: server.adminToken }
  const request = async (init: RequestInit = {}) => {
    const response = await fetch(`${server.baseUrl}/admin/api/settings`, {
      ...init,
      headers: {
        authorization: `Bearer ${server.adminToken}`,
        'content-type': 'application/json',
      },
    })
    if (!response.ok) throw new Error(`settings: ${response.status} ${await response.text()}`)
    const { warnings: _, ...settings } = await response.json()
    return settings
  }
  return {
    server,
    env,
    run: (args, options = {}) => runCli(args, { ...options, env: { ...env, ...options.env } }),
    settings: () => request(),
    put: (settings) => request({ method: 'PUT', body: JSON.stringify(settings) }),
    close: () => server.stop(),
  }
}
