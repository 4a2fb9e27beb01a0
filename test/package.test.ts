import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const run = promisify(execFile)

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
  const text = await readFile(`${ROOT}${page}`, 'utf8')
  const targets = [...text.matchAll(/\]\((?<target>[^)#\s]+)/g)].map(({ 1: target = '' }) => target)
  return targets
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

  it('holds everything that its README links to', async () => {
    const links = await linksOf('README.md')
    expect(links).to.include('docs/settings.md')
    expect(links.filter((target) => !isPacked(target))).to.deep.equal([])
  })

  it('holds everything that its other pages link to', async () => {
    const pages = paths.filter((path) => path.endsWith('.md') && !path.startsWith('dist/'))
    const dead: string[] = []
    for (const page of pages) {
      for (const target of await linksOf(page)) {
        if (!isPacked(target)) dead.push(`${page}: ${target}`)
      }
    }
    expect(pages).to.include('docs/customizing.md')
    expect(dead).to.deep.equal([])
  })

  it('brings the list of common passwords to where the built code looks for it [full]', async function () {
    this.timeout(240_000)
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
    } finally {
      await rm(cwd, { recursive: true })
    }
  })

  it('runs no script where it is installed', async () => {
    const { scripts } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'))
    const names = ['preinstall', 'install', 'postinstall', 'prepare']
    expect(scripts).to.include.keys('build').and.not.include.any.keys(names)
  })
})
