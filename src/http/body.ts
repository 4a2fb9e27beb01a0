import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'

export type BodyRefusal = 'unsupported_media_type' | 'body_too_large' | 'bad_request'

/** Either the text as it was sent, or what the host's own parser made of it. */
export type Body = { text: string } | { parsed: unknown }

/** koa-body would make up a third of the time to import the package. So `flows.start()` loads it. */
export const loadBodyReader = () => import('koa-body')

/**
 * Reads a body of one media type: at most 64 KiB of well-formed UTF-8. Compressed bodies are refused unread: no browser compresses a
 * form, and a broken one would throw in the decompressor, where no one catches.
 */
export async function readBody(ctx: Context, mediaType: string): Promise<Body | BodyRefusal> {
  const encoding = ctx.get('Content-Encoding')
  if (!ctx.is(mediaType) || !/^(identity)?$/i.test(encoding)) return 'unsupported_media_type'
  // First: between a look at the request and its reading, the client may break it.
  const { koaBody } = await loadBodyReader()
  // Only of a body that was read: some parsers set an empty object for one that they did not read.
  if (!ctx.req.readable) return { parsed: Reflect.get(ctx.req, 'body') ?? ctx.request.body }
  try {
    await koaBody(optionsFor(mediaType))(ctx, async () => {})
  } catch (error) {
    return refusalOf(error)
  }
  const text = decoded(ctx.request.body)
  return text === undefined ? 'bad_request' : { text }
}

// As text, because its form parser makes objects of `token[$gt]=`. As Latin-1, because as UTF-8 it would replace invalid bytes.
const optionsFor = (mediaType: string) => ({
  json: false,
  urlencoded: false,
  text: true,
  textTypes: [mediaType],
  textLimit: '64kb',
  encoding: 'latin1' as const,
  patchNode: false,
})

function decoded(read: unknown): string | undefined {
  const bytes = Buffer.from(typeof read === 'string' ? read : '', 'latin1')
  return isUtf8(bytes) ? bytes.toString() : undefined
}

function refusalOf(error: unknown): BodyRefusal {
  const status: unknown = error instanceof Error ? Reflect.get(error, 'status') : undefined
  if (status === 413) return 'body_too_large'
  if (typeof status === 'number' && status < 500) return 'bad_request'
  throw error
}
