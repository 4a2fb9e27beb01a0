import { DomUtils, parseDocument } from 'htmlparser2'
import { expect } from 'chai'

/** A browser without scripts: keeps cookies by name, path and expiry, and follows no redirect by itself. */
export type UserAgent = ReturnType<typeof createUserAgent>

export type Form = Record<string, string> | [string, string][] | string

export interface Answer {
  status: number
  headers: Headers
  text: string
  /** Absolute; `undefined` where there is none. */
  location: string | undefined
  /** `data-page` and `data-mode` of the page. */
  page: string | undefined
  mode: string | undefined
  /** Values of the hidden fields of its forms, by name. */
  hidden: Record<string, string>
  url: string
}

interface Cookie {
  name: string
  value: string
  path: string
}

export function createUserAgent() {
  let jar: Cookie[] = []

  /** Names and values of the cookies that a request to this address would carry. */
  function cookiesFor(url: string | URL): string {
    const { pathname } = new URL(url)
    return jar
      .filter(({ path }) => pathname === path || pathname.startsWith(path.replace(/\/?$/, '/')))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
  }

  function keep(line: string) {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
    const at = pair.indexOf('=')
    const attribute = (name: string) =>
      attributes.find((a) => a.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
    const cookie = {
      name: pair.slice(0, at),
      value: pair.slice(at + 1),
      path: attribute('path') ?? '/',
    }
    const expires = attribute('expires')
    jar = jar.filter(({ name, path }) => name !== cookie.name || path !== cookie.path)
    if (cookie.value !== '' && !(expires && new Date(expires) <= new Date())) jar.push(cookie)
  }

  async function request(method: string, url: string | URL, init: RequestInit = {}) {
    const headers = new Headers(init.headers)
    const cookie = cookiesFor(url)
    if (cookie) headers.set('cookie', cookie)
    // The server may close a kept connection at the moment when a late post goes out on it.
    headers.set('connection', 'close')
    const response = await fetch(url, { ...init, method, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) keep(line)
    return answerOf(response, String(url))
  }

  return {
    request,
    cookiesFor,
    get(url: string | URL, headers: Record<string, string> = {}) {
      return request('GET', url, { headers })
    },
    post(url: string | URL, form: Form, headers: Record<string, string> = {}) {
      return request('POST', url, {
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
      })
    },
  }
}

async function answerOf(response: Response, url: string): Promise<Answer> {
  const text = await response.text()
  const location = response.headers.get('location')
  return {
    status: response.status,
    headers: response.headers,
    text,
    location: location === null ? undefined : new URL(location, url).href,
    ...shownBy(text),
    hidden: hiddenFields(text),
    url,
  }
}

/** `data-page` and `data-mode` of a page. */
export function shownBy(text: string) {
  return {
    page: /data-page="([^"]*)"/.exec(text)?.[1],
    mode: /data-mode="([^"]*)"/.exec(text)?.[1],
  }
}

function hiddenFields(html: string): Record<string, string> {
  const hidden = elements(html, 'input').filter(({ attribs }) => attribs['type'] === 'hidden')
  return Object.fromEntries(hidden.map(({ attribs: { name = '', value = '' } }) => [name, value]))
}

