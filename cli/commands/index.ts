/**
 * The commands, in the order of the help. Each is a row of `command.ts`: what it takes, what it asks the admin API, and how the answer
 * reads. A command knows neither URL, token nor exit code.
 *
 * @module
 */
import type { CommandRow } from '../command.ts'
import { auditCommands } from './audit.ts'
import { doctorCommands } from './doctor.ts'
import { keysCommands } from './keys.ts'
import { linkCommands } from './link.ts'
import { mailCommands } from './mail.ts'
import { outboxCommands } from './outbox.ts'
import { settingsCommands } from './settings.ts'
import { userCommands } from './user.ts'

export const commands: CommandRow[] = [
  ...settingsCommands,
  ...mailCommands,
  ...doctorCommands,
  ...userCommands,
  ...linkCommands,
  ...auditCommands,
  ...outboxCommands,
  ...keysCommands,
]
