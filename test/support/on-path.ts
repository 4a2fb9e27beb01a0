export { onPath } from './missing.ts'
