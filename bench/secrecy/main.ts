/**
 * The proof that the times of the answers tell nobody who has an account. It measures pairs of requests. Six tests try to tell them
 * apart. docs/security.md says how to run it and how to read it.
 */
import { stopMongo } from '../../test/support/mongod.ts'
import { PAIRS_FOR_EQUALITY } from './judge.ts'
import { readOptions, USAGE } from './options.ts'
import { proveDeployment, proveExample } from './prove.ts'
import { conclude, EXIT_CODES, headLine, linesOf, type Conclusion, type Outcome } from './report.ts'
import { createRandom } from './statistics.ts'

const options = readOrRefuse()
const { isJson, pairs, seed } = options
const isEnough = pairs >= PAIRS_FOR_EQUALITY
const SENTENCES: Record<Conclusion, string> = {
  quiet: isEnough
    ? 'QUIET: nothing can be told apart.'
    : 'QUIET: no difference was seen twice, which shows little with so few pairs.',
  leak: 'LEAK: these can be told apart, as the table says.',
  void: 'VOID: this run shows nothing, as a control misbehaved or nothing was measured.',
}
const outcomes: Outcome[] = []

function show(outcome: Outcome) {
  outcomes.push(outcome)
  if (!isJson) console.log(linesOf(outcome).join('\n'))
}

if (!isJson) {
  console.log(`Node ${process.version}, ${pairs} pairs of each contrast, --seed ${seed}`)
  if (!isEnough)
    console.log(
      `Below ${PAIRS_FOR_EQUALITY} pairs a difference may show; that there is none is not shown.`,
    )
  console.log(`\n${headLine()}`)
}
const run = { options, random: createRandom(seed), show }
let conclusion: Conclusion = 'void'
try {
  await (options.deployment ? proveDeployment(options.deployment, run) : proveExample(run))
  conclusion = conclude(outcomes)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
}
if (isJson) console.log(JSON.stringify({ conclusion, seed, node: process.version, outcomes }))
else console.log(`\n${SENTENCES[conclusion]}`)
stopMongo()
process.exit(EXIT_CODES[conclusion])

function readOrRefuse() {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
    return process.exit(EXIT_CODES.void)
  }
}
