import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { CapturedRequest, LoginResult } from '../ports/index.ts'

export type Interactions = ReturnType<typeof createInteractions>

/** The login prompt that the browser is in; found by its cookie. oidc-provider throws `SessionNotFound` where there is none. */
export function createInteractions(provider: () => Provider) {
  // As `interactionResult`, which would wait for the login before it looks for the interaction.
  async function result(req: IncomingMessage, res: ServerResponse, dating: Promise<LoginResult>) {
    const [interaction, login] = await Promise.all([
      provider().interactionDetails(req, res),
      dating,
    ])
    interaction.result = { ...interaction.lastSubmission, login: { ...login } }
    await interaction.persist()
    return interaction.returnTo
  }

  return {
    /** Everything of the authorization request that a later resumption needs, beside the login it waits for. */
    async capture(
      req: IncomingMessage,
      res: ServerResponse,
    ): Promise<Omit<CapturedRequest, 'login'>> {
      const interaction = await provider().interactionDetails(req, res)
      const { params, prompt, trusted, cid, deviceCode, lastSubmission } = interaction
      const parJti = 'parJti' in interaction ? interaction.parJti : undefined
      return {
        params,
        prompt,
        cid,
        ...(trusted && { trusted }),
        ...(deviceCode !== undefined && { deviceCode }),
        ...(lastSubmission && { lastSubmission }),
        ...(typeof parJti === 'string' && { parJti }),
      }
    },

    /** Answers with the redirect that goes on with the authorization request, once it is known how the login is dated. */
    async finish(req: IncomingMessage, res: ServerResponse, login: Promise<LoginResult>) {
      const location = await result(req, res, login)
      res.writeHead(303, { Location: location, 'Content-Length': 0 }).end()
    },

    /** Where that redirect would lead, without answering. */
    result,
  }
}
