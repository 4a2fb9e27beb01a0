import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import pg from 'pg'
import { eventually } from './support/eventually.ts'
import { ROOT, suiteFolder } from './support/folders.ts'
import { onPath } from './support/missing.ts'
import { describeWithMongo, freshDatabase, kill, startMongo } from './support/mongod.ts'
import { describeWithPostgresql } from './support/postgresql.ts'

const SUITES = `
import { describeInChromium } from '${ROOT}test/support/chromium.ts'
import { describeWithMongo } from '${ROOT}test/support/mongod.ts'
import { describeWithPostgresql } from '${ROOT}test/support/postgresql.ts'

const never = () => { throw new Error('this hook should not run') }

describeWithMongo('with MongoDB', () => { before(never); after(never); it('runs', () => {}) })
describeWithPostgresql('with tables', () => { before(never); after(never); it('runs', () => {}) })
describeInChromium('in a window', () => { before(never); after(never); it('runs', () => {}) })
describe('with none', () => { it('runs', () => {}) })
`

const NONE = {
  ACCOUNT_FLOWS_TESTS_POSTGRESQL: '{"missing":"no PostgreSQL is to be had"}',
  MONGODB_URI: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=500',
  CHROMIUM: '/nowhere',
}

describe('The set-up of the tests, where something is missing [full]', () => {
  const file = suiteFolder()

  before(async () => {
    await writeFile(file('package.json'), '{"type":"module"}')
    await writeFile(file('suites.test.ts'), SUITES)
  })

  /** Nothing is on its path, and nothing may be installed. Answers what is told, and what of it after the summary. */
  async function testsWith(given: Record<string, string>, grep = '') {
    const env = {
      PATH: file(''),
      ACCOUNT_FLOWS_TESTS_INSTALL: 'never',
      MONGOMS_DOWNLOAD_DIR: file('downloads'),
      HOME: file(''),
      ...given,
    }
    const mocha = [join(ROOT, 'node_modules/mocha/bin/mocha.js'), '--no-config', '--exit']
    const options = ['--node-option=import=tsx/esm', '--require=./test/support/hooks.ts']
    const args = [...mocha, ...options, `--grep=${grep}`, file('suites.test.ts')]
    return new Promise<{ code: number; said: string; advice: string }>((resolve) => {
      execFile(process.execPath, args, { cwd: ROOT, env }, (error, stdout, stderr) => {
        const advice = stderr.split('\n').filter((line) => line.startsWith('Pending for what'))
        expect(advice.length).to.be.at.most(1)
        resolve({ code: Number(error?.code ?? 0), said: stdout + stderr, advice: advice.join() })
      })
    })
  }

  async function writeProgram(path: string, ...lines: string[]): Promise<void> {
    await writeFile(path, ['#!/bin/sh', ...lines, ''].join('\n'), { mode: 0o755 })
  }

  it('leaves out whole suites, runs the rest, and says in one line at the end what to do', async () => {
    const { code, said, advice } = await testsWith(NONE)
    expect(said).to.include('1 passing').and.include('3 pending')
    expect(advice)
      .to.include('No MongoDB (connect ECONNREFUSED 127.0.0.1:1): correct MONGODB_URI or unset it.')
      .and.include('no PostgreSQL is to be had')
      .and.include('No Chromium (/nowhere does not start): correct CHROMIUM or unset it.')
    expect(code).to.equal(0)
  })

  it('fails those suites under CI=true', async () => {
    const { code, said } = await testsWith({ ...NONE, CI: 'true' })
    expect(said).to.include('1 passing').and.include('3 failing')
    expect(code).to.equal(3)
  })

  it('looks for nothing that the tests of this run do not need', async () => {
    const { code, said } = await testsWith(NONE, 'none')
    expect(said)
      .to.include('1 passing')
      .and.not.match(/MongoDB|Chromium|PostgreSQL/)
    expect(code).to.equal(0)
  })

  for (const [told, grep, given] of [
    ['cannot be installed, as ACCOUNT_FLOWS_TESTS_INSTALL=never', 'window', {}],
    ['(/bin/true does not start): correct CHROMIUM or', 'window', { CHROMIUM: '/bin/true' }],
    ['(/etc/fstab does not start): correct CHROMIUM or', 'window', { CHROMIUM: '/etc/fstab' }],
    ['(Command failed: /bin/false --version)', 'MongoDB', { MONGOMS_SYSTEM_BINARY: '/bin/false' }],
    ['(Command failed: hangs --version)', 'MongoDB', { MONGOMS_SYSTEM_BINARY: 'hangs' }],
  ] as const) {
    it(`tells the reason: ${told}`, async () => {
      await writeProgram(file('hangs'), 'exec /bin/sleep 1000')
      const { code, said, advice } = await testsWith(given, grep)
      expect(said).to.include('1 pending')
      expect(advice).to.include(told)
      expect(code).to.equal(0)
    })
  }

  it('finishes an installation that was interrupted, and tells why its own fails', async function () {
    if (process.getuid?.() !== 0) this.skip()
    const system = file('system')
    await mkdir(system)
    await symlink(onPath('flock') ?? '', join(system, 'flock'))
    await writeProgram(join(system, 'dpkg'), `echo "dpkg $*" >> ${system}/calls`)
    await writeProgram(
      join(system, 'apt-get'),
      `echo "apt-get $*" >> ${system}/calls`,
      'case "$*" in *install*) echo "E: no space is left " >&2; exit 100; esac',
    )
    const given = { PATH: system, ACCOUNT_FLOWS_TESTS_INSTALL: '' }
    const { code, advice } = await testsWith(given, 'in a window')
    expect(advice).to.include('(apt-get could not install chromium fonts-dejavu-core: no space is')
    expect(await readFile(join(system, 'calls'), 'utf8')).to.match(
      /^apt-get .* update\ndpkg --configure -a\napt-get .* install --yes .*chromium/,
    )
    expect(code).to.equal(0)
  })
})

describeWithMongo('The MongoDB of the tests [full]', () => {
  it('is another one after it died', async function () {
    if (process.env['MONGODB_URI']) this.skip()
    const dead = await startMongo()
    dead.members.forEach(kill)
    const fresh = await freshDatabase()
    expect(fresh.uri).not.to.include(dead.uri)
    await fresh.drop()
  })
})

describeWithPostgresql('The PostgreSQL of the tests [full]', () => {
  it('ends with its process, however that ends, and leaves nothing behind', async () => {
    const program = `
      import { freshPostgresql } from '${ROOT}test/support/postgresql.ts'
      const { pool, url } = await freshPostgresql()
      const { rows } = await pool.query('SHOW data_directory')
      console.log(JSON.stringify({ url, data: rows[0].data_directory }))
      process.kill(process.pid, 'SIGKILL')`
    const args = ['--import=tsx/esm', '--input-type=module', `--eval=${program}`]
    const printed = await new Promise<string>((resolve) => {
      execFile(process.execPath, args, { cwd: ROOT }, (_error, stdout) => resolve(stdout))
    })
    const { url, data } = JSON.parse(printed) as { url: string; data: string }
    await eventually('its data are gone', () => !existsSync(data))
    await eventually('nobody answers', async () => {
      const client = new pg.Client({ connectionString: url })
      const refusal: unknown = await client.connect().catch((error: unknown) => error)
      return Reflect.get(Object(refusal), 'code') === 'ECONNREFUSED'
    })
  })
})
