import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { CapturedRequest, LoginResult } from '../ports/index.ts'
import { defined } from '../records/kind.ts'

export type Interactions = ReturnType<typeof createInteractions>

/** The login prompt that the browser is in; found by its cookie. oidc-provider throws `SessionNotFound` where there is none. */
export function createInteractions(provider: () => Provider) {
  return {
    /** Everything of the authorization request that a later resumption needs, beside the login it waits for. */
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
    finish: async (req: IncomingMessage, res: ServerResponse, login: Promise<LoginResult>) =>
      provider().interactionFinished(req, res, { login: { ...(await login) } }),

    /** Where that redirect would lead, without answering. */
    result: async (req: IncomingMessage, res: ServerResponse, login: Promise<LoginResult>) =>
      provider().interactionResult(req, res, { login: { ...(await login) } }),
  }
}
