import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { startExampleServer, type Variables } from '../test/support/example-server.ts'

export const PASSWORD = 'a password of the bench'

/** The example server with these clients, and with people who have one password. */
export async function startSeeded(
  { people, cost, clients }: { people: number; cost: number; clients: object[] },
  variables: Variables,
) {
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-bench-'))
  const password_hash = await bcrypt.hash(PASSWORD, cost)
  const users = Array.from({ length: people }, (_none, index) => {
    const username = `person-${index}`
    return { username, email: `${username}@example.com`, email_verified: true, password_hash }
  })
  const seedFile = join(folder, 'seed.json')
  await writeFile(seedFile, JSON.stringify({ users, clients }))
  const server = await startExampleServer({ SEED_FILE: seedFile, ...variables })
  return {
    server,
    users,
    async close() {
      await server.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
