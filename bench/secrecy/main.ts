/**
 * The proof that the times of the answers tell nobody who has an account. It measures pairs of requests. Six tests try to tell them
 * apart. docs/security.md says how to run it and how to read it.
 *
 * @module
 */
import { stopMongo } from '../../test/support/mongod.ts'
import { PAIRS_FOR_EQUALITY } from './judge.ts'
import { readOptions, USAGE, type Options } from './options.ts'
import { createRandom } from './random.ts'
import { conclude, EXIT_CODES, headLine, linesOf, type Outcome } from './report.ts'
import { proveDeployment } from './prove-deployment.ts'
import { proveExample } from './prove-example.ts'

function optionsOrWrong(): Options | string {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const options = optionsOrWrong()
if (typeof options === 'string') {
  console.error(`${options}\n\n${USAGE}`)
  process.exit(EXIT_CODES.void)
}
const { isJson, pairs, seed } = options
const random = createRandom(seed)
const outcomes: Outcome[] = []

function show(outcome: Outcome) {
  outcomes.push(outcome)
  if (!isJson) console.log(linesOf(outcome).join('\n'))
}

if (!isJson) {
  console.log(`Node ${process.version}, ${pairs} pairs of each contrast, --seed ${seed}`)
  if (pairs < PAIRS_FOR_EQUALITY)
    console.log(
      `Below ${PAIRS_FOR_EQUALITY} pairs a difference may show; that there is none is not shown.`,
    )
  console.log(`\n${headLine()}`)
}
let broken: unknown
try {
  if (options.deployment) await proveDeployment(options.deployment, { options, random, show })
  else await proveExample({ options, random, show })
} catch (error) {
  broken = error
} finally {
  stopMongo()
}

const conclusion = broken === undefined ? conclude(outcomes) : 'void'
if (isJson) console.log(JSON.stringify({ conclusion, seed, node: process.version, outcomes }))
else {
  const sentence = {
    quiet:
      pairs < PAIRS_FOR_EQUALITY
        ? 'QUIET: no difference was seen twice, which shows little with so few pairs.'
        : 'QUIET: nothing can be told apart.',
    leak: 'LEAK: these can be told apart, as the table says.',
    void: 'VOID: this run shows nothing, as a control misbehaved or nothing was measured.',
  }[conclusion]
  console.log(`\n${sentence}`)
}
if (broken !== undefined) console.error(broken instanceof Error ? broken.message : broken)
process.exit(EXIT_CODES[conclusion])
