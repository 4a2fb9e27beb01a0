/** docs/shapes.txt: what hosts, admins and themes write against, a line for each. A line that goes or changes can break them. */
import { operations, type Operation } from '../../src/admin/all-operations.ts'
import { allSettings } from '../../src/settings/table.ts'
import { ALL_KINDS } from '../../src/store/index.ts'
import { SAMPLE_PAGES } from '../../src/views/page-locals.ts'
import { createProgram } from '../../cli/program.ts'
import { exitCodes } from '../../cli/output.ts'
import { shapesOf } from './exports.ts'
import { eventShapes } from './events.ts'
import { declaredMembers } from './source.ts'

const ENTRIES = {
  '.': 'index.ts',
  './store': 'store/published.ts',
  './contract': 'contract/suites/index.ts',
  './admin-client': 'admin/client.ts',
}

function* commandLine() {
  const run = { io: process, exitCode: exitCodes.done, isStdinRead: false }
  const waiting = [createProgram(run)]
  for (const command of waiting) {
    waiting.push(...command.commands)
    const words = [command.name()]
    for (let { parent } = command; parent; { parent } = parent) words.unshift(parent.name())
    const taken = command.registeredArguments.map((one) =>
      one.required ? `<${one.name()}>` : `[${one.name()}]`,
    )
    const options = command.options.map(({ flags }) => `[${flags}]`).toSorted()
    yield [...words, ...taken, ...options].join(' ')
  }
  for (const [name, code] of Object.entries(exitCodes)) yield `exit code ${code}: ${name}`
}

function* records() {
  for (const { name, fields, required, unique, purgedAt, insertedAt, indexes } of ALL_KINDS) {
    for (const [field, type] of Object.entries(fields)) {
      const notes = [
        required.includes(field) ? '' : 'may be absent',
        unique.includes(field) ? 'unique' : '',
        field === purgedAt ? 'purged then' : '',
        field === insertedAt ? 'of the database' : '',
      ]
      yield [`${name}.${field}: ${type}`, ...notes.filter(Boolean)].join(', ')
    }
    for (const index of indexes) yield `${name}, index: ${index.join(', ')}`
  }
}

function* pages() {
  const all: [string, Record<string, object[]>][] = Object.entries(SAMPLE_PAGES)
  for (const [page, modes] of all)
    for (const [mode, samples] of Object.entries(modes)) {
      const names = new Set(samples.flatMap((sample) => Object.keys(sample)))
      names.delete('mode')
      yield [`${page}, ${mode}:`, ...[...names].toSorted()].join(' ')
    }
}

const GROUPS: [title: string, lines: Iterable<string>][] = [
  ...Object.entries(ENTRIES).map(([entry, file]): [string, string[]] => [
    `export ${entry}`,
    shapesOf(file),
  ]),
  ['option', declaredMembers('AccountFlowsOptions').map(({ declared }) => declared)],
  [
    'setting',
    allSettings.map(
      ({ name, default: byDefault }) =>
        `${name}${byDefault === undefined ? '' : ` = ${byDefault}`}`,
    ),
  ],
  ['command line', commandLine()],
  [
    'admin API, bodies in openapi.json',
    Object.entries<Operation>(operations).map(
      ([name, { route, scope }]) => `${route}, ${scope}: ${name}`,
    ),
  ],
  ['event', eventShapes()],
  ['record', records()],
  ['page', pages()],
]

export function shapesFile(): string {
  const groups = GROUPS.map(([title, lines]) =>
    [...lines].map((line) => `${title} | ${line}\n`).join(''),
  )
  return groups.join('\n')
}
