import type { Technology } from './harness.ts'
import { describeWithMongo } from './mongod.ts'

/** The same suite on the embedded store and on MongoDB, the second one in `npm run test:full` unless it says otherwise. */
export function onBothStores(
  title: string,
  body: (technology: Technology) => void,
  { mongodbIn = 'npm run test:full' }: { mongodbIn?: 'npm test' | 'npm run test:full' } = {},
): void {
  const tag = mongodbIn === 'npm test' ? '' : ' [full]'
  describe(`${title}, in memory`, () => body('memory'))
  describeWithMongo(`${title}, on MongoDB${tag}`, () => body('mongodb'))
}
