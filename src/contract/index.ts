/** Everything outside the flows: what a host implements or is handed, and the types that many parts share. */
export type * from './audit.ts'
export type { Log } from '../log.ts'
export type * from '../store/captured-request.ts'
export type * from './mails.ts'
export type * from './passwords.ts'
export type * from './requests.ts'
export type * from './sessions.ts'
export type * from './users.ts'
