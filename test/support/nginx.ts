import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { newCertificate } from './certificates.ts'
import { eventually } from './eventually.ts'
import { onPath } from './on-path.ts'
import { whyNotInstall } from './setup-install.ts'
import { ROOT } from './sources.ts'

const run = promisify(execFile)
const UNPACKED = join(ROOT, '.cache/nginx')

/** nginx as a program. Debian's package is unpacked and not installed: that would start a server on port 80. */
export async function nginxProgram(): Promise<string> {
  const program = join(UNPACKED, 'usr/sbin/nginx')
  const found = onPath('nginx') ?? (existsSync(program) ? program : undefined)
  if (found !== undefined) return found
  const obstacle = whyNotInstall()
  if (obstacle) throw new Error(`nginx cannot be fetched, as ${obstacle}: put it on the PATH`)
  console.warn('Fetching nginx with apt-get.')
  await mkdir(join(UNPACKED, '..'), { recursive: true })
  const folder = await mkdtemp(`${UNPACKED}-`)
  await run('apt-get', ['update'])
  await run('/bin/sh', ['-c', 'apt-get download nginx && dpkg -x ./*.deb unpacked'], {
    cwd: folder,
  })
  await rename(join(folder, 'unpacked'), UNPACKED).catch((error: unknown) => {
    if (!existsSync(program)) throw error
  })
  await rm(folder, { recursive: true, force: true })
  return program
}

export interface NginxPorts {
  plain: number
  tls: number
  service: number
}

/** The file of `examples/deploy`, with ports and paths of a test, among the defaults that Debian has. */
export async function startNginx(
  program: string,
  folder: string,
  ports: NginxPorts,
): Promise<() => Promise<void>> {
  const site = await readFile(join(ROOT, 'examples/deploy/nginx.conf'), 'utf8')
  const { cert, key } = newCertificate({ names: ['localhost'] })
  await mkdir(folder)
  await writeFile(join(folder, 'fullchain.pem'), cert)
  await writeFile(join(folder, 'privkey.pem'), key)
  await writeFile(join(folder, 'site.conf'), asOfTest(site, folder, ports))
  await writeFile(join(folder, 'nginx.conf'), aroundIt(folder))
  const args = ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
  const nginx = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  nginx.stderr.on('data', (chunk) => (said += String(chunk)))
  const ended = once(nginx, 'exit')

  async function stop() {
    nginx.kill()
    await ended
  }

  async function listens(): Promise<boolean> {
    if (nginx.exitCode !== null) throw new Error(said)
    const socket = connect(ports.tls, '127.0.0.1')
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return isThere
  }
  await eventually('nginx listens', listens).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return stop
}

function asOfTest(site: string, folder: string, { plain, tls, service }: NginxPorts): string {
  return site
    .replaceAll(/^ *listen \[::\].*$/gm, '')
    .replace('listen 80;', `listen 127.0.0.1:${plain};`)
    .replace('listen 443 ', `listen 127.0.0.1:${tls} `)
    .replace('127.0.0.1:3000', `127.0.0.1:${service}`)
    .replaceAll(/(Host \$server_name|https:\/\/id\.example\.com)/g, `$1:${tls}`)
    .replaceAll('/etc/ssl/id.example.com', folder)
    .replaceAll('/var/log/nginx', folder)
    .replaceAll('id.example.com', 'localhost')
}

function aroundIt(folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
pid ${folder}/pid;
events {}
http {
  gzip on;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  include ${folder}/site.conf;
}
`
}
