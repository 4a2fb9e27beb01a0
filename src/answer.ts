/** Reads answers of other servers: no more than is wanted, and of a failure only a code. */

/** The body as text. `undefined`: it has more than `maxBytes`, and the rest was not read. */
export async function textOf(
  { body }: { body: AsyncIterable<Uint8Array> | null },
  maxBytes: number,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** `undefined`: the text is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Why there was no answer: a code alone, because messages may quote what was sent. */
export function reachCodeOf(error: unknown, otherwise = 'not reached'): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code: unknown = Reflect.get(cause, 'code')
    if (typeof code === 'string' && /^\w{1,40}$/.test(code)) return code
  }
  return otherwise
}
