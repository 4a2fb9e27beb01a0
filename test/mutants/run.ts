/**
 * Shows that the tests catch what they are for: runs them on broken variants of copies of this checkout, where one of the tests that
 * the variant names must fail, which must pass unchanged. Arguments: parts of names, to run those alone.
 *
 * @module
 */
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { allMutants } from './all-mutants.ts'
import { ROOT } from '../support/folders.ts'
import { postgresql } from '../support/postgresql.ts'
import { applied, type Mutant } from './mutant.ts'

const LINKED = ['node_modules', '.cache']
const NOT_COPIED = new Set([...LINKED, 'bench/peers', 'dist', '.git'])
/** What each run loads is compiled once, from Node 22 on. The counts are told here, not by each run. */
const ENVIRONMENT = {
  NODE_COMPILE_CACHE: await mkdtemp(join(tmpdir(), 'mutants-compiled-')),
  TEST_COUNTS_FILE: '',
  TEST_FAILURES_FILE: '',
}
const LIMIT_MS = 60_000
const UNCHANGED_LIMIT_MS = 1_800_000
const TEST_LIMIT_MS = 8_000
const UNCHANGED_TEST_LIMIT_MS = 600_000

interface TestResult {
  fullTitle: string
  file: string
}

interface Report {
  passes: TestResult[]
  failures: TestResult[]
}

