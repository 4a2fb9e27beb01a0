/**
 * Shows that the tests catch what they are for: runs them unchanged first, which must pass, and then on each broken variant of a
 * copy of this checkout, where the test that the variant names must fail. Arguments: parts of names, to run those alone.
 *
 * @module
 */
import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { allMutants } from './all-mutants.ts'
import { applied, ROOT, type Mutant } from './mutant.ts'

const LINKED = ['node_modules', '.cache']
const NOT_COPIED = new Set([...LINKED, 'dist', '.git'])
const LIMIT_MS = 60_000
const UNCHANGED_LIMIT_MS = 300_000
const TEST_LIMIT_MS = 8_000

interface TestResult {
  fullTitle: string
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
async function runTests(copy: string, files: string[], pattern: string, limitMs: number) {
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
      ...(limitMs === LIMIT_MS ? ['--bail'] : []),
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

function patternOf({ caughtBy: { words, store = 'memory' } }: Mutant): string {
  const text = words.replaceAll(/[^\w ]/g, '.')
  return store === 'mongodb' ? `^[^]*[Mm]ongo[^]*${text}` : `^(?![^]*, on MongoDB)[^]*${text}`
}

// A hook that fails tells nothing: perhaps nothing runs at all.
function isCaught({ failures }: Report, mutant: Mutant): boolean {
  const pattern = new RegExp(patternOf(mutant))
  return failures.some(({ fullTitle }) => pattern.test(fullTitle) && !/" hook\b/.test(fullTitle))
}

async function passUnchanged(copy: string, mutants: Mutant[]): Promise<boolean> {
  const files = [...new Set(mutants.map(({ caughtBy }) => caughtBy.file))]
  const patterns = mutants.map(patternOf)
  const report = await runTests(copy, files, patterns.join('|'), UNCHANGED_LIMIT_MS)
  for (const { fullTitle } of report?.failures ?? []) console.log(`FAILS UNCHANGED  ${fullTitle}`)
  const passes = report?.passes ?? []
  const unseen = mutants.filter(
    (_, index) =>
      !passes.some(({ fullTitle }) => new RegExp(patterns[index] ?? '').test(fullTitle)),
  )
  for (const { name, caughtBy } of unseen) {
    console.log(`NO SUCH TEST     ${name}: "${caughtBy.words}" in ${caughtBy.file}`)
  }
  console.log(`unchanged: ${passes.length} tests pass`)
  return report !== undefined && report.failures.length === 0 && unseen.length === 0
}

async function verdict(copy: string, mutant: Mutant): Promise<'caught' | 'SURVIVED' | 'BROKEN'> {
  const changed = await applied(mutant)
  for (const [file, text] of changed) await writeFile(join(copy, file), text)
  const run = () => runTests(copy, [mutant.caughtBy.file], patternOf(mutant), LIMIT_MS)
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
  for (const mutant of mutants) await applied(mutant)
  if (await passUnchanged(copy, mutants)) {
    for (const mutant of mutants) {
      const outcome = await verdict(copy, mutant)
      if (outcome === 'caught') caught += 1
      console.log(`${outcome.padEnd(8)} ${mutant.name}`)
    }
    console.log(`${caught} of ${mutants.length} caught`)
  }
} finally {
  await rm(copy, { recursive: true, force: true })
}
process.exitCode = mutants.length > 0 && caught === mutants.length ? 0 : 1
