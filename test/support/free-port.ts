export { freePort } from './serve.ts'
