import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { html, type Html } from './html.ts'
import type { Words } from './words.ts'

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>
type Grant = InstanceType<Provider['Grant']>

/**
 * The clients of the seed are first party: they get what they ask for, and nobody is asked. With `prompt=consent`, and for native
 * clients, whose redirect URIs any app on the device may claim, the user decides on the consent page first.
 */
export async function firstPartyGrant(ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
  const { provider, client, account, session, result, prompts } = ctx.oidc
  if (!client || !account) return undefined
  const grantId = result?.consent?.grantId ?? session?.grantIdFor(client.clientId)
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const isAsked = prompts.has('consent') || client.applicationType === 'native'
  if (isAsked) return known
  const { clientId } = client
  const grant = known ?? new provider.Grant({ clientId, accountId: account.accountId })
  grant.addOIDCScope(ctx.oidc.requestParamOIDCScopes)
  grant.addOIDCClaims(ctx.oidc.requestParamClaims)
  for (const [resource, { scopes }] of Object.entries(ctx.oidc.resourceServers ?? {})) {
    const asked = [...ctx.oidc.requestParamScopes].filter((scope) => scopes.has(scope))
    grant.addResourceScope(resource, asked)
  }
  await grant.save()
  return grant
}

export function consentContent({ uid, params }: Interaction, action: string) {
  const scope = params['scope']
  const scopes = typeof scope === 'string' ? scope.split(' ') : []
  return ({ has, t }: Words): Html => {
    const meaningOf = (each: string) =>
      has(`consent.scope.${each}`) ? t(`consent.scope.${each}`) : each
    return html`<ul>
        ${scopes.map((each) => html`<li>${meaningOf(each)}</li>`)}
      </ul>
      <form method="post" action="${action}">
        <input type="hidden" name="interaction" value="${uid}" />
        <button type="submit" name="decision" value="allow">${t('consent.allow')}</button>
        <button class="quiet" type="submit" name="decision" value="deny">
          ${t('consent.deny')}
        </button>
      </form>`
  }
}

/** Saves what the user allowed. */
export async function grantConsent(provider: Provider, interaction: Interaction): Promise<string> {
  const { params, prompt, session, grantId } = interaction
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const grant =
    known ??
    new provider.Grant({
      clientId: String(params['client_id']),
      ...(session && { accountId: session.accountId }),
    })
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details
  if (isTexts(missingOIDCScope)) grant.addOIDCScope(missingOIDCScope)
  if (isTexts(missingOIDCClaims)) grant.addOIDCClaims(missingOIDCClaims)
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    if (isTexts(scopes)) grant.addResourceScope(resource, scopes)
  }
  return grant.save()
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
