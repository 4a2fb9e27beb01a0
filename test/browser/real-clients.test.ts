import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { recommendations } from '../../src/settings/rules.ts'
import { describeInChromium } from '../support/chromium.ts'
import { realClients, type RealClient } from '../oidc/real-clients.ts'
import { leaveOut } from '../support/missing.ts'
import { ROOT } from '../support/folders.ts'
import {
  inMode,
  personIn,
  suiteBrowserHarness,
  type PersonInChromium,
} from './person-in-chromium.ts'

const NEW = 'hedgehogs at the seaside'
const REQUEST_PARAMETERS = ['client_id', 'redirect_uri', 'scope', 'state']

const ASKED: [parameter: string, word: string][] = [
  ['state', 'state'],
  ['nonce', 'nonce'],
  ['code_challenge', 'PKCE'],
]

/** The first table of docs/clients.md: its cells by client and column. */
function readTable(): Map<string, Record<string, string>> {
  const page = readFileSync(`${ROOT}docs/clients.md`, 'utf8')
  const table = page.split('\n\n').find((block) => block.startsWith('| client')) ?? ''
  const [header = [], , ...rows] = table
    .trim()
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')))
  return new Map(
    rows.map((row) => {
      const cells = Object.fromEntries(header.map((column, at) => [column, row[at] ?? '']))
      return [cells['client'] ?? '', cells]
    }),
  )
}

const TABLE = readTable()

function atLogin(window: Page) {
  return window.waitForSelector('main[data-page=login]', { state: 'attached' })
}

/** As in a mail that is read in the browser: the link is on a page of another site. */
async function openMailed(window: Page, link: string) {
  await window.goto('about:blank')
  await window.setContent(`<a href="${link.replaceAll('&', '&amp;')}">the link</a>`)
  await window.click('a')
}

describeInChromium('Clients that others wrote [full]', (browser) => {
  let clients: RealClient[]
  /** The browser of the login, and another. */
  let page: Page
  let other: Page

  const h = suiteBrowserHarness(async () => {
    clients = await realClients()
    expect([...TABLE.keys()]).to.deep.equal(clients.map(({ metadata }) => metadata.client_id))
    return {
      settings: Object.fromEntries(recommendations.map(({ name, value }) => [name, value])),
      clients: clients.map(({ metadata }) => metadata),
      provider: {
        clientBasedCORS: (_ctx, origin, client) =>
          client.redirectUris?.some((uri) => new URL(uri).origin === origin) === true,
      },
    }
  })

  beforeEach(async () => {
    const contexts = await Promise.all([browser().newContext(), browser().newContext()])
    const [first, second] = contexts
    ;[page, other] = await Promise.all([first.newPage(), second.newPage()])
  })
  afterEach(() => Promise.all([page, other].map((each) => each.context().close())))

  for (const [name, cells] of TABLE) {
    describe(name, () => {
      let client: RealClient
      let stop: (() => unknown) | undefined

      before('the client runs', async function () {
        const found = clients.find(({ metadata }) => metadata.client_id === name)
        if (!found) throw new Error(`there is no client ${name}`)
        client = found
        await client.install().catch((error: unknown) => {
          const why = error instanceof Error ? error.message : String(error)
          leaveOut(this, `No ${name} (${why}): run the tests as root on Debian.`)
        })
        stop = await client.start(h.oauthUrl)
      })
      after(() => stop?.())

      /** From its front page to the login page, by its own request. */
      async function begin(window: Page): Promise<URLSearchParams> {
        const asking = window.waitForRequest((request) =>
          request.url().startsWith(`${h.oauthUrl}/auth?`),
        )
        await window.goto(client.baseUrl)
        if (client.button) await window.click(client.button)
        await atLogin(window)
        const { searchParams } = new URL((await asking).url())
        const has = ASKED.filter(([parameter]) => searchParams.has(parameter))
        expect(has.map(([, word]) => word).join(', ')).to.equal(cells['asks with'])
        return searchParams
      }

      async function beginBlocked() {
        const person = personIn(h, page, await h.addUnverified())
        await begin(page)
        await person.typesCredentials()
        await person.sees('verify-email', 'blocked')
        await person.reads(1)
        return person
      }

      /** Asked for on the way to this client; the link is opened in this window, and its last page left by its button. */
      async function resetIn(window: Page): Promise<PersonInChromium> {
        const person = personIn(h, page, await h.addVerified())
        const asked = await begin(page)
        const parameters = new URLSearchParams(
          REQUEST_PARAMETERS.map((field) => [field, asked.get(field) ?? '']),
        )
        await openMailed(window, await person.forgets(`?${parameters}`))
        const there = person.in(window)
        await there.choosesPassword(NEW)
        await there.sees('reset-password', 'done')
        await window.click('main a.button')
        return there
      }

      async function isSignedIn({ window, id }: PersonInChromium) {
        await inMode(window, 'signed_in')
        expect(window.url()).to.equal(`${client.baseUrl}/`)
        expect(await window.textContent('main[data-page=client]')).to.equal(id)
      }

      it('same browser: the link leads on to the client', async () => {
        const person = await beginBlocked()
        const beside = person.in(await page.context().newPage())
        await page.close()
        await openMailed(beside.window, person.link)
        await isSignedIn(beside)
        expect(cells['same browser']).to.equal('signed in')
      })

      it('other browser: our page shows the code; first window: goes on by it', async () => {
        const person = await beginBlocked()
        await person.opensElsewhere(other)
        expect(cells['other browser']).to.equal('the code')
        await person.types()
        await isSignedIn(person)
        expect(cells['first window']).to.equal('signed in')
      })

      it('after a reset: goes on with the request that waits in this browser', async () => {
        const person = await resetIn(page)
        await atLogin(page)
        await person.typesCredentials(NEW)
        await isSignedIn(person)
        expect(cells['after a reset']).to.equal('signed in')
      })

      it('after a reset elsewhere: begins a request of its own there', async () => {
        const person = await resetIn(other)
        if (client.button) await other.click(client.button)
        await atLogin(other)
        await person.typesCredentials(NEW)
        await isSignedIn(person)
        expect(cells['after a reset elsewhere']).to.equal('signed in')
      })
    })
  }
})
