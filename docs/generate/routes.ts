import * as z from 'zod'
import { operations, type Operation } from '../../src/admin/all-operations.ts'

/** src/admin/routes.ts: what a client needs of each operation, so that it needs no schemas. */
export function routesFile(): string {
  const rows = Object.entries<Operation>(operations).map(([name, { route, answer }]) => {
    const { required = [] } = z.toJSONSchema(answer)
    return `${name}: ${JSON.stringify([route, ...required.slice(0, 1)])},`
  })
  return `import type { OperationName } from './all-operations.ts'

/** Where each operation is, and a field of its answer, which the answer of a proxy lacks. Made by \`npm run docs\`; not to be edited. */
export const ROUTES: Record<OperationName, readonly [route: string, field?: string]> = {
${rows.join('\n')}
}
`
}
