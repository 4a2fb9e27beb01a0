export { install, mayFetch, whyNotInstall } from './missing.ts'
