import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** An empty folder of the suite that asks for it: the paths of files in it, by their names. */
export function suiteFolder(): (name: string) => string {
  let folder = ''
  before('there is an empty folder', async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-flows-test-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))
  return (name) => join(folder, name)
}
