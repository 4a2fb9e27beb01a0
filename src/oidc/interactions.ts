import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { CapturedRequest, LoginResult } from '../store/index.ts'
import { defined } from '../store/kind.ts'

export type Interactions = ReturnType<typeof createInteractions>

/** The login prompt that this browser is at, by its cookie. Without one, oidc-provider throws `SessionNotFound`. */
export function createInteractions(provider: () => Provider) {
  return {
    /** What of the authorization request is needed to resume it later, without the login. */
    async capture(
      req: IncomingMessage,
      res: ServerResponse,
    ): Promise<Omit<CapturedRequest, 'login'>> {
      const interaction = await provider().interactionDetails(req, res)
      const { params, prompt, trusted, cid, deviceCode, lastSubmission } = interaction
      const { parJti }: { parJti?: string } = Object(interaction)
      const rest = defined({ trusted, deviceCode, lastSubmission, parJti })
      return { params, prompt, cid, ...rest }
    },

    /** Answers with the redirect that goes on with the authorization request. */
    finish: (req: IncomingMessage, res: ServerResponse, login: LoginResult) =>
      provider().interactionFinished(req, res, { login: { ...login } }),

    /** The address of that redirect. Nothing is answered. */
    redirectUrl: (req: IncomingMessage, res: ServerResponse, login: LoginResult) =>
      provider().interactionResult(req, res, { login: { ...login } }),
  }
}
