import { createPages } from '../../src/http/pages.ts'
import type { Brand } from '../../src/views/brand.ts'
import { createViews } from '../../src/views/index.ts'
import { everyPage, type ShownPage } from './every-page.ts'
import { serve } from '../support/serve.ts'

/** Serves every page with the headers that it has in earnest. */
export interface PageServer extends Awaited<ReturnType<typeof startPageServer>> {}

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" width="96" height="96" viewBox="0 0 96 96">
<rect width="96" height="96" rx="20" fill="#b45309"/><path d="M28 30h40l-6 40H34z" fill="#fff"/></svg>`

/** What a host may say of itself, all of it. */
export const BRAND: Brand = {
  name: 'Acme',
  colour: '#4f46e5',
  homeUrl: 'https://acme.example/',
  signInUrl: 'https://acme.example/sign-in',
  supportUrl: 'mailto:help@acme.example',
}

export async function startPageServer(brand?: Brand) {
  const views = createViews('/oauth2', { brand })
  const files: Record<string, [type: string, text: string]> = {
    '/oauth2/account-flows.css': ['text/css', views.stylesheet.text],
    '/oauth2/account-flows.js': ['text/javascript', views.script.text],
    '/oauth2/account-flows.svg': ['image/svg+xml', views.favicon.text],
    '/logo.svg': ['image/svg+xml', LOGO],
  }

  const pages = createPages(views, () => {})
  const { url: origin, close } = await serve((req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://any.example')
    const file = files[pathname]
    if (file) {
      res.writeHead(200, { 'Content-Type': file[0], 'X-Content-Type-Options': 'nosniff' })
      res.end(file[1])
      return
    }
    const page = everyPage.find(({ id }) => pathname === `/oauth2/${id}`)
    if (!page) {
      res.writeHead(404).end()
      return
    }
    pages.send(req, res, {
      name: page.name,
      locals: page.locals,
      uiLocales: searchParams.get('locale') ?? undefined,
    })
  })

  return {
    origin,
    close,
    addressOf: ({ id }: ShownPage, look: { locale?: string } = {}) =>
      `${origin}/oauth2/${id}?${new URLSearchParams(look)}`,
    htmlOf: ({ name, locals }: ShownPage, { locale }: { locale?: string } = {}) =>
      views.page(name, locals, { asked: locale }).html,
  }
}
