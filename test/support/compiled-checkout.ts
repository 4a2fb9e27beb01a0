import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { removeAbandoned, ROOT } from './folders.ts'

const CACHE = join(ROOT, '.cache')
const PREFIX = 'built-'

let folder: string | undefined

/** The folder with the sources and the example as JavaScript, which starts in half the time. It ends with this process. */
export function compiledCheckout(): string {
  folder ??= compiled()
  return folder
}

/** Types are checked elsewhere. */
function compiled(): string {
  mkdirSync(CACHE, { recursive: true })
  removeAbandoned(CACHE, PREFIX)
  const outDir = mkdtempSync(join(CACHE, `${PREFIX}${process.pid}-`))
  process.once('exit', () => rmSync(outDir, { recursive: true, force: true, maxRetries: 5 }))
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: { noCheck: true, declaration: false, sourceMap: false, rootDir: ROOT, outDir },
    include: ['src', 'cli', 'examples'].map((name) => join(ROOT, name)),
  }
  const project = join(outDir, 'tsconfig.json')
  writeFileSync(project, JSON.stringify(config))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`the checkout was not compiled:\n${stdout}`)
  for (const name of ['views', 'src/passwords', 'examples']) {
    cpSync(join(ROOT, name), join(outDir, name), {
      recursive: true,
      filter: (source) => !source.endsWith('.ts'),
    })
  }
  hashForLess(join(outDir, 'examples/seed.json'))
  return outDir
}

/** The same passwords: tests sign in often. */
function hashForLess(seedFile: string): void {
  const seed = JSON.parse(readFileSync(seedFile, 'utf8'))
  for (const user of seed.users)
    user.password_hash = bcrypt.hashSync(`${user.username}-password`, 4)
  writeFileSync(seedFile, JSON.stringify(seed))
}
