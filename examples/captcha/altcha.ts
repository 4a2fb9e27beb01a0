import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createChallenge, randomInt, verifySolution, type Payload } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import type { AccountFlowsOptions } from '../../src/index.ts'

const LIFETIME_MS = 20 * 60_000
const MAX_USED = 100_000

/** Runs in the browser: loads the widget, in all languages, and hands it its worker. */
const START = `
import '/captcha/altcha.js'
import '/captcha/i18n.js'
$altcha.algorithms.set('PBKDF2/SHA-256', () => new Worker('/captcha/worker.js'))
`

const WIDGET = `
<link rel="stylesheet" href="/captcha/altcha.css">
<script type="module" src="/captcha/start.js"></script>
<altcha-widget challenge="/captcha/challenge"></altcha-widget>`

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown

/**
 * ALTCHA shows no pictures: the browser works for a second or two, which costs a robot more than a person. Everything comes from this
 * origin, so our policy needs no other source. `options` are for `createAccountFlows`; `around` serves the widget in front of a host.
 */
export function createAltcha() {
  // For one process. Several share the secrets, and keep what was used in their database.
  const secrets = {
    hmacSignatureSecret: randomBytes(32).toString('hex'),
    hmacKeySignatureSecret: randomBytes(32).toString('hex'),
  }
  const used = new Map<string, number>()

  /** Looks and marks in one step: of two posts at once, one is first. Where too many are marked, nobody is. */
  function isFirstUse(signature: string): boolean {
    const now = Date.now()
    for (const [each, until] of used) if (until < now) used.delete(each)
    if (used.has(signature) || used.size >= MAX_USED) return false
    used.set(signature, now + LIFETIME_MS)
    return true
  }

  async function isSolved(answer: string): Promise<boolean> {
    try {
      const payload: Payload = JSON.parse(Buffer.from(answer, 'base64').toString())
      const { verified } = await verifySolution({ ...payload, ...secrets, deriveKey })
      return verified && isFirstUse(String(payload.challenge.signature))
    } catch {
      // Whatever was posted: it is no solution.
      return false
    }
  }

  const challenge = () =>
    createChallenge({
      algorithm: 'PBKDF2/SHA-256',
      cost: 5_000,
      // As many hashes as it takes: from 500 to 1,500.
      counter: randomInt(1_500, 500),
      expiresAt: new Date(Date.now() + LIFETIME_MS),
      deriveKey,
      ...secrets,
    })

  const served: Record<string, [type: string, content: () => Promise<string | Buffer>]> = {
    '/captcha/start.js': ['text/javascript', async () => START],
    '/captcha/altcha.js': ['text/javascript', () => fileOf('altcha/external')],
    '/captcha/i18n.js': ['text/javascript', () => fileOf('altcha/i18n/all')],
    '/captcha/worker.js': ['text/javascript', () => fileOf('altcha/workers/pbkdf2')],
    '/captcha/altcha.css': ['text/css', () => fileOf('altcha/altcha.css')],
    '/captcha/challenge': ['application/json', async () => JSON.stringify(await challenge())],
  }

  return {
    options: {
      captcha: { html: WIDGET },
      beforeForgotPassword: async ({ fields }) =>
        (await isSolved(fields.get('altcha') ?? '')) ? 'allow' : 'deny',
    } satisfies Partial<AccountFlowsOptions>,

    around:
      (host: Listener): Listener =>
      async (req, res) => {
        const [type, content] = served[req.url ?? ''] ?? []
        if (!type || !content) return host(req, res)
        res.setHeader('Cache-Control', 'no-store')
        return res.setHeader('Content-Type', type).end(await content())
      },
  }
}

const fileOf = (name: string) => readFile(new URL(import.meta.resolve(name)))