interface Verdict {
  mutant: Mutant
  /** Where it changes the product. */
  folder: string
  outcome: 'caught' | 'SURVIVED' | 'BROKEN' | 'STALE' | 'FAILS UNCHANGED'
  /** The test that failed. */
  test?: TestResult
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
      '--import=tsx/esm',
      join(copy, 'node_modules/mocha/bin/mocha.js'),
      '--no-config',
      '--exit',
      '--reporter=json',
      `--reporter-option=output=${report}`,
      `--grep=${pattern}`,
      ...flags,
      ...files,
    ],
    {
      cwd: copy,
      stdio: 'ignore',
      detached: true,
      env: { ...process.env, ...ENVIRONMENT },
    },
  )
  const end = () => process.kill(-(child.pid ?? 0), 'SIGKILL')
  const timer = setTimeout(end, limitMs)
  await new Promise((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  const text = await readFile(report, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as Report)
}

/** Sets up what tests need beside memory, and takes longer to load than most of them. */
const SET_UP = '--require=./test/support/hooks.ts'

function patternOf({ caughtBy, isOnMongo }: Mutant): string {
  const text = caughtBy.replaceAll(/[^\w ]/g, '.')
  return isOnMongo
    ? `^[^]*[Mm]ongo[^]*${text}`
    : `^(?![^]*(?:[Mm]ongo|${postgresql.title}))[^]*${text}`
}

/** The files that have tests of a mutant, wherever those are written. */
async function filesByMutant(copy: string): Promise<(mutant: Mutant) => Set<string>> {
  const pattern = mutants.map(patternOf).join('|')
  const flags = ['--dry-run', '--ignore=test/faults/**']
  const report = await runTests(copy, ['test/**/*.test.ts'], pattern, UNCHANGED_LIMIT_MS, ...flags)
  const tests = report?.passes ?? []
  return (mutant) => {
    const pattern = new RegExp(patternOf(mutant))
    const own = tests.filter(({ fullTitle }) => pattern.test(fullTitle))
    return new Set(own.map(({ file }) => relative(copy, file)))
  }
}

async function verdictOf(mutant: Mutant, copy: string, files: Set<string>): Promise<Verdict> {
  const { changed, stale } = applied(mutant)
  const folder = dirname([...changed.keys()][0] ?? '')
  if (stale.length > 0) return { mutant, folder, outcome: 'STALE' }
  for (const [file, text] of changed) await writeFile(join(copy, file), text)
  const pattern = patternOf(mutant)
  const flags = ['--bail', `--timeout=${TEST_LIMIT_MS}`, ...(mutant.isOnMongo ? [SET_UP] : [])]
  const run = async (): Promise<Verdict> => {
    const report = await runTests(copy, files, pattern, LIMIT_MS, ...flags)
    // A hook that fails is no proof: perhaps no test runs at all.
    const test = report?.failures.find(({ fullTitle }) => !/" hook\b/.test(fullTitle))
    if (test) return { mutant, folder, outcome: 'caught', test }
    const ran = report?.failures.length === 0 && report.passes.length > 0
    return { mutant, folder, outcome: ran ? 'SURVIVED' : 'BROKEN' }
  }
  const first = await run()
  // The MongoDB of the tests hangs now and then on a busy machine, and races have their luck.
  const verdict = first.outcome === 'caught' ? first : await run()
  for (const file of changed.keys()) await cp(join(ROOT, file), join(copy, file))
  return verdict
}

/** The verdicts, without those of tests that fail unchanged too. */
async function unlessUnchanged(copy: string, verdicts: Verdict[]): Promise<Verdict[]> {
  const tests = verdicts.flatMap(({ test }) => test ?? [])
  const run = async (some: TestResult[]) => {
    if (some.length === 0) return []
    const files = new Set(some.map(({ file }) => file))
    const pattern = some.map(({ fullTitle }) => `^${fullTitle.replaceAll(/\W/g, '.')}$`).join('|')
    const flags = [SET_UP, `--timeout=${UNCHANGED_TEST_LIMIT_MS}`]
    const report = await runTests(copy, files, pattern, UNCHANGED_LIMIT_MS, ...flags)
    const passed = new Set(report?.passes.map(({ fullTitle }) => fullTitle))
    return some.filter(({ fullTitle }) => !passed.has(fullTitle))
  }
  const failing = new Set((await run(await run(tests))).map(({ fullTitle }) => fullTitle))
  return verdicts.map((verdict) =>
    verdict.test && failing.has(verdict.test.fullTitle)
      ? { ...verdict, outcome: 'FAILS UNCHANGED' }
      : verdict,
  )
}

/** One mutant after the other, in a copy of its own, until none is left. */
async function work(copy: string, left: Mutant[], filesOf: (mutant: Mutant) => Set<string>) {
  const verdicts: Verdict[] = []
  for (let mutant = left.shift(); mutant; mutant = left.shift()) {
    const verdict = await verdictOf(mutant, copy, filesOf(mutant))
    console.log(`${verdict.outcome.padEnd(8)} ${mutant.name}`)
    verdicts.push(verdict)
  }
  return unlessUnchanged(copy, verdicts)
}

/** Says how many are caught, and which are not, also to the program that runs the tests, in the files that it named. */
function tell(verdicts: Verdict[]): void {
  const missed = verdicts.filter(({ outcome }) => outcome !== 'caught')
  const lines = missed.map(
    ({ outcome, mutant }) => `${outcome}  ${mutant.name} (${mutant.caughtBy})`,
  )
  console.log(['', ...lines].join('\n'))
  const folders = [...new Set(verdicts.map(({ folder }) => folder))].sort()
  for (const folder of [...folders, undefined]) {
    const some = verdicts.filter((verdict) => folder === undefined || verdict.folder === folder)
    const caught = some.filter(({ outcome }) => outcome === 'caught').length
    console.log(`${(folder ?? 'all').padEnd(24)} ${caught} / ${some.length}`)
  }
  const { TEST_COUNTS_FILE: counts, TEST_FAILURES_FILE: failures } = process.env
  if (counts) appendFileSync(counts, `${verdicts.length - missed.length} ${missed.length} 0\n`)
  if (failures) appendFileSync(failures, lines.map((line) => `mutant ${line}\n`).join(''))
}

const wanted = process.argv.slice(2)
const mutants = allMutants.filter(
  ({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)),
)
// A test waits for a mail now and then.
const workers = availableParallelism() + 1
const copies = await Promise.all(Array.from({ length: workers }, copyOfCheckout))
const verdicts: Verdict[] = []
try {
  const filesOf = await filesByMutant(copies[0] ?? '')
  const left = [...mutants]
  verdicts.push(...(await Promise.all(copies.map((copy) => work(copy, left, filesOf)))).flat())
  tell(verdicts)
} finally {
  for (const folder of [...copies, ENVIRONMENT.NODE_COMPILE_CACHE])
    await rm(folder, { recursive: true, force: true })
}
const areCaught = verdicts.every(({ outcome }) => outcome === 'caught')
process.exitCode = verdicts.length > 0 && areCaught ? 0 : 1
