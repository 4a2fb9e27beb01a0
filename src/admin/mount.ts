import { createMount, type Mount } from '../http/mount.ts'
import { createAdminAuth } from './authentication.ts'
import type { AdminParts } from './parts.ts'
import type { AdminRouter } from './router.ts'

/**
 * The admin API (4.5, 5). Its operations are loaded with the first request: most processes never get one.
 *
 * @param root - path below which it answers: that of the base URL plus `adminPath`.
 */
export function createAdminApi(parts: AdminParts, root: string): Mount {
  const authenticate = createAdminAuth(parts)
  let loading: Promise<AdminRouter> | undefined

  async function load(): Promise<AdminRouter> {
    const { createAdminRouter } = await import('./router.ts')
    return createAdminRouter(parts, authenticate)
  }

  return createMount(
    (path) => path.startsWith(`${root}/`),
    async (ctx, path) => {
      loading ??= load()
      const answer = await loading
      await answer(ctx, path.slice(root.length))
    },
    (error) => parts.log('warn', 'an admin request broke off', { error: String(error) }),
  )
}
