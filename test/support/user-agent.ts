/** A browser without scripts: keeps cookies by name, path and expiry, and follows no redirect by itself. */
export interface UserAgent {
  get(url: string | URL, headers?: Record<string, string>): Promise<Answer>
  post(url: string | URL, form: Form, headers?: Record<string, string>): Promise<Answer>
  request(method: string, url: string | URL, init?: RequestInit): Promise<Answer>
  /** Names and values of the cookies that a request to this address would carry. */
  cookiesFor(url: string | URL): string
  forget(): void
}

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

export function createUserAgent(): UserAgent {
  let jar: Cookie[] = []

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
    const response = await fetch(url, { ...init, method, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) keep(line)
    return answerOf(response, String(url))
  }

  return {
    request,
    cookiesFor,
    get: (url, headers = {}) => request('GET', url, { headers }),
    post: (url, form, headers = {}) =>
      request('POST', url, {
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
      }),
    forget() {
      jar = []
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
    page: /data-page="([^"]*)"/.exec(text)?.[1],
    mode: /data-mode="([^"]*)"/.exec(text)?.[1],
    hidden: hiddenFields(text),
    url,
  }
}

function hiddenFields(html: string): Record<string, string> {
  const fields: Record<string, string> = {}
  for (const [tag] of html.matchAll(/<input[^>]*type="hidden"[^>]*>/g)) {
    const name = /name="([^"]*)"/.exec(tag)?.[1]
    const value = /value="([^"]*)"/.exec(tag)?.[1]
    if (name !== undefined) fields[name] = decodeEntities(value ?? '')
  }
  return fields
}

export function decodeEntities(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}
