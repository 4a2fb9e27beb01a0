import { expect } from 'chai'
import { describeInChromium } from '../support/chromium.ts'
import { serve } from '../support/serve.ts'
import { everyPage } from './every-page.ts'
import { startPageServer, type PageServer } from './page-server.ts'

const MAX_BYTES = 20 * 1024

/** Keeps what moved, and what the policy of the page forbade. */
const WATCH = `
  window.seen = []
  new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => seen.push('moved by ' + value)))
    .observe({ type: 'layout-shift', buffered: true })
  addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
    seen.push(violatedDirective + ' forbade ' + blockedURI))`

interface Visit {
  id: string
  /** Names of what the page loaded, itself included. */
  requests: string[]
  bytes: number
  complaints: string[]
}

describeInChromium('Every page, as it arrives [full]', (browser) => {
  let server: PageServer
  const visits: Visit[] = []

  before(async () => {
    server = await startPageServer()
    const page = await browser().newPage()
    await page.addInitScript({ content: WATCH })
    const network = await page.context().newCDPSession(page)
    await network.send('Network.enable')
    await network.send('Network.setCacheDisabled', { cacheDisabled: true })
    let now: Visit = { id: '', requests: [], bytes: 0, complaints: [] }
    network.on('Network.requestWillBeSent', ({ request: { url } }) => {
      // The icon of the tab: the browser asks once for each origin, at a time of its own.
      if (/\/(favicon\.ico|oauth2\/account-flows\.svg\?v=\S+)$/.test(url)) return
      now.requests.push(new URL(url).pathname.replace(/.*\//, ''))
    })
    network.on('Network.loadingFinished', ({ encodedDataLength }) => {
      now.bytes += encodedDataLength
    })
    page.on('console', (message) => {
      // The form for a new password says to nobody whose it is (ENU-08).
      if (message.text().includes('should have (optionally hidden) username fields')) return
      // A page that says what was wrong has that status itself.
      if (message.location().url === page.url() && /status of [45]\d\d/.test(message.text())) return
      if (!message.location().url.endsWith('/favicon.ico')) now.complaints.push(message.text())
    })
    page.on('pageerror', ({ message }) => now.complaints.push(message))
    for (const shown of everyPage) {
      now = { id: shown.id, requests: [], bytes: 0, complaints: [] }
      await page.goto(server.addressOf(shown), { waitUntil: 'load' })
      now.complaints.push(...(await page.evaluate(seenAfterTwoFrames)))
      visits.push(now)
    }
    await page.close()
  })
  after(() => server?.close())

  it('is under 20 KiB with its style sheet and its script, uncompressed and with all headers', () => {
    const bytes = visits.map((visit) => visit.bytes)
    console.log(`      ${Math.min(...bytes)} to ${Math.max(...bytes)} bytes`)
    for (const visit of visits) expect(visit.bytes, visit.id).to.be.within(1024, MAX_BYTES)
  })

  it('loads itself, its style sheet, its script and the logo of a client, and nothing else', () => {
    for (const { id, requests } of visits) {
      const logo = requests.includes('logo.svg') ? ['logo.svg'] : []
      const expected = ['account-flows.css', 'account-flows.js', id, ...logo]
      expect(requests.toSorted(), id).to.deep.equal(expected.toSorted())
    }
    expect(visits.filter(({ requests }) => requests.includes('logo.svg'))).to.have.length(66)
  })

  it('moves nothing about while it loads or when its script is through, and breaks no rule of its own policy', () => {
    expect(visits.filter(({ complaints }) => complaints.length > 0)).to.deep.equal([])
  })

  it('moves nothing about either, where the page is read piece by piece', async () => {
    const shown = everyPage.find(({ id }) => id === 'reset-password.form.2')
    const [before = '', after = ''] = shown ? server.htmlOf(shown).split(/(?=<bdi>)/) : []
    const slow = await serve((_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).write(before)
      // Long enough to paint the logo alone. On a machine that takes longer, nothing can move.
      setTimeout(() => res.end(after), 500)
    })
    const page = await browser().newPage()
    await page.route('**/oauth2/**', async (route) => {
      const url = route.request().url().replace(slow.url, server.origin)
      await route.fulfill({ response: await route.fetch({ url }) })
    })
    await page.addInitScript({ content: WATCH })
    await page.goto(slow.url, { waitUntil: 'load' })
    expect(await page.evaluate(seenAfterTwoFrames)).to.deep.equal([])
    expect(await page.locator('.client bdi').isVisible()).to.equal(true)
    await page.close()
    await slow.close()
  })

  it('is noticed where it would move something, or break a rule', async () => {
    const page = await browser().newPage()
    await page.addInitScript({ content: WATCH })
    const [shown] = everyPage
    if (!shown) throw new Error('there are no pages')
    await page.goto(server.addressOf(shown))
    await page.evaluate(async () => {
      // Only what was painted can move.
      await new Promise((resolve) =>
        new PerformanceObserver(resolve).observe({ type: 'paint', buffered: true }),
      )
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
      const image = new Image()
      image.src = 'https://elsewhere.example/pixel.png'
      const block = document.createElement('div')
      block.style.height = '200px'
      document.querySelector('main')?.before(block)
    })
    await page.waitForFunction(() => /moved by 0\.\d+/.test(String(Reflect.get(window, 'seen'))))
    await page.waitForFunction(() =>
      String(Reflect.get(window, 'seen')).includes('img-src forbade https://elsewhere'),
    )
    await page.close()
  })
})

/** Runs in the page. */
async function seenAfterTwoFrames(): Promise<string[]> {
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  await new Promise((resolve) => setTimeout(resolve, 50))
  return Reflect.get(window, 'seen') as string[]
}
