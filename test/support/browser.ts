import { createUserAgent, type Answer, type Form } from './user-agent.ts'

/** A browser without scripts at one server: paths instead of addresses, cookies by path, redirects only when asked to. */
export interface Browser {
  /** Follows no redirect. */
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Follows no redirect. */
  postForm(path: string, form: Form, headers?: Record<string, string>): Promise<Answer>
  /** Follows redirects within the server; answers the first page, or the first redirect that leads elsewhere. */
  visit(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Posts, then follows likewise. */
  submit(path: string, form: Form, headers?: Record<string, string>): Promise<Answer>
}

export function createBrowser(baseUrl: string): Browser {
  const agent = createUserAgent()
  const base = new URL(baseUrl)
  const urlOf = (path: string) => new URL(path, base)

  async function followed(first: Answer, headers = {}): Promise<Answer> {
    let answer = first
    while (answer.location !== undefined && urlOf(answer.location).origin === base.origin) {
      answer = await agent.get(answer.location, headers)
    }
    return answer
  }

  const get: Browser['get'] = (path, headers) => agent.get(urlOf(path), headers)
  const postForm: Browser['postForm'] = (path, form, headers) =>
    agent.post(urlOf(path), form, headers)

  return {
    get,
    postForm,
    visit: async (path, headers) => followed(await get(path, headers), headers),
    submit: async (path, form, headers) => followed(await postForm(path, form, headers)),
  }
}
