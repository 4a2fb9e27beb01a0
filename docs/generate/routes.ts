import * as z from 'zod'
import { operations, type Operation } from '../../src/admin/operations.ts'

/** The file by which the client knows the operations, without loading what the server needs. */
export function routesFile(): string {
  const rows = Object.entries<Operation>(operations).map(([name, { route, answer }]) => {
    const [field] = z.toJSONSchema(answer).required ?? []
    return `${name}: ['${route}', ${JSON.stringify(field)}],`
  })
  return `import type { OperationName } from './operations.ts'

/** Written by \`npm run docs\`: the route of each operation, and a field that each of its answers has. By it the client knows our answer from that of a proxy. */
export const ROUTES = {
${rows.join('\n')}
} as const satisfies Record<OperationName, readonly [route: string, field: string | undefined]>
`
}
