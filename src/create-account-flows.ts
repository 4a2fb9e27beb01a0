/** Makes each part of the service, layer by layer, from the few things that the part needs. No other file knows all parts. */
import type { IncomingMessage } from 'node:http'
import type { AccountFlows } from './account-flows.ts'
import { createAdminApi } from './admin/admin-api.ts'
import type { Requester } from './contract/index.ts'
import { createKeyed } from './crypto/keyed.ts'
import { createKeyRing, createOwnKeyRing } from './crypto/keys.ts'
import { createSecretBox } from './crypto/secret-box.ts'
import { createAudit } from './flows/audit.ts'
import { createFlows } from './flows/flows.ts'
import { usersVoidingLinks } from './flows/void-links.ts'
import { createBrowserCookie } from './http/browser.ts'
import { createDispatcher } from './http/dispatcher.ts'
import { loadBodyReader } from './http/input.ts'
import { createLogin } from './http/login.ts'
import { createLoginPassword } from './http/login-password.ts'
import { createCooldown, createMailForms } from './http/mail-forms.ts'
import { createWellKnown } from './http/mount.ts'
import { createPages } from './http/pages.ts'
import { hashQueueOf, requesterOf as requesterBehind } from './http/requester.ts'
import { createRoutes } from './http/routes.ts'
import { createClientLogouts } from './jobs/client-logouts.ts'
import { createClientNotifications } from './jobs/client-notifications.ts'
import { createMaintenance } from './jobs/maintenance.ts'
import { createGlobalLimit } from './mail/limits.ts'
import { createMailQueue } from './mail/queue.ts'
import { createRefreshTokens } from './mail/smtp/access-tokens.ts'
import { createMailCheck } from './mail/smtp/check.ts'
import { createMailSender } from './mail/smtp/sender.ts'
import { createAttachment } from './oidc/attach.ts'
import {
  createNotifyClient,
  isBackchannelLogoutOn,
  createRecordLoggedOutClients,
} from './oidc/backchannel-logout.ts'
import { createClients } from './oidc/clients.ts'
import { createEndableSessions } from './oidc/endable-sessions.ts'
import { createAccountPolicy, createInteractions } from './oidc/interactions.ts'
import { createLiveSession } from './oidc/live-session.ts'
import { createLoginPage } from './oidc/login-page-cookie.ts'
import { createOwnAdapter } from './oidc/own-adapter.ts'
import { createPostForm } from './oidc/post-form.ts'
import { createResume } from './oidc/resume.ts'
import { checkOptions, type AccountFlowsOptions } from './options.ts'
import { createPasswords } from './passwords/passwords.ts'
import { createSettingsKeeper } from './settings/settings.ts'
import { flowsStore } from './store/index.ts'
import { sealedLogins } from './store/sealed-logins.ts'
import { createViews } from './views/index.ts'

/**
 * Password reset and e-mail verification beside an oidc-provider.
 *
 * @throws TypeError that names the bad option.
 * @example
 * const flows = createAccountFlows({ baseUrl, oauthPath: '/oauth2', secrets, store: mongoStore(db), users: mongoUsers(db.collection('users')) })
 * const provider = new Provider(issuer, { adapter: flows.adapter(), … })
 * flows.attach(provider)
 * await flows.start()
 */
