/**
 * Shows that the tests catch what they are for: runs them unchanged first, which must pass, and then on each broken variant of a
 * copy of this checkout, where one of the tests that the variant names must fail. Arguments: parts of names, to run those alone.
 *
 * @module
 */
import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { allMutants } from './all-mutants.ts'
import { ROOT } from '../support/sources.ts'
import { applied, type Mutant } from './mutant.ts'

const LINKED = ['node_modules', '.cache']
const NOT_COPIED = new Set([...LINKED, 'bench/peers', 'dist', '.git'])
const LIMIT_MS = 60_000
const UNCHANGED_LIMIT_MS = 300_000
const TEST_LIMIT_MS = 8_000

interface TestResult {
  fullTitle: string
  file: string
}

interface Report {
  passes: TestResult[]
  failures: TestResult[]
}

async function copyOfCheckout(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'mutants-'))
  await cp(ROOT, copy, {
    recursive: true,
    filter: (source) => !NOT_COPIED.has(relative(ROOT, source)),
  })
  for (const name of LINKED) await symlink(join(ROOT, name), join(copy, name)).catch(() => {})
  return copy
}

/** `undefined`: no report came, because the tests could not be loaded, or hung. */
async function runTests(
  copy: string,
  files: Iterable<string>,
  pattern: string,
  limitMs: number,
  ...flags: string[]
): Promise<Report | undefined> {
  const report = join(copy, 'report.json')
  await rm(report, { force: true })
  const child = spawn(
    process.execPath,
    [
      join(copy, 'node_modules/mocha/bin/mocha.js'),
      '--no-config',
      '--node-option=import=tsx/esm',
      '--require=./test/support/hooks.ts',
      `--timeout=${TEST_LIMIT_MS}`,
      '--exit',
      '--reporter=json',
      `--reporter-option=output=${report}`,
      `--grep=${pattern}`,
      ...flags,
      ...files,
    ],
    { cwd: copy, stdio: 'ignore', detached: true },
  )
  // Mocha runs the tests in a child of its own, which belongs to the group.
  const timer = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), limitMs)
  await new Promise((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  const text = await readFile(report, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as Report)
}

function patternOf({ caughtBy, store }: Mutant): string {
  const text = caughtBy.replaceAll(/[^\w ]/g, '.')
  return store === 'mongodb' ? `^[^]*[Mm]ongo[^]*${text}` : `^(?![^]*[Mm]ongo)[^]*${text}`
}

const allPatterns = () => mutants.map(patternOf).join('|')

/** The files that have tests of a mutant, wherever those are written. */
async function filesByMutant(copy: string): Promise<Map<Mutant, Set<string>>> {
  const flags = ['--dry-run', '--ignore=test/faults/**']
  const every = ['test/**/*.test.ts']
  const report = await runTests(copy, every, allPatterns(), UNCHANGED_LIMIT_MS, ...flags)
  const tests = report?.passes ?? []
  const filesOf = (pattern: RegExp) =>
    new Set(tests.filter(({ fullTitle }) => pattern.test(fullTitle)).map(({ file }) => file))
  return new Map(mutants.map((mutant) => [mutant, filesOf(new RegExp(patternOf(mutant)))]))
}

// A hook that fails tells nothing: perhaps nothing runs at all.
function isCaught({ failures }: Report, mutant: Mutant): boolean {
  const pattern = new RegExp(patternOf(mutant))
  return failures.some(({ fullTitle }) => pattern.test(fullTitle) && !/" hook\b/.test(fullTitle))
}

async function passUnchanged(copy: string, files: Map<Mutant, Set<string>>): Promise<boolean> {
  const all = new Set([...files.values()].flatMap((some) => [...some]))
  const report = await runTests(copy, all, allPatterns(), UNCHANGED_LIMIT_MS)
  for (const { fullTitle } of report?.failures ?? []) console.log(`FAILS UNCHANGED  ${fullTitle}`)
  const passes = report?.passes ?? []
  const unseen = mutants.filter((mutant) => {
    const pattern = new RegExp(patternOf(mutant))
    return !passes.some(({ fullTitle }) => pattern.test(fullTitle))
  })
  for (const { name, caughtBy } of unseen) console.log(`NO SUCH TEST     ${name}: ${caughtBy}`)
  console.log(`unchanged: ${passes.length} tests pass`)
  return report !== undefined && report.failures.length === 0 && unseen.length === 0
}

async function verdict(
  copy: string,
  mutant: Mutant,
  files: Set<string>,
): Promise<'caught' | 'SURVIVED' | 'BROKEN' | 'STALE'> {
  const { changed, stale } = applied(mutant)
  if (stale.length > 0) return 'STALE'
  for (const [file, text] of changed) await writeFile(join(copy, file), text)
  const run = () => runTests(copy, files, patternOf(mutant), LIMIT_MS, '--bail')
  // The MongoDB of the tests hangs now and then on a busy machine.
  const report = (await run()) ?? (await run())
  for (const file of changed.keys()) await cp(join(ROOT, file), join(copy, file))
  if (!report) return 'BROKEN'
  if (isCaught(report, mutant)) return 'caught'
  return report.failures.length > 0 ? 'BROKEN' : 'SURVIVED'
}

const wanted = process.argv.slice(2)
const mutants = allMutants.filter(
  ({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)),
)
const copy = await copyOfCheckout()
let caught = 0
try {
  const files = await filesByMutant(copy)
  if (await passUnchanged(copy, files)) {
    for (const [mutant, some] of files) {
      const outcome = await verdict(copy, mutant, some)
      if (outcome === 'caught') caught += 1
      console.log(`${outcome.padEnd(8)} ${mutant.name}`)
    }
    console.log(`${caught} of ${mutants.length} caught`)
  }
} finally {
  await rm(copy, { recursive: true, force: true })
}
process.exitCode = mutants.length > 0 && caught === mutants.length ? 0 : 1
