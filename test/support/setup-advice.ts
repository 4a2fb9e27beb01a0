export { leaveOut } from './missing.ts'
