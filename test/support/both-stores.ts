import type { Technology } from './harness.ts'
import { describeWithMongo } from './mongod.ts'

/** The same suite on the embedded store and, in the full tier, on MongoDB. */
export function onBothStores(title: string, body: (technology: Technology) => void): void {
  describe(`${title}, in memory`, () => body('memory'))
  describeWithMongo(`${title}, on MongoDB [full]`, () => body('mongodb'))
}
