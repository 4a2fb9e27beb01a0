import { expect } from 'chai'
import type { Answer } from './user-agent.ts'

/** One of our pages, in this mode, with this status. */
export function expectPage(answer: Answer, status: number, page: string, mode: string): void {
  expect([answer.status, answer.page, answer.mode], answer.text).to.deep.equal([status, page, mode])
}

/** `data-reason` of a page about a link that does nothing. */
export const reasonOf = ({ text }: Answer) => /data-reason="([^"]*)"/.exec(text)?.[1]
