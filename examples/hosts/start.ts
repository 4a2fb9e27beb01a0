/**
 * Starts one of the hosts: `PORT=3000 node --import tsx/esm examples/hosts/start.ts express`. It prints its mails. With `captcha`
 * behind the host, its forms have a captcha.
 *
 * @module
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { MailTransport } from '../../src/index.ts'
import { createAltcha } from '../captcha/altcha.ts'
import { expressHost } from './express.ts'
import { fastifyHost } from './fastify.ts'
import type { HostParts } from './host-parts.ts'
import { createIdentity } from './identity.ts'
import { honoHost } from './hono.ts'
import { koaHost } from './koa.ts'
import { nestHost } from './nest.ts'
import { nodeHttpHost } from './node-http.ts'
import { providerHost } from './provider.ts'

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown

const HOSTS: Record<string, (parts: HostParts) => Listener | Promise<Listener>> = {
  koa: koaHost,
  express: expressHost,
  fastify: fastifyHost,
  hono: honoHost,
  nest: nestHost,
  'node-http': nodeHttpHost,
  provider: providerHost,
}

const { PORT = '3000' } = process.env
const host = HOSTS[process.argv[2] ?? '']
if (!host) throw new TypeError(`Name a host: ${Object.keys(HOSTS).join(', ')}`)

const baseUrl = `http://localhost:${PORT}`
const altcha = process.argv[3] === 'captcha' ? createAltcha() : undefined
const printed: MailTransport = {
  async send({ subject, text }) {
    console.log(`${subject}\n\n${text}`)
    return { accepted: true }
  },
  isStandIn: true,
}
const identity = await createIdentity(
  baseUrl,
  printed,
  host === providerHost ? '' : '/oauth2',
  altcha?.options,
)
const listener = await host(identity)
const server = createServer(altcha ? altcha.around(listener) : listener)
server.listen(Number(PORT), '127.0.0.1', () => console.log(`READY ${baseUrl}`))

process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
  void identity.flows.stop()
})
