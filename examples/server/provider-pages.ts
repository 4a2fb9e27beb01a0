import type { Configuration, KoaContextWithOIDC } from 'oidc-provider'
import { displayName, html, trusted } from './html.ts'
import type { ShowPage } from './page.ts'

type Features = NonNullable<Configuration['features']>

/** The pages that the provider shows by itself, in the look of the others. */
export function providerPages(show: ShowPage) {
  const logout = {
    logoutSource(ctx: KoaContextWithOIDC, form: string) {
      show(ctx, {
        name: 'logout',
        title: 'Sign out?',
        formMayLeadTo: ctx.oidc.params?.['post_logout_redirect_uri'],
        content: html`${trusted(form)}
          <button type="submit" form="op.logoutForm" name="logout" value="yes">Sign out</button>
          <button class="quiet" type="submit" form="op.logoutForm">Stay signed in</button>`,
      })
    },

    postLogoutSuccessSource(ctx: KoaContextWithOIDC) {
      const content = html`<p>You can close this page.</p>`
      show(ctx, { name: 'logout', mode: 'done', title: 'You are signed out', content })
    },
  } satisfies Features['rpInitiatedLogout']

  const deviceFlow = {
    userCodeInputSource(ctx: KoaContextWithOIDC, form: string, _out?: unknown, error?: Error) {
      show(ctx, {
        name: 'device',
        mode: error ? 'refused' : 'form',
        title: 'Sign in on a device',
        content: html`<p>
            ${error ? 'That did not work. ' : undefined}Type the code that the device shows.
          </p>
          ${trusted(withoutScript(form))}
          <button type="submit" form="op.deviceInputForm">Continue</button>`,
      })
    },

    userCodeConfirmSource(ctx: KoaContextWithOIDC, form: string, client, _device, code: string) {
      show(ctx, {
        name: 'device',
        mode: 'confirm',
        title: `Does your device show ${code}?`,
        content: html`<p>
            ${displayName(client.clientName ?? client.clientId)} wants to sign you in there.
          </p>
          ${trusted(form)}
          <button type="submit" form="op.deviceConfirmForm">Yes, continue</button>
          <button class="quiet" type="submit" form="op.deviceConfirmForm" name="abort" value="yes">
            No, stop
          </button>`,
      })
    },

    successSource(ctx: KoaContextWithOIDC) {
      const content = html`<p>You can close this page.</p>`
      show(ctx, { name: 'device', mode: 'done', title: 'The device is signed in', content })
    },
  } satisfies Features['deviceFlow']

  return {
    logout,
    deviceFlow,

    renderError(
      ctx: KoaContextWithOIDC,
      { error, error_description }: { error: string; error_description?: string | undefined },
    ) {
      show(ctx, {
        name: 'error',
        mode: error,
        title: 'This did not work',
        content: html`<p>${error_description ?? error}</p>
          <p class="note">Go back to the app and try again.</p>`,
      })
    },
  }
}

/** The provider's field selects its text by a script, which the policy of the page would only complain about. */
function withoutScript(form: string): string {
  return form.replace(/ onfocus="[^"]*"/, '')
}
