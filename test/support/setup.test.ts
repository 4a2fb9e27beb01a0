import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ROOT } from './sources.ts'

const SUITES = `
import { describeInChromium } from '${ROOT}test/support/chromium.ts'
import { describeWithMongo } from '${ROOT}test/support/mongod.ts'

const never = () => { throw new Error('this hook should not run') }

describeWithMongo('with MongoDB', () => { before(never); after(never); it('runs', () => {}) })
describeInChromium('in a window', () => { before(never); after(never); it('runs', () => {}) })
describe('with neither', () => { it('runs', () => {}) })
`

interface Run {
  code: number
  said: string
  /** What is told after the summary. */
  advice: string[]
}

describe('The set-up of the tests, where something is missing [full]', () => {
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tests-of-set-up-'))
    await writeFile(join(folder, 'suites.test.ts'), SUITES)
  })

  after(() => rm(folder, { recursive: true }))

  /** Nothing is on its path, and nothing may be installed. */
  async function testsWith(given: Record<string, string>, grep = ''): Promise<Run> {
    const env = {
      PATH: folder,
      ACCOUNT_FLOWS_TESTS_INSTALL: 'never',
      MONGOMS_DOWNLOAD_DIR: join(folder, 'downloads'),
      HOME: folder,
      ...given,
    }
    const mocha = [join(ROOT, 'node_modules/mocha/bin/mocha.js'), '--no-config']
    const options = ['--node-option=import=tsx/esm', '--require=./test/support/hooks.ts']
    const args = [...mocha, ...options, `--grep=${grep}`, join(folder, 'suites.test.ts')]
    return new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: ROOT, env }, (error, stdout, stderr) => {
        const advice = stderr.split('\n').filter((line) => line.startsWith('Pending for what'))
        resolve({ code: Number(error?.code ?? 0), said: stdout + stderr, advice })
      })
    })
  }

  async function writeProgram(file: string, ...lines: string[]): Promise<void> {
    await writeFile(file, ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 })
  }

  const unreachable = { MONGODB_URI: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=500' }

  it('leaves out whole suites, runs the rest, and says in one line at the end what to do', async () => {
    const { code, said, advice } = await testsWith({ ...unreachable, CHROMIUM: '/nowhere' })
    expect(said)
      .to.match(/1 passing/)
      .and.to.match(/2 pending/)
    expect(advice).to.have.length(1)
    expect(advice[0])
      .to.include('No MongoDB (the server at MONGODB_URI does not answer): correct MONGODB_URI')
      .and.to.include('No Chromium (/nowhere does not start): correct CHROMIUM or unset it.')
    expect(code).to.equal(0)
  })

  it('fails those suites under CI=true', async () => {
    const { code, said } = await testsWith({ ...unreachable, CHROMIUM: '/nowhere', CI: 'true' })
    expect(said)
      .to.match(/1 passing/)
      .and.to.match(/2 failing/)
    expect(code).to.equal(2)
  })

  it('looks for nothing that the tests of this run do not need', async () => {
    const { code, said } = await testsWith({ ...unreachable, CHROMIUM: '/nowhere' }, 'neither')
    expect(said)
      .to.match(/1 passing/)
      .and.not.to.match(/MongoDB|Chromium/)
    expect(code).to.equal(0)
  })

  it('says that it may not install, where it may not', async () => {
    const { said, advice } = await testsWith({}, 'in a window|neither')
    expect(said)
      .to.match(/1 passing/)
      .and.to.match(/1 pending/)
    expect(advice).to.have.length(1)
    expect(advice[0]).to.include('cannot be installed, as ACCOUNT_FLOWS_TESTS_INSTALL=never')
  })

  it('says what to do about a CHROMIUM that is no browser', async () => {
    for (const CHROMIUM of [join(folder, 'suites.test.ts'), '/bin/true']) {
      const { code, advice } = await testsWith({ CHROMIUM }, 'in a window')
      expect(advice).to.have.length(1)
      expect(advice[0]).to.include(`No Chromium (${CHROMIUM} does not start): correct CHROMIUM or`)
      expect(code).to.equal(0)
    }
  })

  it('finishes an installation that was interrupted, and tells why its own fails', async function () {
    if (process.getuid?.() !== 0) this.skip()
    const system = join(folder, 'system')
    await mkdir(system)
    await writeProgram(join(system, 'dpkg'), `echo "dpkg $*" >> ${system}/calls`)
    await writeProgram(
      join(system, 'apt-get'),
      `echo "apt-get $*" >> ${system}/calls`,
      'case "$*" in *install*) echo "E: no space is left " >&2; exit 100; esac',
    )
    const given = { PATH: system, ACCOUNT_FLOWS_TESTS_INSTALL: '' }
    const { code, advice } = await testsWith(given, 'in a window')
    expect(advice[0]).to.include(
      '(apt-get could not install chromium fonts-dejavu-core: no space is',
    )
    expect(await readFile(join(system, 'calls'), 'utf8')).to.match(
      /^apt-get .* update\ndpkg --configure -a\napt-get .* install --yes .*chromium/,
    )
    expect(code).to.equal(0)
  })

  it('passes over a mongod that does not run', async () => {
    const { said, advice } = await testsWith({ MONGOMS_SYSTEM_BINARY: '/bin/false' }, 'MongoDB')
    expect(said).to.match(/1 pending/)
    expect(advice[0]).to.include('No MongoDB (/bin/false does not run): correct MONGOMS_SYSTEM')
  })

  it('does not wait long for a mongod that hangs', async () => {
    const hanging = join(folder, 'hanging')
    await writeProgram(hanging, 'exec /bin/sleep 1000')
    const { said, advice } = await testsWith({ MONGOMS_SYSTEM_BINARY: hanging }, 'MongoDB')
    expect(said).to.match(/1 pending/)
    expect(advice[0]).to.include('hanging does not run')
  })
})
