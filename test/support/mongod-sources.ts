import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { hasOfflineMongod, offlineMongod } from './mongod-offline.ts'

/** One way to a `mongod` that can be run. */
export interface MongodSource {
  title: string
  /** The path; `undefined` where this way is not open. */
  find(): Promise<string | undefined>
}

const project = fileURLToPath(new URL('../../', import.meta.url))

/** How long MongoDB's download host may stay silent, and how long the whole download may take. */
const FIRST_BYTE_LIMIT = 5_000
const DOWNLOAD_LIMIT = 300_000

/** Runs in a process of its own, because the library's patience cannot be limited from outside. */
const DOWNLOADER = `require('mongodb-memory-server-core').MongoBinary.getPath().then(
  (path) => console.log('\\nmongod=' + path),
  (error) => { console.error(error.message); process.exitCode = 1 })`

/** In the order in which they are tried. A binary that somebody named is the only one. */
export function mongodSources(): MongodSource[] {
  const named = process.env['MONGOMS_SYSTEM_BINARY']
  if (named) return [{ title: 'MONGOMS_SYSTEM_BINARY', find: async () => named }]
  const offline = { title: 'offline build', find: offlineMongod }
  return [
    { title: 'PATH', find: async () => onPath('mongod') },
    ...(hasOfflineMongod() ? [offline] : [{ title: 'download', find: downloadOnce }, offline]),
  ]
}

/** What is made once on a machine is there afterwards. Where none can be had, the suites tell why. */
export async function prepareMongod(): Promise<void> {
  if (process.env['MONGODB_URI']) return
  for (const { find } of mongodSources()) {
    if (await find().catch(() => undefined)) return
  }
}

function onPath(command: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter).filter(Boolean)
  return folders.map((folder) => path.join(folder, command)).find((file) => existsSync(file))
}

let downloaded: Promise<string> | undefined

/** The replica set does not ask again where the standalone server was refused. */
function downloadOnce(): Promise<string> {
  downloaded ??= download()
  return downloaded
}

/** The ordinary way of mongodb-memory-server: its own cache first, then the network. */
function download(): Promise<string> {
  const env = { ...process.env, MONGOMS_MAX_RETRIES: '1' }
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
      else reject(new Error(output.trim().replaceAll(/\s+/g, ' ') || 'no answer'))
    })
  })
}
