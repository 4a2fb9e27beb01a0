import { readdirSync, readFileSync } from 'node:fs'
import type { Edit, Mutant } from './mutant.ts'

/** Where; of the first edit of a mutant also which tests notice; what goes, and what comes in its place. */
const EDIT =
  /^@ (?<in>[\w:-]+)(?:, caught(?<store> on MongoDB)? by (?<by>.+))?\n(?<goes>(?:- .*\n)+)(?<comes>(?:\+ .*\n)*)/gm

/** What stands behind the sign of each line. */
const behindSigns = (lines = '') => lines.replace(/^. /gm, '').trimEnd()

function mutantOf(entry: string): Mutant {
  const name = /.*/.exec(entry)?.[0] ?? ''
  if (entry.replace(EDIT, '').trim() !== name) throw new Error(`not understood: ${entry}`)
  const found = [...entry.matchAll(EDIT)].map(({ groups }) => ({ ...groups }))
  const edits = found.map((edit): Edit => ({
    in: edit['in'] ?? '',
    find: behindSigns(edit['goes']),
    becomes: behindSigns(edit['comes']),
  }))
  const { by: caughtBy = '', store } = found[0] ?? {}
  return { name, edits, caughtBy, isOnMongo: store !== undefined }
}

const folder = new URL('.', import.meta.url)

export const allMutants: Mutant[] = readdirSync(folder)
  .filter((file) => file.endsWith('.diff'))
  .flatMap((file) => readFileSync(new URL(file, folder), 'utf8').split(/^# /m).slice(1))
  .map(mutantOf)
