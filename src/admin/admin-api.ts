/** The admin API (4.5, 5): operations for admins and the command line. It knows flows and stores, but no database, mail server or provider. */
import { createMount, type Mount } from '../http/mount.ts'
import type { AdminParts } from './operation.ts'
import type { createAdminRouter } from './router.ts'

/** `flows.start()` or the first request loads its operations. So the package is imported faster. */
export function createAdminApi(parts: AdminParts, root: string): Mount {
  let router: Promise<ReturnType<typeof createAdminRouter>> | undefined
  const message = 'an admin request ended before its answer was sent'
  return createMount(
    (path) => path.startsWith(`${root}/`),
    async (ctx, path) => {
      router ??= import('./router.ts').then(({ createAdminRouter }) => createAdminRouter(parts))
      const answer = await router
      await answer(ctx, path.slice(root.length))
    },
    (error) => parts.log('warn', message, { error: String(error) }),
  )
}
