import type { Context } from 'koa'
import { koaBody } from 'koa-body'

export type BodyRefusal = 'unsupported_media_type' | 'body_too_large' | 'bad_request'

/** Either the text as it was sent, or what the host's own parser made of it. */
export type Body = { text: string } | { parsed: unknown }

/** Reads a body of one media type and at most 64 KiB (D31). */
export async function readBody(ctx: Context, mediaType: string): Promise<Body | BodyRefusal> {
  if (!ctx.is(mediaType)) return 'unsupported_media_type'
  // Some parsers leave an empty object beside a body that they did not read.
  if (!ctx.req.readable) return { parsed: Reflect.get(ctx.req, 'body') ?? ctx.request.body }
  try {
    await readText(mediaType)(ctx, async () => {})
  } catch (error) {
    return refusalOf(error)
  }
  const text: unknown = ctx.request.body
  return { text: typeof text === 'string' ? text : '' }
}

// As text, because its own form parser makes objects of `token[$gt]=` and arrays of a repeated field.
function readText(mediaType: string) {
  return koaBody({
    json: false,
    urlencoded: false,
    text: true,
    textTypes: [mediaType],
    textLimit: '64kb',
    patchNode: false,
  })
}

function refusalOf(error: unknown): BodyRefusal {
  const status: unknown = error instanceof Error ? Reflect.get(error, 'status') : undefined
  if (status === 413) return 'body_too_large'
  if (status === 415) return 'unsupported_media_type'
  if (typeof status === 'number' && status < 500) return 'bad_request'
  throw error
}
