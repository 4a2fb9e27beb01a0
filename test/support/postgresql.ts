/**
 * A real PostgreSQL for the tests: one server per process, which ends with it.
 *
 * @module
 */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Suite } from 'mocha'
import pg from 'pg'
import { folderForData } from './folders.ts'
import { describeWith, install, onPath, partOfTests } from './missing.ts'
import { freePort } from './serve.ts'
import { suiteOf } from './suite.ts'

export interface PostgresServer extends Awaited<ReturnType<typeof newPostgresql>> {}

export interface FreshPostgresql extends Awaited<ReturnType<typeof freshPostgresql>> {}

const HOW_TO_GET_ONE = 'run the tests as root on Debian or Ubuntu, or put initdb on the PATH'

/** The folder of its programs. */
export const postgresql = partOfTests('PostgreSQL', [HOW_TO_GET_ONE], findPostgresql)

const DEBIAN = '/usr/lib/postgresql'
const START_LIMIT = 300_000
const DATA = 'postgresql-of-tests-'

/** Nobody needs the data once the machine has stopped, and each of several processes opens several pools. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  max_connections: '300',
  max_wal_size: '64MB',
  min_wal_size: '32MB',
  shared_buffers: '32MB',
}

/** Its input ends with the process of the tests, however that ends: then the server ends, and its data go. */
const KEEPER = `read -r _; kill -QUIT $(head -n 1 postmaster.pid)
cd /; rm -rf "$PGDATA" || { sleep 1; rm -rf "$PGDATA"; }`

const run = promisify(execFile)

/** A suite that needs PostgreSQL: pending where there is none, and under `CI=true` a failure. */
export function describeWithPostgresql(title: string, body: (this: Suite) => void): void {
  describeWith(postgresql.title, sharedServer, title, body)
}

/** A suite with a database of its own, which `empty` makes a new one. */
export function describeOnPostgresql(
  title: string,
  body: (database: () => pg.Pool, empty: () => Promise<void>) => void,
): void {
  describeWithPostgresql(title, () => {
    const fresh = suiteOf(
      () => freshPostgresql(),
      ({ drop }) => drop(),
    )
    body(
      () => fresh.pool,
      async () => {
        for (const text of ['DROP SCHEMA public CASCADE', 'CREATE SCHEMA public'])
          await fresh.pool.query(text)
      },
    )
  })
}

/** A new, empty database with a random name. Throws where no PostgreSQL can be had. */
export async function freshPostgresql(from?: PostgresServer) {
  const server = from ?? (await sharedServer())
  const name = `test_${randomBytes(8).toString('hex')}`
  await administer(server, `CREATE DATABASE ${name}`)
  const url = server.url(name)
  const pool = poolOf(url)
  return {
    pool,
    /** With the database's name, so that a child process can be given it as it is. */
    url,
    /** Closes the pool and drops the database, whoever is connected. */
    async drop(): Promise<void> {
      await pool.end()
      await administer(server, `DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}

/** A pool that says nothing of a connection that is lost while nobody uses it. */
export function poolOf(connectionString: string, options = ''): pg.Pool {
  return new pg.Pool({ connectionString, options }).on('error', () => {})
}

async function administrator(server: Pick<PostgresServer, 'url'>): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: server.url() })
  await admin.connect()
  return admin
}

async function administer(server: PostgresServer, statement: string): Promise<void> {
  const admin = await administrator(server)
  try {
    await admin.query(statement)
  } finally {
    await admin.end()
  }
}

let shared: Promise<PostgresServer> | undefined

function sharedServer(): Promise<PostgresServer> {
  shared ??= newPostgresql()
  return shared
}

/** One of its own for the caller, which ends with the process. What stands in the way is thrown as one sentence. */
export async function newPostgresql() {
  const { path: bin } = await postgresql.find()
  const port = await freePort()
  const user = await userOfServers()
  const data = mkdtempSync(join(folderForData(DATA), `${DATA}${process.pid}-`))
  if (user) chownSync(data, user.uid, user.gid)
  const env = { ...process.env, PGDATA: data, LC_ALL: 'C.UTF-8' }
  // A group of its own: what a terminal sends to all is not for the server.
  const options = { ...user, cwd: data, env, detached: true }
  spawn('/bin/sh', ['-c', KEEPER], { ...options, stdio: ['pipe', 'ignore', 'ignore'] })
  const how = ['--encoding=UTF8', '--auth=trust', '--username=postgres', '--no-sync']
  await run(join(bin, 'initdb'), how, { ...options, timeout: START_LIMIT })

  const set = Object.entries({ ...SETTINGS, port }).map(([name, value]) => `--${name}=${value}`)
  const start = async () => {
    const child = spawn(join(bin, 'postgres'), set, {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const limit = setTimeout(() => child.kill('SIGQUIT'), START_LIMIT)
    let said = ''
    await new Promise<void>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(-1_000)
        if (said.includes('ready to accept connections')) resolve()
      })
      child.once('close', () => reject(new Error(`PostgreSQL does not start: ${said}`)))
      child.once('error', reject)
    }).finally(() => clearTimeout(limit))
    return child
  }
  let child = await start()
  const server = {
    /** With the database of that name. */
    url: (database = 'postgres'): string => `postgres://postgres@127.0.0.1:${port}/${database}`,

    /** All of its processes at once, as where the machine stops; answers once they are gone. */
    async crash(): Promise<void> {
      const gone = once(child, 'exit')
      child.kill('SIGQUIT')
      await gone
    },

    /** On the same port and data; answers once it takes connections. */
    async start(): Promise<void> {
      child = await start()
    },

    /** All of its processes stand still until the function that it answers is called. */
    async freeze(): Promise<() => Promise<void>> {
      const admin = await administrator(server)
      child.kill('SIGSTOP')
      const { rows } = await admin.query<{ pid: number }>('SELECT pid FROM pg_stat_activity')
      const signal = (name: NodeJS.Signals) => {
        for (const { pid } of rows) process.kill(pid, name)
        child.kill(name)
      }
      signal('SIGSTOP')
      return async () => {
        signal('SIGCONT')
        await admin.end()
      }
    },
  }
  return server
}

/** PostgreSQL refuses to run as root. `undefined`: as oneself. */
async function userOfServers(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const id = async (which: string) => Number((await run('id', [which, 'postgres'])).stdout)
  return { uid: await id('-u'), gid: await id('-g') }
}

async function findPostgresql(): Promise<{ path: string; origin: string }> {
  const named = onPath('initdb')
  if (named && onPath('postgres')) return { path: dirname(named), origin: 'the PATH' }
  const path = newestOfDebian()
  if (path) return { path, origin: 'Debian' }
  await install(['postgresql'])
  const installed = newestOfDebian()
  if (!installed) throw new Error(`postgresql of Debian has no initdb in ${DEBIAN}`)
  return { path: installed, origin: 'Debian, installed now' }
}

function newestOfDebian(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : []
  return versions
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(DEBIAN, version, 'bin'))
    .find((bin) => existsSync(join(bin, 'initdb')))
}
