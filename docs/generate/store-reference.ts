import { functionsOf } from './exports.ts'
import { example, list, type } from './source.ts'

/** docs/reference-stores.md: what an author of a store writes against. */
export function storeReferencePage(): string {
  return `# Reference for authors of stores

<!-- Made by \`npm run docs\` out of the types; not to be edited. -->

What a store for another database has. [Your own](stores.md#your-own) has the rules, and [\`examples/stores/sqlite.ts\`](../examples/stores/sqlite.ts) is a whole one. All types and functions below are in
\`oidc-account-flows/store\`.

- [In use](#in-use) · [RecordStore](#recordstore) · [Kind](#kind) · [Query](#query) · [Change](#change) · [Stored](#stored) · [Functions](#functions) · [Tests](#tests)

## In use

The flows use a store like this. Yours takes the place of \`memoryStore()\`:

${example(IN_USE)}

## RecordStore

Each method throws an \`AccountFlowsError\` with the code \`ERR_STORE_UNAVAILABLE\` if the database does not answer in time.

${list('RecordStore')}

## Kind

A kind is a table, or a collection:

${list('Kind')}

${type('FieldType')}

## Query

What \`find\` looks for:

${list('Query')}

## Change

What \`swap\` writes:

${list('Change', 'store/')}

${type('Fields', 'store/')}

${type('Value')}

## Stored

What \`get\` and \`find\` read:

${type('Stored')}

## Functions

${functionsOf('store/published.ts')}

## Tests

\`itIsARecordStore\` of \`oidc-account-flows/contract\` says when your store is done. It needs mocha and chai.

${example(TEST)}
`
}

const IN_USE = `
import { memoryStore } from 'oidc-account-flows'
import { ANY, type Kind } from 'oidc-account-flows/store'

const notes: Kind = {
  name: 'notes',
  fields: { owner: 'text', written_at: 'time' },
  required: ['owner'],
  indexes: [['owner', 'written_at']],
  unique: [],
}
const store = memoryStore()
await store.start([notes])

const fields = { owner: 'ann', written_at: await store.now() }
const insert = { id: 'n1', revision: undefined, next: fields, becomes: 'random-1' }
await store.swap(notes, [insert]) // [true]
await store.swap(notes, [insert]) // [false]: it is there

const [note] = await store.get(notes, ['n1']) // its fields, revision 'random-1', was undefined
const next = { ...note?.fields, owner: 'ben' }
await store.swap(notes, [{ id: 'n1', revision: 'random-1', next, becomes: 'random-2' }]) // [true]
await store.swap(notes, [{ id: 'n1', revision: 'random-1', next, becomes: 'random-3' }]) // [false]: it changed
await store.swap(notes, [{ id: 'n2', revision: ANY, next: fields, becomes: 'random-4' }]) // [true]: overwrites, or inserts

await store.find(notes, { equal: { owner: 'ben' }, by: 'written_at', limit: 10 }) // n1
await store.swap(notes, [{ id: 'n1', revision: 'random-2', next: undefined, becomes: 'random-5' }]) // [true]: removed`

const TEST = `
import { memoryStore } from 'oidc-account-flows'
import { itIsARecordStore } from 'oidc-account-flows/contract'

itIsARecordStore('my store', async () => ({
  store: memoryStore(), // yours, empty for each test
  close: async () => {},
}))`
