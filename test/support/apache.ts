import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { eventually } from './eventually.ts'
import type { Registered } from './node-clients.ts'
import { install } from './setup-install.ts'

const PROGRAM = '/usr/sbin/apache2'
const MODULES = '/usr/lib/apache2/modules'
const NAMES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'dir', 'include']

/** The module, and Apache as a program: Debian starts no server of its own with these. */
export async function installApache(): Promise<void> {
  if (!existsSync(`${MODULES}/mod_auth_openidc.so`)) await install(['libapache2-mod-auth-openidc'])
}

/** As a process of its own. Answers how to end it. */
export async function startApache(registered: Registered): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-apache-'))
  // Its workers are another user.
  await chmod(folder, 0o755)
  await writeFile(join(folder, 'apache.conf'), configuration(folder, registered))
  await writeFile(join(folder, 'index.html'), FRONT_PAGE)
  const apache = spawn(PROGRAM, ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')])
  let said = ''
  apache.stderr.on('data', (chunk) => (said += String(chunk)))
  const ended = once(apache, 'exit')

  async function stop() {
    apache.kill()
    await ended
    await rm(folder, { recursive: true })
  }

  async function answers(): Promise<boolean> {
    if (apache.exitCode !== null) throw new Error(said + (await logIn(folder)))
    return fetch(`http://127.0.0.1:${registered.port}/`, { redirect: 'manual' }).then(
      () => true,
      () => false,
    )
  }
  await eventually('Apache answers', answers).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return stop
}

const FRONT_PAGE =
  '<main data-page="client" data-mode="signed_in"><!--#echo var="REMOTE_USER" --></main>'

function configuration(folder: string, client: Registered): string {
  const { issuer, port, redirectUri, clientId, clientSecret } = client
  return `
${NAMES.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
LoadModule auth_openidc_module ${MODULES}/mod_auth_openidc.so
ServerRoot ${folder}
ServerName client.localhost
DefaultRuntimeDir ${folder}
PidFile ${folder}/pid
ErrorLog ${folder}/log
User www-data
Group www-data
Listen 127.0.0.1:${port}
DocumentRoot ${folder}
OIDCProviderMetadataURL ${issuer}/.well-known/openid-configuration
OIDCClientID ${clientId}
OIDCClientSecret ${clientSecret}
OIDCRedirectURI ${redirectUri}
OIDCCryptoPassphrase ${clientSecret}
OIDCScope "openid email"
OIDCPKCEMethod S256
OIDCRemoteUserClaim sub
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
<Directory ${folder}>
  DirectoryIndex index.html
  Options +Includes
  ForceType text/html
  SetOutputFilter INCLUDES
</Directory>
`
}

function logIn(folder: string): Promise<string> {
  return readFile(join(folder, 'log'), 'utf8').catch(() => '')
}
