import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { koaHost } from '../../examples/hosts/koa.ts'
import type { User } from '../../src/index.ts'
import {
  CLIENT,
  PASSWORD,
  startHarness,
  type HarnessOptions,
  type Listener,
} from '../support/harness.ts'
import { codeIn, type Person } from '../support/person.ts'
import { serve } from '../support/serve.ts'
import { suiteOf } from '../support/suite.ts'

/** The harness with what a browser needs: a login page with a form, and a client that answers on its redirect URI. */
export interface BrowserHarness extends Awaited<ReturnType<typeof startBrowserHarness>> {}

/** What one person does and sees in a window of Chromium. What they are in the eyes of the service is that of `Person`. */
export interface PersonInChromium extends ReturnType<typeof personIn> {}

type BrowserHarnessOptions = Pick<HarnessOptions, 'settings' | 'clients' | 'provider' | 'flows'> & {
  /** What stands in front of the host. */
  around?: (host: Listener) => Listener
}

export async function startBrowserHarness(options: BrowserHarnessOptions = {}) {
  const client = await serve((req, res) => void answerAsClient(req, res))
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
  return {
    ...harness,
    /** Method and path of each request below the OAuth path so far. */
    requests,
    callback,
    async close() {
      await client.close()
      await harness.close()
    },
  }
}

/** That of the suite that asks for it, from its first hook to its end. Options that a hook makes are given as a function. */
export function suiteBrowserHarness(
  options: BrowserHarnessOptions | (() => Promise<BrowserHarnessOptions>) = {},
): BrowserHarness {
  return suiteOf<BrowserHarness>(
    async () => startBrowserHarness(typeof options === 'function' ? await options() : options),
    ({ close }) => close(),
  )
}

/** Says what was posted to it. */
async function answerAsClient(req: IncomingMessage, res: ServerResponse) {
  res.end((await text(req)) || 'the client')
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

/** @param user - one that this suite made. */
export function personIn(h: BrowserHarness, window: Page, user: Person) {
  const { oauthUrl } = h
  const person = {
    ...user,
    window,

    /** Does not wait for what answers: `sees` or `isAtApp` does. */
    async signsIn(password = PASSWORD, parameters: Record<string, string> = {}): Promise<void> {
      person.request = await h.party.begin(parameters)
      await window.goto(person.request.url.href)
      await person.typesCredentials(password)
    },

    /** Types the credentials into the login page that is there. */
    async typesCredentials(password = PASSWORD): Promise<void> {
      await window.fill('input[name=username]', user.username)
      await window.fill('input[name=password]', password)
      await window.click('button')
    },

    /** Asks with the form, and reads the mail. `query` is that of the form's address. */
    async forgets(query = ''): Promise<string> {
      const before = person.mailCount()
      await window.goto(`${oauthUrl}/forgot-password${query}`)
      await window.fill('input[name=identifier]', user.username)
      await window.click('button[type=submit]')
      await person.sees('forgot-password', 'sent')
      await person.reads(before + 1)
      return person.link
    },

    async opensLink(link?: string): Promise<void> {
      await window.goto(link ?? person.link)
    },

    /** Opens the link where no login waits: it shows the code, and verifies nothing. */
    async opensElsewhere(other: Page): Promise<void> {
      const there = person.in(other)
      await there.opensLink()
      await there.sees('verify-email', 'elsewhere')
      expect(await other.textContent('p.code')).to.equal(person.code)
      await there.getsNothing()
    },

    /** Types a code, presses Enter, and waits for the page that answers. */
    async types(code?: string): Promise<void> {
      await window.fill('#code', code ?? person.code)
      await answerTo(window, () => window.press('#code', 'Enter'))
    },

    async choosesPassword(password: string, confirm = password): Promise<void> {
      await window.fill('input[name=password]', password)
      await window.fill('input[name=confirm_password]', confirm)
      await window.click('button[type=submit]')
    },

    /** Presses a button, and waits for the page that answers, as that can look the same. */
    clicks: (selector: string): Promise<void> => answerTo(window, () => window.click(selector)),

    async sees(page: string, mode: string): Promise<void> {
      const selector = `main[data-page=${page}][data-mode=${mode}]`
      await window.waitForSelector(selector, { state: 'attached' })
    },

    /** Reads the mail with that number, from 1. */
    async reads(count: number): Promise<void> {
      const { link, mail } = await h.mail.mailTo(user.email ?? '', count)
      Object.assign(person, { link, code: codeIn(mail) ?? '' })
    },

    /** The same person in another window. */
    in(other: Page): PersonInChromium {
      const { request, link, code } = person
      return Object.assign(personIn(h, other, user), { request, link, code })
    },

    async hasSession(): Promise<boolean> {
      const cookies = await window.context().cookies(oauthUrl)
      return cookies.some(({ name }) => name === '_session')
    },

    /** The window is at the app, with the app's own state and a code that its PKCE verifier redeems. */
    async isAtApp(): Promise<void> {
      await window.waitForURL(`${h.callback}?**`)
      expect(await window.textContent('body')).to.equal('the client')
      expect(new URL(window.url()).searchParams.get('state')).to.equal(person.request.state)
      const tokens = await h.party.exchange(person.request, window.url())
      expect(tokens.claims()?.sub).to.equal(user.id)
    },

    /** Neither a session nor a code, and the address is not verified. */
    async getsNothing(): Promise<void> {
      expect(await person.hasSession()).to.equal(false)
      expect(window.url().startsWith(oauthUrl)).to.equal(true)
      expect(await person.isVerified()).to.equal(false)
    },
  }
  return person
}

/** One whose login waits in this window. */
export async function blockedIn(
  h: BrowserHarness,
  window: Page,
  parameters: Record<string, string> = {},
  more: Partial<User> = {},
): Promise<PersonInChromium> {
  const person = personIn(h, window, await h.addUnverified(more))
  await person.signsIn(PASSWORD, parameters)
  await person.sees('verify-email', 'blocked')
  await person.reads(1)
  return person
}

/** Waits until the window shows a page in this mode. */
export async function inMode(window: Page, mode: string): Promise<void> {
  await window.waitForSelector(`main[data-mode=${mode}]`, { state: 'attached' })
}

/** Does what sends a form, and waits for the page that answers, as that can look the same. */
export async function answerTo(window: Page, send: () => Promise<unknown>): Promise<void> {
  const answered = window.waitForEvent('load')
  await send()
  await answered
}

/** A window of a browser of its own for all tests of a suite, as opening one costs more than most tests do. After each of them
 * it is empty, without cookies, and alone. */
export function keptWindow(
  browser: () => Browser,
  options: BrowserContextOptions = {},
): () => Page {
  let page: Page

  before(async () => {
    page = await (await browser().newContext(options)).newPage()
  })

  afterEach(async () => {
    const context = page.context()
    const others = context.pages().filter((other) => other !== page)
    await Promise.all(others.map((other) => other.close()))
    await page.goto('about:blank')
    await context.clearCookies()
  })

  return () => page
}
