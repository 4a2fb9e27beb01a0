import type { Context } from 'koa'
import { errors, type Provider } from 'oidc-provider'
import { appendParameters } from '../contract/parameters.ts'
import { isLoopbackHost } from '../settings/addresses.ts'
import type { CapturedRequest } from '../store/logins.ts'
import type { RequestParameters } from '../contract/index.ts'
import type { ShownApps, ShownClient } from '../views/page-locals.ts'
import { createRecheck, type Client } from './recheck.ts'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** Servers and proxies refuse addresses that are much longer. */
const MAX_PARAMETERS_LENGTH = 4_000

/** As many clients as a page or a mail names. It counts the rest. */
const MAX_NAMES = 10

export type Clients = ReturnType<typeof createClients>

/** Pages show no logo of another origin. */
export function createClients(provider: () => Provider, origin: string) {
  const passesToday = createRecheck(provider)

  async function genuineClient(parameters: RequestParameters) {
    const { clientId, redirectUri } = parameters
    if (clientId === undefined || redirectUri === undefined) return undefined
    const query = appendParameters(new URLSearchParams(), parameters).toString()
    if (query.length > MAX_PARAMETERS_LENGTH) return undefined
    const client = await findClient(provider(), clientId)
    return client?.redirectUriAllowed(redirectUri) ? client : undefined
  }

  function shownClient(client: Client): ShownClient {
    const { clientName = '', logoUri: logo = '' } = client
    const isOwn = URL.canParse(logo) && new URL(logo).origin === origin
    return { clientName: isSeen(clientName) ? clientName : client.clientId, ...(isOwn && { logo }) }
  }

  return {
    /**
     * No parameters unless they name a registered client and one of its redirect URIs. So nothing unregistered, or too long for an address,
     * is ever signed, mailed, rendered or followed.
     */
    async identify(parameters: RequestParameters) {
      const client = await genuineClient(parameters)
      const genuine: RequestParameters = client ? parameters : {}
      return { parameters: genuine, ...(client && { client: shownClient(client) }) }
    },

    /** The names that pages and mails show. A client that is gone is named by its id. */
    async namesOf(clientIds: string[]): Promise<ShownApps> {
      const names = clientIds.slice(0, MAX_NAMES).map(async (clientId) => {
        const client = await findClient(provider(), clientId)
        return client ? shownClient(client).clientName : clientId
      })
      return { names: await Promise.all(names), more: Math.max(0, clientIds.length - MAX_NAMES) }
    },

    /** Whether a captured request may go on: its client is registered, and the provider would take the request today. */
    async mayFinish(ctx: Context, captured: CapturedRequest) {
      const { params, deviceCode } = captured
      const client = await findClient(provider(), String(params['client_id']))
      if (!client) return false
      if (deviceCode === undefined) return passesToday(ctx, captured, client)
      return (
        client.grantTypeAllowed(DEVICE_GRANT) &&
        (await stateOfDevice(provider(), deviceCode)) === 'waiting'
      )
    },

    /** Whether the request came from a device that already has its answer. */
    isFinished: async ({ deviceCode }: CapturedRequest) =>
      deviceCode !== undefined && (await stateOfDevice(provider(), deviceCode)) === 'answered',

    /**
     * The client, and where its login starts again: a `loginPage` of this browser, its own address (OpenID Connect Core, section 4), or its
     * front page. It says nothing about the account: another person may have asked for the mail.
     */
    async restart(parameters: RequestParameters, loginPage?: string) {
      const client = await genuineClient(parameters)
      if (!client) return undefined
      const href = loginPage ?? hrefOf(provider(), client, parameters)
      return { ...shownClient(client), href }
    },
  }
}

function hrefOf({ issuer }: Provider, client: Client, { redirectUri = '' }: RequestParameters) {
  const { initiateLoginUri, clientUri, applicationType } = client
  if (initiateLoginUri !== undefined) {
    const url = new URL(initiateLoginUri)
    url.searchParams.set('iss', issuer)
    return url.href
  }
  if (clientUri !== undefined) return clientUri
  const { protocol, hostname, origin } = new URL(redirectUri)
  // A native app listens on its loopback address only while it waits for an answer.
  const isListening = applicationType === 'native' && isLoopbackHost(hostname)
  return /^https?:$/.test(protocol) && !isListening ? `${origin}/` : undefined
}

/** `undefined`: the client is not registered, or cannot be read. */
async function findClient(provider: Provider, clientId: string) {
  const client = await readClient(provider, clientId)
  return client === 'unreadable' ? undefined : client
}

/** `unreadable`: its registration is broken, or a server that is needed to read or check it does not answer. */
export async function readClient({ Client }: Provider, clientId: string) {
  try {
    return await Client.find(clientId)
  } catch (error) {
    if (error instanceof errors.OIDCProviderError) return 'unreadable'
    throw error
  }
}

// The provider shows an error for a code that has expired or was answered before.
async function stateOfDevice({ DeviceCode }: Provider, deviceCode: string) {
  const code = await DeviceCode.find(deviceCode)
  if (!code) return 'gone'
  return code.accountId === undefined && code.error === undefined ? 'waiting' : 'answered'
}

/** Whether a name can be seen. Some letters are blank: the Hangul fillers and the empty pattern of Braille. */
const isSeen = (name: string) => /[^\p{C}\p{Z}\p{M}\u115F\u1160\u2800\u3164\uFFA0]/u.test(name)
