import type { Context } from 'koa'
import { html } from './html.ts'
import type { Paths, ShowPage } from './page.ts'
import type { Route } from './routes.ts'

/** Of the users in `examples/seed.json`, which itself holds their hashes only. */
const DEMO_USERS = [
  { username: 'alice', password: 'alice-password', about: 'her address is verified' },
  { username: 'bob', password: 'bob-password', about: 'his address is not verified' },
  { username: 'carol', password: 'carol-password', about: 'her address is verified' },
]

export interface HomePageParts {
  baseUrl: string
  /** Whether the shipped users are there, and nobody but a developer looks. */
  isDemo: boolean
  hasMailbox: boolean
  show: ShowPage
  paths: Paths
}

export function homePage({ baseUrl, isDemo, hasMailbox, show, paths }: HomePageParts) {
  const users = html`<h2>Users</h2>
    <table>
      <thead>
        <tr>
          <th scope="col">Username</th>
          <th scope="col">Password</th>
          <th scope="col"></th>
        </tr>
      </thead>
      <tbody>
        ${DEMO_USERS.map(
          ({ username, password, about }) =>
            html`<tr>
              <td>${username}</td>
              <td><code>${password}</code></td>
              <td>${about}</td>
            </tr>`,
        )}
      </tbody>
    </table>`

  const setting = '{"require_email_verification":"true"}'
  const toTry = html`<h2>What to try</h2>
    <ol>
      <li>
        <a href="${paths.oauth}/forgot-password">Forget a password</a>: ask for a link for alice,
        follow it from the mailbox, and sign in with the new password. All of her sessions have
        ended.
      </li>
      <li>
        Sign in as bob: the login is held back until he follows the link in the mailbox, in any
        browser. The window that waits goes on by itself.
      </li>
    </ol>
    <p class="note">
      If bob gets straight in, verification is not required here, as is the default. An admin
      requires it with
    </p>
    <pre>
curl -X PUT ${baseUrl}/admin/api/settings \\
  -H "Authorization: Bearer $ADMIN_TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '${setting}'</pre>`

  function get(ctx: Context) {
    show(ctx, {
      name: 'home',
      title: 'oidc-account-flows',
      content: html`<p>
          A node-oidc-provider with password reset and e-mail verification, a login page, a client
          to sign in to, and a mailbox.
        </p>
        <p><a class="button" href="${paths.base}/demo/start">Sign in with the demo client</a></p>
        ${hasMailbox ? html`<p><a href="${paths.base}/mailbox">Mailbox</a></p>` : undefined}
        ${isDemo ? users : undefined} ${isDemo ? toTry : undefined}`,
    })
  }

  return { [`${paths.base}/`]: { get } } satisfies Record<string, Route>
}
