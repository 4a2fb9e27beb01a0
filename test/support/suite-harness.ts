export { suiteHarness } from './harness.ts'
