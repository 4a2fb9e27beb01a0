export { ROOT, sourcesIn } from './folders.ts'
