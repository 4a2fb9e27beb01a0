import { createBrowser, type Browser, type Answer } from '../support/user-agent.ts'
import { eventually } from '../support/eventually.ts'
import { startExampleServer } from '../support/example-server.ts'

/** The pages of the example server, each as somebody comes to it who reads one language. */
export interface ExamplePages extends Awaited<ReturnType<typeof startExamplePages>> {}

export type ExamplePage = keyof typeof WAYS

interface Visitor extends Pick<Browser, 'visit'> {
  /** Begins a sign-in and types a password. */
  signIn(begin: string, password?: string): Promise<Answer>
  send(path: string, form: Record<string, string>, headers?: object): Promise<Answer>
}

const authorization = (more: Record<string, string> = {}) =>
  `/oauth2/auth?${new URLSearchParams({
    response_type: 'code',
    client_id: 'demo',
    scope: 'openid profile email offline_access',
    prompt: 'consent',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    ...more,
  })}`

const WAYS = {
  'mailbox.empty': ({ visit }) => visit('/mailbox'),
  home: ({ visit }) => visit('/'),
  'login.form': ({ visit }) => visit(authorization()),
  'login.refused': ({ signIn }) => signIn(authorization(), 'wrong'),
  'login.start_again': ({ visit }) => visit('/oauth2/login'),
  'login.newer_tab': async ({ visit }) => {
    const older = await visit(authorization())
    await visit(authorization())
    return visit(older.url)
  },
  consent: ({ signIn }) => signIn(authorization()),
  'demo.signed_in': ({ signIn }) => signIn('/demo/start'),
  'demo.other_browser': ({ visit }) => visit('/demo/callback?code=c'),
  'change-password.signed_out': ({ visit }) => visit('/change-password'),
  'change-password.form': async ({ signIn, visit }) => {
    await signIn('/demo/start')
    return visit('/change-password')
  },
  'change-password.wrong': async ({ signIn, send }) => {
    await signIn('/demo/start')
    return send('/change-password', { current_password: 'wrong' })
  },
  logout: async ({ signIn, visit }) => {
    await signIn('/demo/start')
    return visit('/oauth2/session/end')
  },
  'logout.done': ({ visit }) => visit('/oauth2/session/end/success'),
  device: ({ visit }) => visit('/oauth2/device'),
  'device.refused': async ({ visit, send }) => {
    const { hidden } = await visit('/oauth2/device')
    return send('/oauth2/device', { ...hidden, user_code: 'WRONG' })
  },
  'error.not_found': ({ visit }) => visit('/nothing'),
  'error.refused': ({ send }) => send('/oauth2/login', {}, { 'sec-fetch-site': 'cross-site' }),
  'error.invalid_request': ({ visit }) =>
    visit(authorization({ redirect_uri: 'https://other.example/' })),
  'mailbox.mails': async ({ visit, send }) => {
    const inTheMailbox = async () => {
      const page = await visit('/mailbox')
      return page.mode === 'mails' ? page : undefined
    }
    const page = await inTheMailbox()
    if (page) return page
    await send('/oauth2/forgot-password', { identifier: 'alice' })
    return eventually('the mail is there', inTheMailbox)
  },
} satisfies Record<string, (visitor: Visitor) => Promise<Answer>>

/** Of a network of its own, as wrong passwords are counted by network. */
function visitor(baseUrl: string, locale: string, at: number): Visitor {
  const browser = createBrowser(baseUrl)
  const headers = { 'accept-language': locale, 'x-forwarded-for': `198.51.100.${at}` }
  const visit = (path: string) => browser.visit(path, headers)
  const send: Visitor['send'] = async (path, form, more) => {
    const answer = await browser.postForm(path, form, { ...headers, ...more })
    return answer.location === undefined ? answer : visit(answer.location)
  }
  return {
    visit,
    send,
    async signIn(begin, password = 'alice-password') {
      const { hidden } = await visit(begin)
      return send('/oauth2/login', { ...hidden, username: 'alice', password })
    },
  }
}

/** @param locales - of the pages that are asked for later. All are made now, while no mail is there, and then while one is. */
export async function startExamplePages(locales: readonly string[]) {
  const server = await startExampleServer({ TRUST_PROXY: '1' })
  const ids = Object.keys(WAYS) as ExamplePage[]
  const made = new Map<string, string>()
  for (const id of ids) {
    const make = async (locale: string) => {
      const { text } = await WAYS[id](visitor(server.baseUrl, locale, locales.indexOf(locale)))
      made.set(`${id} ${locale}`, text)
    }
    const [first = '', ...others] = locales
    await make(first)
    await Promise.all(others.map(make))
  }
  return {
    origin: server.baseUrl,
    ids,
    htmlOf: (id: ExamplePage, locale: string) => made.get(`${id} ${locale}`) ?? '',
    close: server.kill,
  }
}
