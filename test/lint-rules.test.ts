import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

describe('The rules that the linter does not bring along', () => {
  let folder: string

  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'lint-rules-'))
    const rules = {
      'account-flows/time-is-a-port': 'error',
      'account-flows/expressions-are-linear': 'error',
    }
    const config = { jsPlugins: [path.join(ROOT, '.ci/lint-rules.js')], rules }
    writeFileSync(path.join(folder, '.oxlintrc.json'), JSON.stringify(config))
  })
  after(() => rmSync(folder, { recursive: true }))

  function lint(code: string): string[] {
    writeFileSync(path.join(folder, 'code.ts'), `${code}\n`)
    const oxlint = path.join(ROOT, 'node_modules/oxlint/bin/oxlint')
    const { stdout } = spawnSync(process.execPath, [oxlint, '--format=unix', 'code.ts'], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(stdout).to.match(/problem|^$/m)
    return [...stdout.matchAll(/: (Time|Quadratic)/g)].map(([, rule = '']) => rule)
  }

  it('refuse an expression that takes long for a long text (RATE-14)', () => {
    for (const code of [
      "export const a = (text) => text.replace(/[>)]+$/, '')",
      'export const a = /^(\\w+\\s?)*$/',
      'export const a = /\\s*;\\s*q=/i',
    ]) {
      expect(lint(code), code).to.deep.equal(['Quadratic'])
    }
    expect(lint("export const a = (text) => text.replace(/(?<![>)])[>)]+$/, '')")).to.deep.equal([])
  })

  it('refuse another way to the time than the clock', () => {
    for (const code of [
      'export const a = Date.now()',
      'export const a = new Date()',
      'export const a = setTimeout(() => {}, 1)',
      "import { setTimeout } from 'node:timers/promises'\nexport const a = setTimeout",
    ]) {
      expect(lint(code), code).to.deep.equal(['Time'])
    }
    expect(lint('export const a = (clock) => clock.now()')).to.deep.equal([])
  })
})
