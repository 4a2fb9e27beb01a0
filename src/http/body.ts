import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'

const MAX_BYTES = 65_536

export type BodyRefusal = 'unsupported_media_type' | 'body_too_large' | 'bad_request'

/** Either the text as it was sent, or what the host's own parser made of it. */
export type Body = { text: string } | { parsed: unknown }

/**
 * Reads a body of one media type, at most 64 KiB of well-formed UTF-8. Compressed bodies are refused unread: nobody
 * compresses a form, and a broken one would fail in the decompressor after the limit was reached, where nobody listens.
 */
export async function readBody(ctx: Context, mediaType: string): Promise<Body | BodyRefusal> {
  const encoding = ctx.get('Content-Encoding')
  if (!ctx.is(mediaType) || !/^(identity)?$/i.test(encoding)) return 'unsupported_media_type'
  // Some parsers leave an empty object beside a body that they did not read.
  if (!ctx.req.readable)
    return { parsed: Reflect.get(ctx.req, 'body') ?? Reflect.get(ctx.request, 'body') }
  const bytes = await readBytes(ctx.req)
  if (typeof bytes === 'string') return bytes
  const text = decoded(bytes)
  return text === undefined ? 'bad_request' : { text }
}

/** Where there is more, the rest is left unread: the answer does not wait for it. */
async function readBytes(req: IncomingMessage): Promise<Buffer | BodyRefusal> {
  if (Number(req.headers['content-length']) > MAX_BYTES) return 'body_too_large'
  const chunks: Buffer[] = []
  let length = 0
  try {
    // Otherwise the connection is closed before it is answered.
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      const bytes = Buffer.from(chunk)
      length += bytes.length
      if (length > MAX_BYTES) return 'body_too_large'
      chunks.push(bytes)
    }
  } catch {
    // The client broke it, or hung up.
    return 'bad_request'
  }
  return Buffer.concat(chunks)
}

function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
