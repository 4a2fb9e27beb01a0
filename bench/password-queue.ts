import { readFileSync } from 'node:fs'
import { createBrowser, createUserAgent } from '../test/support/user-agent.ts'
import { eventually } from '../test/support/eventually.ts'
import { forgot } from '../test/support/example-server.ts'
import { middle } from './middle.ts'
import { PASSWORD, startSeeded } from './seeded.ts'

/** What resets take from others in the same process of the example: a login beside many posts of one link, a page beside many resets. */

const COST = 12
const LOGINS = 5
const POSTS = 60
const RESETS = 32

const { clients } = JSON.parse(
  readFileSync(new URL('../examples/seed.json', import.meta.url), 'utf8'),
) as { clients: object[] }
const { server, users, close } = await startSeeded(
  { people: 1 + LOGINS + RESETS, cost: COST, clients },
  { BCRYPT_COST: String(COST), TRUST_PROXY: '1' },
)
const [honest = '', ...others] = users.map(({ username }) => username)

async function linkOf(username: string): Promise<string> {
  await forgot(server, username)
  return eventually(`the mail to ${username}`, async () => {
    const mails = await fetch(`${server.baseUrl}/mailbox`, {
      headers: { accept: 'application/json' },
    })
    const all = (await mails.json()) as { to: string; text: string }[]
    const mail = all.find(({ to }) => to === `${username}@example.com`)
    return mail && /https?:\/\/\S+/.exec(mail.text)?.[0]
  })
}

let networks = 0

/** From a network of its own, because few wait of each. */
function reset(link: string, password: string) {
  const token = new URL(link).searchParams.get('token') ?? ''
  const form = { token, password, confirm_password: password }
  networks += 1
  const headers = { 'x-forwarded-for': `2001:db8:0:${networks.toString(16)}::1` }
  return createUserAgent().post(`${server.baseUrl}/oauth2/reset-password`, form, headers)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

/** The login form alone, posted with the right password while `beside` is under way. */
async function login(beside: () => Promise<unknown>[]): Promise<number> {
  const browser = createBrowser(server.baseUrl)
  const { hidden } = await browser.visit('/demo/start')
  const form = { ...hidden, username: honest, password: PASSWORD }
  const meanwhile = beside()
  const took = await timed(async () => {
    const { status } = await browser.postForm('/oauth2/login', form)
    if (status >= 400) throw new Error(`the login was answered ${status}`)
  })
  await Promise.all(meanwhile)
  return took
}

const openForm = () =>
  timed(() => createUserAgent().get(`${server.baseUrl}/oauth2/forgot-password`))

function report(what: string, alone: number[], beside: number[]) {
  const [one, other] = [middle(alone), middle(beside)]
  const ratio = (other / one).toFixed(1)
  console.log(`${what}: ${one.toFixed(1)} ms; ${other.toFixed(1)} ms; ratio ${ratio}`)
}

await login(() => [])
const alone: number[] = []
const besidePosts: number[] = []
for (const username of others.slice(0, LOGINS)) {
  alone.push(await login(() => []))
  const link = await linkOf(username)
  const posts = () => Array.from({ length: POSTS }, (_none, i) => reset(link, `${PASSWORD} ${i}`))
  besidePosts.push(await login(posts))
}
report(`a login, alone and beside ${POSTS} posts of one reset link`, alone, besidePosts)

const links: string[] = []
for (const username of others.slice(LOGINS)) links.push(await linkOf(username))
for (let warmUp = 0; warmUp < 5_000; warmUp += 1) await openForm()
const quiet: number[] = []
while (quiet.length < 2_000) quiet.push(await openForm())
let isOver = false
const resets = Promise.all(links.map((link) => reset(link, `${PASSWORD} too`))).finally(() => {
  isOver = true
})
const busy: number[] = []
while (!isOver) busy.push(await openForm())
const done = (await resets).filter(({ mode }) => mode === 'done').length
report(`GET forgot-password, alone and beside ${RESETS} resets (${done} done)`, quiet, busy)
await close()
