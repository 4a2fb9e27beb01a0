export { onBothStores } from './harness.ts'
