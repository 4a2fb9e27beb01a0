import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { runCli } from './support/cli-in-process.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FOLDER = join(ROOT, 'node_modules/.cache/code-of-the-docs')
const run = promisify(execFile)

/** What the examples take as given. */
const GIVEN = `
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Express } from 'express'
import type { Middleware } from 'koa'
import type { Db } from 'mongodb'
import type { Provider } from 'oidc-provider'
import type * as package_ from 'oidc-account-flows'

declare global {
  const options: package_.AccountFlowsOptions
  const flows: package_.AccountFlows
  const provider: Provider
  const users: package_.UserStore
  const db: Db
  const app: Express & { use(middleware: Middleware | package_.Mount): void }
  const req: IncomingMessage
  const res: ServerResponse
  const username: string, password: string, uri: string
  const token: string, adminToken: string, supportToken: string, signingKey: string
  const url: () => string
  const createAccountFlows: typeof package_.createAccountFlows
  const mongoAdapter: typeof package_.mongoAdapter
  const mongoStore: typeof package_.mongoStore
  const mongoUsers: typeof package_.mongoUsers
  const login: (...given: unknown[]) => Promise<void>
  const MongoClient: typeof import('mongodb').MongoClient
  const Provider: typeof import('oidc-provider').Provider
  const interactionPolicy: typeof import('oidc-provider').interactionPolicy
  function showWrongPassword(): void
  function showTooMany(waitSeconds: number): void
  function count(what: string, label: string): void
  function note(...what: (string | number | undefined)[]): void
  function alert(...what: (string | undefined)[]): void
  function welcome(accountId: string): void
  const countEvents: typeof import('../../../examples/events/opentelemetry.ts').countEvents
  const metricsOf: typeof import('../../../examples/events/prom-client.ts').metricsOf
  const sendWebhooks: typeof import('../../../examples/events/webhook.ts').sendWebhooks
  const body: string, headers: Record<'webhook-id', string>, secret: string
  function isNew(id: string): Promise<boolean>
  function isSolved(answer: string | undefined, address: string | undefined): Promise<boolean>
  function myUsersWith(users: readonly package_.User[]): Promise<package_.UserStore>
}
`

const CONFIG = {
  extends: join(ROOT, 'tsconfig.json'),
  compilerOptions: {
    noEmit: true,
    rootDir: ROOT,
    types: ['node', 'mocha'],
    noUnusedLocals: false,
    noUnusedParameters: false,
    noImplicitReturns: false,
    paths: {
      'oidc-account-flows': [join(ROOT, 'src/index.ts')],
      'oidc-account-flows/admin-client': [join(ROOT, 'src/admin/client.ts')],
      'oidc-account-flows/contract': [join(ROOT, 'src/contract/index.ts')],
      argon2: ['./argon2.ts'],
    },
  },
  include: [FOLDER],
}

const ARGON2 = `declare const argon2: {
  hash(password: string): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}
export default argon2
`

async function codeOf(page: string): Promise<string[]> {
  const text = await readFile(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```ts\n(?<code>[\s\S]*?)^```$/gm)].map(({ 1: code = '' }) => code)
}

async function everyPage(): Promise<string[]> {
  const paths = await readdir(join(ROOT, 'docs'), { recursive: true })
  return [
    'README.md',
    ...paths.filter((path) => path.endsWith('.md')).map((path) => `docs/${path}`),
  ]
}

/** As GitHub names a heading in an address. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')
}

/** Its imports at the top, the rest in a function: an example may await and return. */
function asModule(code: string): string {
  const imports = code.match(/^import .*$/gm) ?? []
  return `${imports.join('\n')}\nexport async function example() {\n${code.replace(/^import .*$/gm, '')}}\n`
}

describe('The code in the docs', () => {
  before(() => mkdir(FOLDER, { recursive: true }))
  after(() => rm(FOLDER, { recursive: true, force: true }))

  it('compiles against the package, each example by itself', async () => {
    let examples = 0
    for (const page of await everyPage()) {
      for (const code of await codeOf(page)) {
        // That page quotes the types themselves, too.
        if (page === 'docs/reference.md' && !code.startsWith('flows.')) continue
        examples += 1
        const file = `${page.replaceAll(/\W/g, '-')}-${examples}.ts`
        await writeFile(join(FOLDER, file), asModule(code))
      }
    }
    await writeFile(join(FOLDER, 'given.ts'), GIVEN)
    await writeFile(join(FOLDER, 'argon2.ts'), ARGON2)
    await writeFile(join(FOLDER, 'tsconfig.json'), JSON.stringify(CONFIG))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const said = await run(process.execPath, [tsc, '-p', FOLDER], { cwd: ROOT }).then(
      () => '',
      ({ stdout }: { stdout: string }) => stdout,
    )
    expect(said).to.equal('')
    expect(examples).to.be.greaterThan(25)
  })
})

describe('A link in the docs', () => {
  it('leads to a heading that is there', async () => {
    const dead: string[] = []
    for (const page of await everyPage()) {
      const text = await readFile(join(ROOT, page), 'utf8')
      for (const [, path = '', anchor = ''] of text.matchAll(/\]\(([^):#\s]*)#([^)\s]+)\)/g)) {
        const target = path === '' ? page : posix.join(posix.dirname(page), path)
        const headings = (await readFile(join(ROOT, target), 'utf8')).matchAll(/^#+ (.*)$/gm)
        const isThere = [...headings].some(([, heading = '']) => anchorOf(heading) === anchor)
        if (!isThere) dead.push(`${page}: ${path}#${anchor}`)
      }
    }
    expect(dead).to.deep.equal([])
  })
})

describe('A command in the docs', () => {
  it('is one that there is, with options that it has', async () => {
    const wrong: string[] = []
    let commands = 0
    for (const page of await everyPage()) {
      const text = (await readFile(join(ROOT, page), 'utf8')).replaceAll('\\\n', ' ')
      for (const [, line = ''] of text.matchAll(
        /^(?:npx )?account-flows (.*?)(?: {2,}#.*| #.*)?$/gm,
      )) {
        commands += 1
        const env = { ACCOUNT_FLOWS_URL: 'http://127.0.0.1:1', ACCOUNT_FLOWS_TOKEN: 't'.repeat(32) }
        const { exitCode, stderr } = await runCli(line.trim().split(/\s+/), { env })
        // Nothing listens there. What asks needs a terminal, or a "yes" beforehand.
        if (exitCode === 2 && !/terminal|--yes/.test(stderr))
          wrong.push(`${page}: ${line}: ${stderr}`)
      }
    }
    expect(wrong).to.deep.equal([])
    expect(commands).to.be.greaterThan(10)
  })
})
