import type { Configuration, KoaContextWithOIDC } from 'oidc-provider'
import { displayName, html, inEnglish, trusted, type Html } from './html.ts'
import type { ShowPage } from './page.ts'

type Features = NonNullable<Configuration['features']>

/** The pages that the provider shows by itself, in the look of the others. */
export function providerPages(show: ShowPage) {
  const logout = {
    logoutSource(ctx: KoaContextWithOIDC, form: string) {
      show(ctx, {
        name: 'logout',
        formMayLeadTo: ctx.oidc.params?.['post_logout_redirect_uri'],
        content: ({ t }) =>
          html`${trusted(form)}
            <button type="submit" form="op.logoutForm" name="logout" value="yes">
              ${t('logout.submit')}
            </button>
            <button class="quiet" type="submit" form="op.logoutForm">${t('logout.stay')}</button>`,
      })
    },

    postLogoutSuccessSource: (ctx: KoaContextWithOIDC) =>
      show(ctx, { name: 'logout', mode: 'done' }),
  } satisfies Features['rpInitiatedLogout']

  const deviceFlow = {
    userCodeInputSource(ctx: KoaContextWithOIDC, form: string, _out?: unknown, error?: Error) {
      show(ctx, {
        name: 'device',
        mode: error ? 'refused' : 'form',
        content: ({ t }) =>
          html`${named(form, t('device.lead'))}
            <button type="submit" form="op.deviceInputForm">${t('device.submit')}</button>`,
      })
    },

    userCodeConfirmSource(ctx: KoaContextWithOIDC, form: string, client, _device, code: string) {
      show(ctx, {
        name: 'device',
        mode: 'confirm',
        values: { code, client: displayName(client.clientName ?? client.clientId) },
        content: ({ t }) =>
          html`${trusted(form)}
            <button type="submit" form="op.deviceConfirmForm">${t('device.confirm.submit')}</button>
            <button
              class="quiet"
              type="submit"
              form="op.deviceConfirmForm"
              name="abort"
              value="yes"
            >
              ${t('device.confirm.abort')}
            </button>`,
      })
    },

    successSource: (ctx: KoaContextWithOIDC) => show(ctx, { name: 'device', mode: 'done' }),
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
        uiLocales: ctx.oidc?.params?.['ui_locales'],
        content: ({ t }) =>
          html`${inEnglish(error_description ?? error)}
            <p class="note">${t('error.back')}</p>`,
      })
    },
  }
}

/** The provider's field selects its text by a script, which the policy of the page would only complain about, and has no name. */
function named(form: string, label: string): Html {
  const attribute = html` aria-label="${label}"`.html
  return trusted(
    form.replace(/ onfocus="[^"]*"/, '').replace(/ placeholder="[^"]*"/, () => attribute),
  )
}
