import { createMount, type Mount } from './mount.ts'

const PATH = '/.well-known/change-password'

/** @param formUrl - the address of the form that asks for a reset link. */
export function createWellKnown(formUrl: string): Mount {
  return createMount(
    (path, method) => path === PATH && (method === 'GET' || method === 'HEAD'),
    async (ctx) => {
      ctx.status = 302
      ctx.set({ Location: formUrl, 'Cache-Control': 'no-store' })
      ctx.body = ''
    },
    // A browser that broke the connection off needs no redirect.
    () => {},
  )
}
