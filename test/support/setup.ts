import type { Runner, Suite } from 'mocha'
import { IN_CHROMIUM, setUpChromium } from './chromium.ts'
import { endRun } from './end-of-run.ts'
import { setUpMongo, type Topology } from './mongod-servers.ts'
import { TITLES } from './mongod.ts'
import { collectAdvice } from './setup-advice.ts'

/** What the types of mocha leave out. */
export type AnyRunner = Runner & { isParallelMode(): boolean }

const TOPOLOGIES: Topology[] = ['standalone', 'replica set']

/**
 * Finds, fetches or installs what the tests of a run need, starts it, and tells where it is from. Workers, which come later, start
 * their own and fetch nothing.
 */
export async function setUp(runner: AnyRunner): Promise<void> {
  collectAdvice()
  const isParallel = runner.isParallelMode()
  const suites = isParallel ? [TITLES.standalone, IN_CHROMIUM] : titlesThatRun(runner)
  const topology = TOPOLOGIES.find((topology) => suites.includes(TITLES[topology]))
  await Promise.all([
    topology && setUpMongo(topology).then(tell),
    suites.includes(IN_CHROMIUM) && setUpChromium().then(tell),
  ])
  if (isParallel) await endRun()
}

function tell(line: string): void {
  console.warn(line)
}

/** Of the suites in which a test is not left out. */
function titlesThatRun(runner: Runner): string[] {
  const withTests = (suite: Suite) => runner.grepTotal(suite) > 0
  return everySuite(runner.suite)
    .filter(withTests)
    .map((suite) => suite.title)
}

function everySuite(suite: Suite): Suite[] {
  return [suite, ...suite.suites.flatMap(everySuite)]
}
