import { operations, type Operation } from '../../src/admin/operations.ts'
import { schemas } from '../../src/admin/schemas.ts'

/** What the answer to each operation has in any case, so that a client can tell it from the answer of something else. */
export function answerFields(): string {
  const entries = Object.entries<Operation>(operations).map(([name, { answer }]) => {
    const { required = [] } = schemas[answer]
    return `${name}: ${JSON.stringify(required)},`
  })
  return [
    '// Made by `npm run docs` out of src/admin/schemas.ts and src/admin/operations.ts; not to be edited.',
    "import type { Operations } from './api-types.ts'\n",
    '/** Fields that an answer always has, by operation; none: it may have any. */',
    `export const answerFields: Record<keyof Operations, readonly string[]> = {\n${entries.join('\n')}\n}\n`,
  ].join('\n')
}
