import type { Command } from 'commander'

/** @param isHelp - whether the help is asked for, which tells more. */
export type AddCommands = (group: Command, isHelp: boolean) => void | Promise<void>

export interface Group {
  name: string
  description: string
  /** Imports what it needs, which takes time. */
  load(): Promise<AddCommands>
}

export const groups: Group[] = [
  {
    name: 'settings',
    description: 'Read and change settings.',
    load: async () => (await import('./commands/settings.ts')).addSettings,
  },
  {
    name: 'mail',
    description: 'Try the mail server, and look at mails.',
    load: async () => (await import('./commands/mail.ts')).addMail,
  },
  {
    name: 'doctor',
    description:
      'Check the way to the server, and then, from the server: keys, database, clock, base URL and mail server.',
    load: async () => (await import('./commands/doctor.ts')).addDoctor,
  },
  {
    name: 'user',
    description: 'Accounts, their links and their mails.',
    load: async () => (await import('./commands/user.ts')).addUser,
  },
  {
    name: 'link',
    description: 'Links out of mails.',
    load: async () => (await import('./commands/link.ts')).addLink,
  },
  {
    name: 'audit',
    description: 'The audit log.',
    load: async () => (await import('./commands/audit.ts')).addAudit,
  },
  {
    name: 'outbox',
    description: 'Mails that wait, and dead letters.',
    load: async () => (await import('./commands/outbox.ts')).addOutbox,
  },
  {
    name: 'keys',
    description: 'Keys that encrypt the stored secrets.',
    load: async () => (await import('./commands/keys.ts')).addKeys,
  },
]
