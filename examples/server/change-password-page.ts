import bcrypt from 'bcrypt'
import type { Context } from 'koa'
import type { Provider } from 'oidc-provider'
import type { AccountFlows, UserStore } from '../../src/index.ts'
import { html, type Html } from './html.ts'
import type { Paths, ShowPage } from './page.ts'
import { readForm, type Route } from './requests.ts'
import type { Words } from './words.ts'

export interface ChangePasswordParts {
  flows: Pick<
    AccountFlows,
    'limitLogin' | 'verifyPassword' | 'validatePassword' | 'passwordChanged'
  >
  provider: Provider
  users: UserStore
  bcryptCost: number
  show: ShowPage
  paths: Paths
}

/** Whoever is signed in changes the password here, and stays signed in. Another site can post nothing: it lacks the current password. */
export function changePasswordPage(parts: ChangePasswordParts) {
  const { flows, provider, users, bcryptCost, show, paths } = parts
  const path = `${paths.base}/change-password`

  async function signedIn(ctx: Context) {
    const { accountId } = await provider.Session.get(ctx)
    const user = accountId === undefined ? undefined : await users.findById(accountId)
    if (user?.passwordHash !== undefined && !user.disabled) return user
    ctx.status = 403
    const content = ({ t }: Words) =>
      html`<p><a class="button" href="${paths.base}/demo/start">${t('home.start')}</a></p>`
    show(ctx, { name: 'change-password', mode: 'signed_out', content })
    return undefined
  }

  function showForm(ctx: Context, username: string, mode = 'form') {
    ctx.status = mode === 'form' ? 200 : 400
    const content = (words: Words) => passwordForm(path, username, words)
    show(ctx, { name: 'change-password', mode, like: 'reset-password', content })
  }

  async function get(ctx: Context) {
    const user = await signedIn(ctx)
    if (user) showForm(ctx, user.username)
  }

  async function post(ctx: Context) {
    const field = await readForm(ctx)
    const user = await signedIn(ctx)
    if (!user) return
    const { id, username, passwordHash = '' } = user
    const password = field('password') ?? ''
    const waitSeconds = await flows.limitLogin(ctx.req, username)
    if (waitSeconds !== undefined) {
      ctx.set('Retry-After', `${waitSeconds}`)
      ctx.throw(429)
    }
    if (!(await flows.verifyPassword(user, field('current_password') ?? '', ctx.req)))
      return showForm(ctx, username, 'wrong')
    if (password !== field('confirm_password')) return showForm(ctx, username, 'password_mismatch')
    const refused = await flows.validatePassword(password, user)
    if (refused) return showForm(ctx, username, refused.refusal)
    const isReplaced = await users.replacePasswordHash(
      id,
      passwordHash,
      await bcrypt.hash(password, bcryptCost),
    )
    // Somebody set another one just now, by a mailed link for example.
    if (!isReplaced) return showForm(ctx, username, 'wrong')
    await flows.passwordChanged(id, { req: ctx.req, res: ctx.res })
    show(ctx, { name: 'change-password', mode: 'done' })
  }

  return { [path]: { get, post } } satisfies Record<string, Route>
}

function passwordForm(path: string, username: string, { t }: Words): Html {
  const field = (name: string, label: string, autocomplete: string) =>
    html`<label for="${name}">${label}</label>
      <input id="${name}" type="password" name="${name}" autocomplete="${autocomplete}" required />`
  // A password manager needs the name to save the new password with.
  return html`<form method="post" action="${path}">
    <input type="hidden" name="username" value="${username}" autocomplete="username" />
    ${field('current_password', t('change-password.current'), 'current-password')}
    ${field('password', t('reset-password.password'), 'new-password')}
    ${field('confirm_password', t('reset-password.confirm_password'), 'new-password')}
    <button type="submit">${t('reset-password.submit')}</button>
  </form>`
}
