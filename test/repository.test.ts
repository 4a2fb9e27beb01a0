/**
 * What is said of the repository itself: its docs, its comments, its package, and the checks that it has of its own.
 *
 * @module
 */
import { execFile, spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { longSentences, longSentencesOfSource } from '../.ci/sentences.ts'
import { runCli } from './support/cli.ts'
import { ROOT, sourcesIn, suiteFolder } from './support/folders.ts'

const FOLDER = join(ROOT, 'node_modules/.cache/code-of-the-docs')
const run = promisify(execFile)

const textOf = (path: string) => readFile(join(ROOT, path), 'utf8')

/** The README and the docs, with their texts. */
async function everyPage(): Promise<[page: string, text: string][]> {
  const paths = await readdir(join(ROOT, 'docs'), { recursive: true })
  const docs = paths.filter((path) => path.endsWith('.md')).map((path) => `docs/${path}`)
  const pages = ['README.md', ...docs]
  const texts = await Promise.all(pages.map(textOf))
  return pages.map((page, index) => [page, texts[index] ?? ''])
}

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
  const memoryMailbox: typeof package_.memoryMailbox
  const memoryStore: typeof package_.memoryStore
  const mongoStore: typeof package_.mongoStore
  const mongoUsers: typeof package_.mongoUsers
  const login: (...given: unknown[]) => Promise<void>
  const MongoClient: typeof import('mongodb').MongoClient
  const Provider: typeof import('oidc-provider').Provider
  const interactionPolicy: typeof import('oidc-provider').interactionPolicy
  function isOurs(req: IncomingMessage): boolean
  function showOtherSite(): void
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
      'oidc-account-flows/store': [join(ROOT, 'src/store/published.ts')],
      'oidc-account-flows/contract': [join(ROOT, 'src/contract/suites/index.ts')],
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

/** Its imports at the top, the rest in a function: an example may await and return. */
function asModule(code: string): string {
  const imports = code.match(/^import .*$/gm) ?? []
  return `${imports.join('\n')}\nexport async function example() {\n${code.replace(/^import .*$/gm, '')}}\n`
}

/** As GitHub names a heading in an address. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')
}

describe('The docs', () => {
  before(() => mkdir(FOLDER, { recursive: true }))
  after(() => rm(FOLDER, { recursive: true, force: true }))

  it('have code that compiles against the package, each example by itself', async () => {
    let examples = 0
    for (const [page, text] of await everyPage()) {
      for (const { 1: code = '' } of text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)) {
        // The references quote the types themselves, too.
        if (code.startsWith('export type ')) continue
        examples += 1
        const file = `${page.replaceAll(/\W/g, '-')}-${examples}.ts`
        await writeFile(join(FOLDER, file), asModule(code))
      }
    }
    await writeFile(join(FOLDER, 'given.ts'), GIVEN)
    await writeFile(join(FOLDER, 'argon2.ts'), ARGON2)
    await writeFile(join(FOLDER, 'tsconfig.json'), JSON.stringify(CONFIG))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', FOLDER], { encoding: 'utf8' })
    expect(stdout).to.equal('')
    expect(examples).to.be.greaterThan(25)
  })

  it('have links to headings that are there', async () => {
    const dead: string[] = []
    for (const [page, text] of await everyPage()) {
      for (const [, path = '', anchor = ''] of text.matchAll(/\]\(([^):#\s]*)#([^)\s]+)\)/g)) {
        const target = path === '' ? page : posix.join(posix.dirname(page), path)
        const headings = (await textOf(target)).matchAll(/^#+ (.*)$/gm)
        const isThere = [...headings].some(([, heading = '']) => anchorOf(heading) === anchor)
        if (!isThere) dead.push(`${page}: ${path}#${anchor}`)
      }
    }
    expect(dead).to.deep.equal([])
  })

  it('have commands that there are, with options that they have', async () => {
    const env = { ACCOUNT_FLOWS_URL: 'http://127.0.0.1:1', ACCOUNT_FLOWS_TOKEN: 't'.repeat(32) }
    const command = /^(?:npx )?account-flows (.*?)(?: {2,}#.*| #.*)?$/gm
    const wrong: string[] = []
    let commands = 0
    for (const [page, text] of await everyPage()) {
      for (const [, line = ''] of text.replaceAll('\\\n', ' ').matchAll(command)) {
        commands += 1
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

/** `4.2` of a heading, and `4.2.3` of a rule below it; the rules of section 5 are 5.1 and so on. */
function placesOf(specification: string): Set<string> {
  const places = new Set<string>()
  let section = ''
  for (const line of specification.split('\n')) {
    const [, heading, rule] = /^#+ (\d(?:\.\d)?)\.? |^(\d)\. /.exec(line) ?? []
    if (heading !== undefined) section = heading
    if (heading ?? rule) places.add(rule === undefined ? section : `${section}.${rule}`)
  }
  return places
}

/** `(3.1, 3.3)`, `(4.1 to 4.4)`, `(4.2.3)`: sections 2 to 8 have parts, and nothing else in brackets looks like them. */
function citedIn(text: string): string[] {
  const lists = text.matchAll(/(?<![\w.])\((?<list>[2-8](?:\.\d)+(?:(?:, | to )[2-8](?:\.\d)+)*)/g)
  return [...lists].flatMap(({ groups }) => groups?.['list']?.split(/, | to /) ?? [])
}

describe('Comments and titles of tests', () => {
  it('cite sections that docs/specification.md has', async () => {
    const places = placesOf(await textOf('docs/specification.md'))
    const sources = await sourcesIn('src', 'cli', 'test', 'examples')
    const cited = [...sources].flatMap(([file, text]) =>
      citedIn(text).map((place) => ({ file, place })),
    )
    expect(cited.length).to.be.above(100)
    expect(cited.filter(({ place }) => !places.has(place))).to.deep.equal([])
  })
})

interface Packed {
  files: { path: string }[]
}

async function packedPaths(cwd = ROOT): Promise<string[]> {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
  const { stdout } = await run('npm', args, { cwd })
  const [packed]: Packed[] = JSON.parse(stdout)
  return packed?.files.map(({ path }) => path) ?? []
}

/** Targets inside the package, as paths from its root. */
async function linksOf(page: string): Promise<string[]> {
  const links = (await textOf(page)).matchAll(/\]\((?<target>[^)#\s]+)/g)
  return [...links]
    .map(({ 1: target = '' }) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => posix.join(posix.dirname(page), target))
}

describe('The package', () => {
  let paths: string[]

  before(async () => {
    paths = await packedPaths()
  })

  const isPacked = (target: string) =>
    paths.some((path) => path === target || path.startsWith(`${target}/`))

  it('holds everything that its README and its other pages link to, but no pictures', async () => {
    const isPicture = (path: string) => path.startsWith('docs/pictures/')
    expect(paths.filter(isPicture)).to.deep.equal([])
    const pages = paths.filter((path) => path.endsWith('.md') && !path.startsWith('dist/'))
    expect(pages).to.include.members(['README.md', 'docs/customizing.md'])
    expect(await linksOf('README.md')).to.include('docs/settings.md')
    const dead: string[] = []
    for (const page of pages)
      for (const target of await linksOf(page))
        if (!isPacked(target) && !isPicture(target)) dead.push(`${page}: ${target}`)
    expect(dead).to.deep.equal([])
  })

  it('brings the list of common passwords to where the built code looks for it, and types that need no driver [full]', async () => {
    const cwd = await mkdtemp(join(tmpdir(), 'package-'))
    try {
      const made = ['package.json', 'tsconfig.json', 'src', 'cli', 'views', 'NOTICE']
      for (const name of made) await cp(join(ROOT, name), join(cwd, name), { recursive: true })
      await symlink(join(ROOT, 'node_modules'), join(cwd, 'node_modules'))
      await run('npm', ['run', 'build'], { cwd })
      const built = ['dist/src/passwords/common-passwords.br', 'NOTICE']
      expect(await packedPaths(cwd)).to.include.members(built)
      const code =
        "import { isCommon } from './dist/src/passwords/common.js'; console.log(await isCommon('password'))"
      const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd })
      expect(stdout).to.equal('true\n')
      const entries = ['src/index.js', 'src/store/published.js']
      entries.push('src/admin/client.js', 'src/contract/suites/index.js')
      const consumer = entries.map((entry, n) => `export * as entry${n} from './${entry}'`)
      const dist = join(cwd, 'dist')
      await writeFile(join(dist, 'consumer.ts'), consumer.join('\n'))
      const options =
        '--noEmit --module nodenext --skipLibCheck false --listFiles --ignoreConfig --types node'
      const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options.split(' ')]
      const compiled = await run(process.execPath, [...tsc, 'consumer.ts'], { cwd: dist })
      expect(compiled.stdout).to.include('dist/src/admin/client.d.ts')
      expect(compiled.stdout).not.to.match(/node_modules\/(?:@types\/)?(?:mongodb|pg)\//)
    } finally {
      await rm(cwd, { recursive: true })
    }
  })

  it('runs no script where it is installed', async () => {
    const { scripts } = JSON.parse(await textOf('package.json'))
    const names = ['preinstall', 'install', 'postinstall', 'prepare']
    expect(scripts).to.include.keys('build').and.not.include.any.keys(names)
  })
})

describe('The rules that the linter does not bring along', () => {
  const file = suiteFolder()

  before(() => {
    const rules = {
      'account-flows/time-is-a-port': 'error',
      'account-flows/expressions-are-linear': 'error',
    }
    const config = { jsPlugins: [join(ROOT, '.ci/lint-rules.js')], rules }
    return writeFile(file('.oxlintrc.json'), JSON.stringify(config))
  })

  async function lint(code: string): Promise<string[]> {
    await writeFile(file('code.ts'), `${code}\n`)
    const oxlint = join(ROOT, 'node_modules/oxlint/bin/oxlint')
    const { stdout } = spawnSync(process.execPath, [oxlint, '--format=unix', 'code.ts'], {
      cwd: file(''),
      encoding: 'utf8',
    })
    expect(stdout).to.match(/problem|^$/m)
    return [...stdout.matchAll(/: (Time|Quadratic)/g)].map(([, rule = '']) => rule)
  }

  it('refuse an expression that takes long for a long text (RATE-14)', async () => {
    for (const code of [
      "export const a = (text) => text.replace(/[>)]+$/, '')",
      'export const a = /^(\\w+\\s?)*$/',
      'export const a = /\\s*;\\s*q=/i',
    ]) {
      expect(await lint(code), code).to.deep.equal(['Quadratic'])
    }
    const linear = "export const a = (text) => text.replace(/(?<![>)])[>)]+$/, '')"
    expect(await lint(linear)).to.deep.equal([])
  })

  it('refuse another way to the time than the clock', async () => {
    for (const code of [
      'export const a = Date.now()',
      'export const a = new Date()',
      'export const a = setTimeout(() => {}, 1)',
      "import { setTimeout } from 'node:timers/promises'\nexport const a = setTimeout",
    ]) {
      expect(await lint(code), code).to.deep.equal(['Time'])
    }
    expect(await lint('export const a = (clock) => clock.now()')).to.deep.equal([])
  })
})

/** `words(3)`: "w w w". */
const words = (count: number) => Array.from({ length: count }, () => 'w').join(' ')
const found = (markdown: string) => longSentences(markdown).map(({ line, words }) => [line, words])

describe('The check of sentences', () => {
  it('finds one of 26 words, over lines, and where it begins', () => {
    expect(found(`${words(25)}.\n`)).to.deep.equal([])
    expect(found(`# Title\n\nShort.\n${words(20)}\n${words(6)}. Short.\n`)).to.deep.equal([[4, 26]])
    expect(longSentences(`${words(26)}.`)[0]?.sentence).to.equal(`${words(26)}.`)
  })

  it('ends one at an item, a cell, a heading and an empty line', () => {
    const half = words(20)
    for (const text of [
      `${half}:\n- ${half}\n- ${half}`,
      `| ${half} | ${half} |\n| ${half} | ${half} |`,
      `# ${half}\n${half}`,
      `${half}\n\n${half}`,
      `(${half}.) ${half}`,
    ]) {
      expect(found(text), text).to.deep.equal([])
    }
  })

  it('takes code in a line for one word, a link for its text, and a block of code for none', () => {
    const code = `\`${words(9)}\``
    expect(found(`${words(24)} ${code}.`)).to.deep.equal([])
    expect(found(`${words(24)} ${code} [two words](a/b.md#c).`)).to.deep.equal([[1, 27]])
    expect(found(`| \`*\` ${words(20)} | \`w\` ${words(20)} |`)).to.deep.equal([])
    expect(found(`\`\`\`sh\n${words(30)}\n\`\`\`\n\n<!-- ${words(30)} -->`)).to.deep.equal([])
  })

  it('reads comments and quotes of the source', () => {
    const source = [
      `/** Short.\n * ${words(20)}\n * ${words(6)}.\n *\n * @example\n * ${words(30)}\n */`,
      `// ${words(20)}`,
      `// ${words(6)}`,
      `say('${words(13)} ' +\n  \`${words(11)} \${a b} ${words(1)}\`)`,
      `say('${words(20)}', '${words(20)}\\n${words(20)}')`,
    ].join('\n')
    const lines = longSentencesOfSource(source).map(({ line, words }) => [line, words])
    expect(lines).to.deep.equal([
      [2, 26],
      [8, 26],
      [10, 26],
    ])
  })
})
