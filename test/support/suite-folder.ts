export { suiteFolder } from './folders.ts'
