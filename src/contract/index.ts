/**
 * The interfaces that a host implements or receives, and the terms that all folders share: kinds of mails, and what requests carry. This
 * folder knows no flow, page or database.
 */
export type * from './audit.ts'
export type { Log } from '../log.ts'
export type * from './mails.ts'
export type * from './requests.ts'
export type * from './users.ts'
