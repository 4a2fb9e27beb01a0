import { expect } from 'chai'
import type { AdapterFactory } from 'oidc-provider'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { ask } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { removeViewsDirectories, viewsDirectory } from '../support/views-directory.ts'

const WORDS = {
  'forgot-password.title': 'Neues Passwort',
  'forgot-password.sent.title': 'Sehen Sie in Ihre Post',
  'forgot-password.invalid.refusal': 'Wer sind Sie?',
  'mail.password-reset.subject': 'Das neue Passwort',
}

describe('{oauth_path}/forgot-password as a part of a sign-in', () => {
  const agent = createUserAgent()
  let h: Harness
  let url: string
  let registered: AdapterFactory | undefined

  before(async () => {
    h = await startHarness({
      flows: { viewsDirectory: viewsDirectory({ 'locales/de.json': JSON.stringify(WORDS) }) },
      adapter: (given) => (registered = given),
    })
    url = `${h.oauthUrl}/forgot-password`
    await h.addUser({ username: 'ann' })
  })

  after(async () => {
    await h?.close()
    removeViewsDirectories()
  })

  const carried = { client_id: CLIENT.client_id, redirect_uri: CLIENT.redirect_uris[0] }
  const get = (query: Record<string, string>) => agent.get(`${url}?${new URLSearchParams(query)}`)

  describe('names the client that it was opened from', () => {
    it('by its name, where it and its redirect URI are genuine', async () => {
      expect((await get(carried)).text).to.include('The App')
      for (const other of [
        {},
        { client_id: carried.client_id },
        { ...carried, redirect_uri: 'https://evil.example/' },
        { ...carried, client_id: 'nobody' },
      ]) {
        const page = await get(other)
        expect([page.status, page.mode]).to.deep.equal([200, 'form'])
        expect(page.text).not.to.include('The App')
      }
    })

    it('by its logo, where that is on our own origin, and loads no other', async () => {
      const own = `${h.baseUrl}/logo.svg`
      const logos: Record<string, boolean> = {
        [own]: true,
        'https://app.example/logo.svg': false,
        [own.replace('127.0.0.1', 'localhost')]: false,
        [own.replace('http:', 'https:')]: false,
        [own.replace('//', '//127.0.0.1@evil.example/')]: false,
      }
      for (const [logo_uri, isShown] of Object.entries(logos)) {
        const client_id = `with ${logo_uri}`
        const metadata = { ...CLIENT, client_id, client_name: 'The Logo', logo_uri }
        await registered?.('Client').upsert(client_id, metadata, 3_600)
        const { text } = await get({ ...carried, client_id })
        expect(text).to.include('The Logo')
        expect([...text.matchAll(/<img[^>]*src="([^"]*)"/g)].map(([, src]) => src)).to.deep.equal(
          isShown ? [logo_uri] : [],
        )
      }
    })
  })

  describe('speaks the language of the request', () => {
    it('on every page, and in the mail', async () => {
      const ui_locales = 'tlh de-AT en'
      const page = await get({ ...carried, ui_locales })
      expect(page.text).to.include(WORDS['forgot-password.title']).and.include('lang="de"')
      expect(page.hidden).to.deep.equal({ ...carried, ui_locales })
      const refused = await agent.post(url, { ...page.hidden, identifier: '' })
      expect(refused.text).to.include(WORDS['forgot-password.invalid.refusal'])
      expect(refused.hidden).to.deep.equal(page.hidden)
      const { answer } = await ask(h, 'ann', page.hidden)
      expect(answer.text).to.include(WORDS['forgot-password.sent.title'])
      expect(h.mail.mails.at(-1)?.mail.subject).to.equal(WORDS['mail.password-reset.subject'])
    })

    it('and that of the browser where the request has none, or more than one', async () => {
      for (const query of ['', 'ui_locales=', 'ui_locales=x', 'ui_locales=de&ui_locales=de']) {
        const page = await agent.get(`${url}?${query}`, { 'accept-language': 'en' })
        expect([page.status, page.mode]).to.deep.equal([200, 'form'])
        expect(page.text).to.include('lang="en"')
      }
      const repeated = await agent.post(url, 'identifier=ann&ui_locales=de&ui_locales=de')
      expect([repeated.status, repeated.mode]).to.deep.equal([400, 'bad_request'])
    })

    it('and keeps no more than 100 characters of what it asks for', async () => {
      const ui_locales = 'de '.repeat(5_000)
      expect((await get({ ui_locales: ui_locales.slice(0, 3_000) })).hidden).to.deep.equal({
        ui_locales: ui_locales.slice(0, 100),
      })
      expect((await ask(h, 'ann', { ui_locales })).answer.mode).to.equal('sent')
      expect(h.mail.mails.at(-1)?.mail.subject).to.equal(WORDS['mail.password-reset.subject'])
    })
  })
})
