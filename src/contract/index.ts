/** The interfaces that a host implements or receives, and the terms that all folders share. It knows no flow, page or database. */
export type * from './audit.ts'
export type { Log } from '../log.ts'
export type { MailKind } from './mail-kinds.ts'
export type * from './parameters.ts'
export type * from './transport.ts'
export type * from './users.ts'
