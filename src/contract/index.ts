/** What a host implements or is handed. It knows nothing of what is done with it: no flow, no page, no database. */
export type * from './audit.ts'
export type { Log } from '../log.ts'
export type * from './mails.ts'
export type * from './requests.ts'
export type * from './users.ts'
