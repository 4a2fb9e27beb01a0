/** What a host implements or is handed, and the words that all folders share: kinds of mails, what requests carry. It knows no flow, page or database. */
export type * from './audit.ts'
export type { Log } from '../log.ts'
export type * from './mails.ts'
export type * from './requests.ts'
export type * from './users.ts'