export function decodeEntities(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

/** Follows redirects as long as they stay below `within`; answers the first response that leads elsewhere, or is a page. */
export async function followWithin(
  agent: UserAgent,
  within: string,
  first: Answer,
  headers?: Record<string, string>,
): Promise<Answer> {
  let answer = first
  while (answer.location?.startsWith(within)) answer = await agent.get(answer.location, headers)
  return answer
}

/** A browser without scripts at one server: paths instead of addresses, and redirects within it where asked to. */
export type Browser = ReturnType<typeof createBrowser>

export function createBrowser(baseUrl: string) {
  const agent = createUserAgent()
  const within = new URL('/', baseUrl).href
  const get = (path: string, headers?: Record<string, string>) =>
    agent.get(new URL(path, baseUrl), headers)
  const postForm = (path: string, form: Form, headers?: Record<string, string>) =>
    agent.post(new URL(path, baseUrl), form, headers)
  return {
    get,
    postForm,
    visit: async (path: string, headers?: Record<string, string>) =>
      followWithin(agent, within, await get(path, headers), headers),
    submit: async (...post: Parameters<typeof postForm>) =>
      followWithin(agent, within, await postForm(...post)),
  }
}

/** A form as a browser without scripts reads it. */
export interface PageForm {
  method: string
  /** Absolute. */
  action: string
  /** Of its fields, as they are filled in; a box that is not ticked sends nothing. */
  fields: Record<string, string>
  /** Names and values of its buttons. */
  buttons: { name: string; value: string }[]
}

export interface Pressed {
  /** What the person types, by field. */
  typed?: Record<string, string>
  /** The value of the button, where there are several. */
  button?: string
  headers?: Record<string, string>
}

export function formsOf({ text, url }: Answer): PageForm[] {
  const outside = elements(text, 'button').filter(({ attribs }) => attribs['form'] !== undefined)
  return elements(text, 'form').map((form) => {
    const own = outside.filter(({ attribs }) => attribs['form'] === form.attribs['id'])
    const inputs = DomUtils.getElementsByTagName('input', form)
    const isSent = ({ attribs }: (typeof inputs)[number]) =>
      attribs['name'] !== undefined && attribs['type'] !== 'checkbox'
    return {
      method: form.attribs['method'] ?? 'get',
      action: new URL(form.attribs['action'] ?? '', url).href,
      fields: Object.fromEntries(
        inputs.filter(isSent).map(({ attribs }) => [attribs['name'] ?? '', attribs['value'] ?? '']),
      ),
      buttons: [...DomUtils.getElementsByTagName('button', form), ...own].map(({ attribs }) => ({
        name: attribs['name'] ?? '',
        value: attribs['value'] ?? '',
      })),
    }
  })
}

/** The fields of a form, but for the id that each form has of its own. */
export function withoutId(fields: Record<string, string>): Record<string, string> {
  const { form_id: _formId, ...others } = fields
  return others
}

/** Absolute addresses of the links of a page. */
export function linksOf({ text, url }: Answer): string[] {
  return elements(text, 'a').map(({ attribs }) => new URL(attribs['href'] ?? '', url).href)
}

/** Absolute addresses of what a page loads. */
export function assetsOf({ text, url }: Answer): string[] {
  const sheets = elements(text, 'link').map(({ attribs }) => attribs['href'])
  const others = ['script', 'img'].flatMap((tag) =>
    elements(text, tag).map(({ attribs }) => attribs['src']),
  )
  return [...sheets, ...others].flatMap((path) =>
    path === undefined ? [] : [new URL(path, url).href],
  )
}

/** Posts the form of a page whose action ends with `path`, as a person does who presses its button. */
export function press(
  agent: UserAgent,
  page: Answer,
  path: string,
  { typed = {}, button, headers = {} }: Pressed = {},
): Promise<Answer> {
  const isPressed = (each: { value: string }) => button === undefined || each.value === button
  const form = formsOf(page).find(
    ({ action, buttons }) => new URL(action).pathname.endsWith(path) && buttons.some(isPressed),
  )
  const pressed = form?.buttons.find(isPressed)
  if (!form || !pressed) {
    throw new Error(`no form to ${path} with the button ${button} on: ${page.text}`)
  }
  const unknown = Object.keys(typed).filter((name) => !(name in form.fields))
  if (unknown.length > 0) throw new Error(`no field ${unknown.join()} in the form to ${path}`)
  const sent = { ...form.fields, ...typed, ...(pressed.name && { [pressed.name]: pressed.value }) }
  return agent.post(form.action, sent, headers)
}

function elements(html: string, tag: string) {
  return DomUtils.getElementsByTagName(tag, parseDocument(html))
}

/** Whose page it is: the name above it, and the one below. */
export function namesAround({ text }: Answer): [header: string, footer: string] {
  const nameIn = (tag: string) => {
    const names = elements(text, tag).flatMap((part) => DomUtils.getElementsByTagName('bdi', part))
    return DomUtils.textContent(names)
  }
  return [nameIn('header'), nameIn('footer')]
}

/** One of our pages, in this mode, with this status. */
export function expectPage(answer: Answer, status: number, page: string, mode: string): void {
  const shown = [answer.status, answer.page, answer.mode]
  if (shown.join() === [status, page, mode].join()) return
  // The page is long, and is read where these three do not say enough.
  expect.fail(`expected ${[status, page, mode].join(' ')}, got ${shown.join(' ')}:\n${answer.text}`)
}

/** Our page that says to try again in a minute, and nothing besides. */
export function expectUnavailable(answer: Answer): void {
  expectPage(answer, 503, 'error', 'unavailable')
  expect(answer.headers.get('retry-after')).to.equal('60')
  expect(answer.headers.get('cache-control')).to.equal('no-store')
  expect(answer.headers.getSetCookie()).to.deep.equal([])
  expect(answer.location).to.equal(undefined)
}

/** `data-reason` of a page about a link that does nothing. */
export const reasonOf = ({ text }: Answer) => /data-reason="([^"]*)"/.exec(text)?.[1]
