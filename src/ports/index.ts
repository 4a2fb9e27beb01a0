/**
 * Everything outside the flows: each port has an implementation in memory and one on MongoDB, and one contract suite that
 * both pass.
 */
export type * from './audit.ts'
export type * from './client-logouts.ts'
export type * from './log.ts'
export type * from './logins.ts'
export type * from './mails.ts'
export type * from './not-me-tokens.ts'
export type * from './passwords.ts'
export type * from './provider-records.ts'
export type * from './requests.ts'
export type * from './sessions.ts'
export type * from './store.ts'
export type * from './tokens.ts'
export type * from './users.ts'