export function createAccountFlows(options: AccountFlowsOptions): AccountFlows {
  const checked = checkOptions(options)
  const { baseUrl, basePath, oauthUrl, users, transport, clock, log } = checked
  const requesterOf = (req: IncomingMessage) => requesterBehind(req, checked.trustedProxies)

  // The keys, the store, and the settings in it.
  const keys = createKeyRing(checked.secrets)
  const box = createSecretBox(keys)
  const plainStore = flowsStore(checked.store, clock)
  const pendingLogins = sealedLogins(plainStore.pendingLogins, box)
  const store = { ...plainStore, pendingLogins }
  const { cutoffs, limits, clientLogouts: logouts } = store
  const settingsKeeper = createSettingsKeeper(store.settings, box, log, checked.hasTransport)
  const settings = settingsKeeper.current
  const keepMs = () => settings().auditRetention
  const { record: audit, events } = createAudit(store.audit, keepMs, clock, log)

  // What the keys sign, seal and hash; passwords.
  const keyed = createKeyed(keys)
  const { keyedHash } = keyed
  const common = { store, users, keyed, settings, audit, clock, log }
  const keyRing = createOwnKeyRing(store.keyRings, keys, oauthUrl)
  const passwords = createPasswords(checked, settings)
  const { passwordRules, verifyPassword, dearestCost } = passwords
  const hashPassword = (password: string, by?: Requester) =>
    passwords.hashPassword(password, by && hashQueueOf(by))
  const trying = { limits, keyedHash, users, requesterOf, verifyPassword }
  const { loginPassword, forgetTries } = createLoginPassword(trying)

  // The provider: its clients, and what notifies them that an account is signed out.
  const { provider, attach } = createAttachment()
  const clients = createClients(provider, baseUrl.origin)
  const isOn = () => isBackchannelLogoutOn(provider())
  const post = createPostForm(checked.allowPrivateNetworks)
  const notify = createNotifyClient({ provider, post, log })
  const clientLogouts = createClientLogouts({ isOn, logouts, notify, audit, clock, log })
  const notifications = createClientNotifications(isOn, logouts, clients.namesOf, log)

  // The sessions at the provider, how requests go on there, and its checks.
  const own = createOwnAdapter({ providerRecords: store.providerRecords, box, clock })
  const recording = { provider, clientLogouts: logouts, clock, log }
  const recordLoggedOutClients = createRecordLoggedOutClients(recording, clientLogouts.wake)
  const sessions = createEndableSessions({ cutoffs, own, recordLoggedOutClients, ...common })
  const liveSession = createLiveSession({ provider, sessions, cutoffs, clock, log })
  const loginPage = createLoginPage(provider, box, `${oauthUrl}/reset-password`)
  const resume = createResume({ provider, loginPage, clock })
  const policy = createAccountPolicy(users, settings, log)

  // Jobs and mails. When mails and flows look up a disabled user, the links mailed to that user become void.
  const views = createViews(`${basePath}${checked.oauthPath}`, checked)
  const refreshTokens = createRefreshTokens(settingsKeeper, log)
  const checkMail = createMailCheck(clock, refreshTokens, transport)
  const sender = createMailSender(settings, clock, refreshTokens, transport)
  const watching = { ...common, users: usersVoidingLinks(users, store) }
  const mailQueue = createMailQueue({
    ...watching,
    notifications,
    clients,
    oauthUrl,
    views,
    globalLimit: createGlobalLimit(limits, settings, clock.now),
    sender,
  })

  // The flows.
  const flows = createFlows({
    ...watching,
    mailQueue,
    passwords: { ...passwordRules, hash: hashPassword, forgetTries },
    sessions: { ...sessions, liveOf: liveSession },
    notifications,
    requesterOf,
  })
  const { waitingLogins } = flows
  const unfinished = { resets: flows.passwordReset, invitations: flows.invitation }
  const maintained = { settingsKeeper, keyRing, unfinished, mailQueue }
  const maintenance = createMaintenance({ ...maintained, ...common })

  // What browsers see.
  const { beforeForgotPassword, responseDelay, oauthPath, trustedProxies } = checked
  const pages = createPages(views, log, checked.captcha?.sources)
  const browserCookie = createBrowserCookie(baseUrl.protocol === 'https:')
  const cooldown = createCooldown(limits, keyedHash, settings)
  const asked = { keyedHash, beforeForgotPassword, responseDelay }
  const mailForms = createMailForms({ pages, cooldown, mailQueue, ...asked, ...common })

  const shown = { pages, clients, cooldown, mailForms, settings }
  const { origin } = baseUrl
  const receiving = { limits, requesterOf, browserCookie, origin, oauthPath, trustedProxies }
  const routes = createDispatcher(
    { pages, ...receiving, ...common },
    createRoutes({ ...shown, ...flows, loginPage, resume, sessions, clock, log }, views),
  )
  const added = { sessions, policy, loginPage, routes, pages, browserCookie }

  // The end of a login at the host's own page.
  const interactions = createInteractions(provider)
  const ways = { interactions, sessions, waitingLogins, oauthUrl }
  const login = createLogin({ ...shown, ...receiving, ...ways, users, clock })

  // What admins see.
  const adminApi = createAdminApi(
    {
      options: checked,
      settingsKeeper,
      flows,
      mail: { canSend: sender.canSend, check: checkMail, views },
      processes: { keyRings: keyRing.all, dearestCost },
      ...common,
    },
    `${basePath}${checked.adminPath}`,
  )

  return {
    ...login,
    ...loginPassword,
    ...flows.forHosts,
    validatePassword: passwordRules.validateAll,
    adapter: sessions.adapter,
    policy: policy.add,
    attach: (provider) => attach(provider, { ...added, oauthUrl, log }),

    async start({ workers = true } = {}) {
      if (workers) provider()
      // Not with the first request: an import that fails once, because no file handle is free, fails for ever.
      await Promise.all([loadBodyReader(), import('./admin/router.ts'), store.start()])
      await users.start?.()
      await own.start()
      await maintenance.start(checked.initialSettings, workers)
      await passwordRules.load()
      if (workers) [mailQueue, clientLogouts].forEach(({ start }) => start())
    },

    async stop({ withinMs = 10_000 } = {}) {
      await Promise.all([maintenance, mailQueue, clientLogouts].map(({ stop }) => stop(withinMs)))
    },

    health: maintenance.health,
    adminApi,
    wellKnownChangePassword: createWellKnown(`${oauthUrl}/forgot-password`),
    events,
  }
}
