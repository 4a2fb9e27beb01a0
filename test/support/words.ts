import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Answer } from './user-agent.ts'

/** What our pages say in English, by key. */
export const words = JSON.parse(
  readFileSync(new URL('../../views/locales/en.json', import.meta.url), 'utf8'),
) as Record<string, string>

/** The page is headed by the words of this key. */
export function expectTitle({ text }: Answer, key: string): void {
  expect(words).to.have.property(key)
  expect(/<h1>([^<]*)<\/h1>/.exec(text)?.[1]).to.equal(words[key])
}
