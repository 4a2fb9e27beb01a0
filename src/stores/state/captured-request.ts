import type { CapturedRequest } from '../../ports/index.ts'

/** `undefined`: the record was damaged. */
export function parseCapturedRequest(json: string): CapturedRequest | undefined {
  try {
    const captured: unknown = JSON.parse(json)
    return isCapturedRequest(captured) ? captured : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** What a wrong login would be made of is looked at; the rest the provider checks again when it resumes. */
function isCapturedRequest(value: unknown): value is CapturedRequest {
  if (!isObject(value) || !isObject(value['params']) || !isObject(value['login'])) return false
  const { accountId, ts } = value['login']
  return typeof accountId === 'string' && typeof ts === 'number'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
