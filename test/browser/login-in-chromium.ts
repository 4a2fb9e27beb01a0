import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { koaHost } from '../../examples/hosts/koa.ts'
import type { User } from '../../src/index.ts'
import {
  CLIENT,
  PASSWORD,
  startHarness,
  type Harness,
  type HarnessOptions,
  type Listener,
} from '../support/harness.ts'
import {
  createRelyingParty,
  type AuthorizationRequest,
  type RelyingParty,
} from '../support/relying-party.ts'
import { serve } from '../support/serve.ts'
import { addUnverified, codeIn } from '../support/person.ts'

/** The harness with what a browser needs: a login page with a form, and a client that answers on its redirect URI. */
export interface BrowserHarness extends Harness {
  callback: string
  party: RelyingParty
  /** Method and path of each request below the OAuth path so far. */
  requests: string[]
}

/** A login that waits in a window of Chromium. */
export interface LoginInWindow {
  user: User
  request: AuthorizationRequest
  link: string
  code: string
}

export type BrowserHarnessOptions = Pick<
  HarnessOptions,
  'settings' | 'clients' | 'provider' | 'flows'
> & {
  /** What stands in front of the host. */
  around?: (host: Listener) => Listener
}

export async function startBrowserHarness(
  options: BrowserHarnessOptions = {},
): Promise<BrowserHarness> {
  const client = await serve(answerAsClient)
  const callback = `${client.url}/cb`
  const requests: string[] = []

  const harness = await startHarness({
    ...options,
    clients: [{ ...CLIENT, redirect_uris: [callback] }, ...(options.clients ?? [])],
    host(parts) {
      const listener = koaHost({ ...parts, login: withForm(parts.login) })
      const counted: Listener = (req, res) => {
        requests.push(`${req.method} ${req.url}`)
        return listener(req, res)
      }
      return options.around?.(counted) ?? counted
    },
  })
  const party = await createRelyingParty(harness.oauthUrl, {
    clientId: CLIENT.client_id,
    redirectUri: callback,
  })
  return {
    ...harness,
    requests,
    callback,
    party,
    async close() {
      await client.close()
      await harness.close()
    },
  }
}

/** Says what was posted to it. */
function answerAsClient(req: IncomingMessage, res: ServerResponse) {
  let body = ''
  req.on('data', (chunk) => (body += String(chunk)))
  req.on('end', () => res.end(body || 'the client'))
}

type Login = (req: IncomingMessage, res: ServerResponse) => Promise<void>

function withForm(login: Login): Login {
  return async (req, res) => {
    if (req.method === 'POST') return login(req, res)
    res.setHeader('content-type', 'text/html; charset=utf-8')
    res.end(
      '<main data-page="login"><form method="post"><input name="username"><input name="password"><button>Sign in</button></form></main>',
    )
  }
}

/** Signs in, in this window, and ends on the page in mode `blocked`. */
export async function logInAndWait(
  h: BrowserHarness,
  page: Page,
  parameters: Record<string, string> = {},
): Promise<LoginInWindow> {
  const user = await addUnverified(h)
  const request = await h.party.begin(parameters)
  await signIn(page, request, user.username)
  await inMode(page, 'blocked')
  return { user, request, ...(await mailedTo(h, user)) }
}

/** What the mail to this account holds, once there are so many. */
export async function mailedTo(h: BrowserHarness, { email = '' }: User, count = 1) {
  const { link, mail } = await h.mail.mailTo(email, count)
  return { link, code: codeIn(mail) ?? '' }
}

export async function signIn(
  page: Page,
  { url }: AuthorizationRequest,
  username: string,
  password = PASSWORD,
) {
  await page.goto(url.href)
  await typeCredentials(page, username, password)
}

export async function typeCredentials(page: Page, username: string, password = PASSWORD) {
  await page.fill('input[name=username]', username)
  await page.fill('input[name=password]', password)
  await page.click('button')
}

/** Waits until the window shows a page in this mode. */
export async function inMode(page: Page, mode: string): Promise<void> {
  await page.waitForSelector(`main[data-mode=${mode}]`, { state: 'attached' })
}

/** Does what sends a form, and waits for the page that answers, as that can look the same. */
export async function answerTo(page: Page, send: () => Promise<unknown>): Promise<void> {
  const answered = page.waitForEvent('load')
  await send()
  await answered
}

/** Types a code into the page that waits, and presses Enter. */
export async function typeCode(page: Page, code: string): Promise<void> {
  await page.fill('#code', code)
  await page.press('#code', 'Enter')
}

/** Opens the link where no login waits: it shows the code, and verifies nothing. */
export async function openElsewhere(
  h: BrowserHarness,
  page: Page,
  { link, user, code }: Pick<LoginInWindow, 'link' | 'user' | 'code'>,
): Promise<void> {
  await page.goto(link)
  await inMode(page, 'elsewhere')
  expect(await page.textContent('p.code')).to.equal(code)
  await expectNothingHappened(h, page, user)
}

/** The window is at the client, with the client's own state and a code that its PKCE verifier redeems. */
export async function expectAtClient(
  h: BrowserHarness,
  page: Page,
  { request, user }: Pick<LoginInWindow, 'request' | 'user'>,
): Promise<void> {
  await page.waitForURL(`${h.callback}?**`)
  expect(await page.textContent('body')).to.equal('the client')
  expect(new URL(page.url()).searchParams.get('state')).to.equal(request.state)
  const tokens = await h.party.exchange(request, page.url())
  expect(tokens.claims()?.sub).to.equal(user.id)
}

export async function hasSession(h: BrowserHarness, page: Page): Promise<boolean> {
  const cookies = await page.context().cookies(h.oauthUrl)
  return cookies.some(({ name }) => name === '_session')
}

/** Neither a session nor a code, and the address is not verified. */
export async function expectNothingHappened(
  h: BrowserHarness,
  page: Page,
  user: User,
): Promise<void> {
  expect(await hasSession(h, page)).to.equal(false)
  expect(page.url().startsWith(h.oauthUrl)).to.equal(true)
  expect((await h.users.findById(user.id))?.emailVerified).to.equal(false)
}
