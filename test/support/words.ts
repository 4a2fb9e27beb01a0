import { readFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Answer } from './user-agent.ts'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** What our pages and mails say in a language, by key. */
export function wordsIn(locale: string): Record<string, string> {
  const file = new URL(`../../views/locales/${locale}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8'))
}

export const words = wordsIn('en')

/** The page is headed by the words of this key. */
export function expectTitle({ text }: Answer, key: string): void {
  expect(words).to.have.property(key)
  expect(/<h1>([^<]*)<\/h1>/.exec(text)?.[1]).to.equal(words[key])
}

const made: string[] = []
process.on('exit', () => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true })
})

/** A directory with these files, by their names below it. It ends with this process. */
export function viewsDirectory(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'views-'))
  made.push(directory)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  return directory
}
