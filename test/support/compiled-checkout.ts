import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { ROOT } from './folders.ts'

const CACHE = join(ROOT, '.cache')
const COMPILED = ['src', 'cli', 'examples']
const SOURCES = [...COMPILED, 'views', 'tsconfig.json', 'test/support/compiled-checkout.ts']
const PREFIX = 'compiled-'
const DAY_MS = 86_400_000

let folder: string | undefined

/**
 * The folder with the sources and the example as JavaScript, which starts in half the time. Made once for each state of them,
 * whichever process comes first.
 */
export function compiledCheckout(): string {
  folder ??= made(join(CACHE, PREFIX + digestOfSources()))
  return folder
}

function digestOfSources(): string {
  const digest = createHash('sha256')
  for (const file of SOURCES.flatMap(filesIn)) digest.update(file).update(readFileSync(file))
  return digest.digest('hex').slice(0, 16)
}

function filesIn(name: string): string[] {
  const path = join(ROOT, name)
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((inside) => join(path, inside))
    .filter((inside) => statSync(inside).isFile())
}

/** Elsewhere first, and moved into place in one step. */
function made(target: string): string {
  if (existsSync(target)) return target
  mkdirSync(CACHE, { recursive: true })
  removeOld()
  const draft = mkdtempSync(`${target}-`)
  compileInto(draft)
  try {
    renameSync(draft, target)
  } catch (error) {
    rmSync(draft, { recursive: true })
    if (!existsSync(target)) throw error
  }
  return target
}

function removeOld(): void {
  for (const name of readdirSync(CACHE)) {
    const path = join(CACHE, name)
    if (!name.startsWith(PREFIX)) continue
    const madeAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
    if (madeAt < Date.now() - DAY_MS) rmSync(path, { recursive: true, force: true })
  }
}

/** Types are checked elsewhere. */
function compileInto(outDir: string): void {
  const config = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: { noCheck: true, declaration: false, sourceMap: false, rootDir: ROOT, outDir },
    include: COMPILED.map((name) => join(ROOT, name)),
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
}

/** The same passwords: tests sign in often. */
function hashForLess(seedFile: string): void {
  const seed = JSON.parse(readFileSync(seedFile, 'utf8'))
  for (const user of seed.users)
    user.password_hash = bcrypt.hashSync(`${user.username}-password`, 4)
  writeFileSync(seedFile, JSON.stringify(seed))
}
