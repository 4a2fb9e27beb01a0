import type { IncomingMessage } from 'node:http'
import type { Provider } from 'oidc-provider'
import { createAuthorizeSig, createKeyRing, createOwnKeyRing, keyedHash } from './crypto/keys.ts'
import { createLoginCodes } from './crypto/login-code.ts'
import { sealedLogins } from './crypto/sealed-logins.ts'
import { createSecretBox } from './crypto/secret-box.ts'
import { AccountFlowsError, must } from './errors.ts'
import { createVoidLinks, usersVoidingLinks } from './flows/account.ts'
import { createAudit } from './flows/audit.ts'
import { createClientNotifications } from './flows/password-changed.ts'
import { networkOf, requesterOf } from './http/requester.ts'
import {
  createRecordLoggedOutClients,
  createTellClient,
  isBackchannelLogoutOn,
  type LogoutParts,
} from './oidc/backchannel-logout.ts'
import { createClients } from './oidc/clients.ts'
import { createEndableSessions } from './oidc/endable-sessions.ts'
import { createOpenLogin } from './oidc/open-login.ts'
import { createOwnAdapter } from './oidc/own-adapter.ts'
import { createAccountPolicy } from './oidc/interactions.ts'
import { createPostForm } from './oidc/post-form.ts'
import { createLiveSession } from './oidc/renewed-session.ts'
import { createResume } from './oidc/resume.ts'
import type { CheckedOptions } from './options.ts'
import { createClientLogouts } from './jobs/client-logouts.ts'
import { createPasswords } from './passwords/passwords.ts'
import type { AuditEvent, Requester } from './contract/index.ts'
import { flowsStore } from './store/flows-store.ts'
import { createSettingsKeeper } from './settings/settings.ts'
import { createViews } from './views/index.ts'

export type Core = ReturnType<typeof createCore>

/** Made from the options once, and shared by flows, mails, pages and the admin API. */
export function createCore(options: CheckedOptions) {
  const { baseUrl, oauthPath, users, clock, log } = options
  const store = flowsStore(options.store, clock)
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const { provider, attach } = attachment()
  const keys = createKeyRing(options.secrets)
  const box = createSecretBox(keys)
  const hasTransport = options.transport !== undefined && !options.transport.isStandIn
  const settingsKeeper = createSettingsKeeper(store.settings, box, log, hasTransport)
  const settings = settingsKeeper.current
  const keepMs = () => settings().auditRetention
  const { record: audit, events } = createAudit(store.audit, keepMs, clock, log)
  const { voidLinks, voidEverything } = createVoidLinks(store)
  const passwords = createPasswords(options, settings)
  const oidc = { ...store, provider, users, box, clock, log }
  const { recordLoggedOutClients, ...clientParts } = createClientParts(oidc, options, audit)
  const sessions = createEndableSessions({
    ...oidc,
    recordLoggedOutClients,
    own: createOwnAdapter(oidc),
  })
  const oauthUrl = `${baseUrl.origin}${basePath}${oauthPath}`
  const openLogin = createOpenLogin(provider, box, `${oauthUrl}/reset-password`)
  return {
    ...oidc,
    store,
    basePath,
    oauthUrl,
    origin: baseUrl.origin,
    attach,
    voidEverything,
    watchedUsers: usersVoidingLinks(users, voidLinks),
    pendingLogins: sealedLogins(store.pendingLogins, box),
    keyRing: createOwnKeyRing(store.keyRings, keys, oauthUrl),
    keyedHash: (text: string) => keyedHash(keys, text),
    authorizeSig: createAuthorizeSig(keys),
    loginCodes: createLoginCodes(keys),
    settingsKeeper,
    settings,
    audit,
    events,
    sessions,
    readCutoffs: sessions.readCutoffs,
    cutoffsSeenAtLogin: sessions.cutoffsSeenAtLogin,
    policy: createAccountPolicy(users, settings, log),
    ...clientParts,
    ...passwords,
    hashPassword: (password: string, by?: Requester) =>
      passwords.hashPassword(password, by && networkOf(by.address, 48)),
    openLogin,
    resume: createResume({ ...oidc, openLogin }),
    views: createViews(`${basePath}${oauthPath}`, options),
    liveSession: createLiveSession({ ...oidc, sessions }),
    requesterOf: (req: IncomingMessage) => requesterOf(req, options.trustedProxies),
  }
}

/** The clients, and what notifies them that an account is signed out. */
function createClientParts(
  oidc: LogoutParts,
  { baseUrl, allowPrivateNetworks }: CheckedOptions,
  audit: (event: AuditEvent) => Promise<void>,
) {
  const { provider, clientLogouts: logouts, clock, log } = oidc
  const tell = createTellClient({ provider, post: createPostForm(allowPrivateNetworks), log })
  const isOn = () => isBackchannelLogoutOn(provider())
  const clientLogouts = createClientLogouts({ isOn, logouts, tell, audit, clock, log })
  const clients = createClients(provider, baseUrl.origin)
  return {
    clients,
    clientLogouts,
    recordLoggedOutClients: createRecordLoggedOutClients(oidc, clientLogouts.ring),
    ...createClientNotifications(isOn, logouts, clients.nameOf, log),
  }
}

const ATTACHED =
  'flows.attach was called before: call it once. Another provider needs flows of its own, from createAccountFlows'

function attachment() {
  let attached: Provider | undefined
  return {
    attach(provider: Provider) {
      must(!attached, ATTACHED)
      attached = provider
    },
    provider() {
      if (attached) return attached
      throw new AccountFlowsError('ERR_NOT_ATTACHED', 'Call flows.attach(provider) first')
    },
  }
}
