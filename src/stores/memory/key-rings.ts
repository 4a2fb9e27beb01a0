import type { KeyRings } from '../../ports/index.ts'

export function memoryKeyRings(now: () => Date): KeyRings {
  const rings = new Map<string, { keyIds: string[]; notedAt: Date }>()
  return {
    async note(processId, keyIds) {
      rings.delete(processId)
      if (keyIds.length > 0) rings.set(processId, { keyIds: [...keyIds], notedAt: now() })
    },

    async noted(withinMs) {
      const since = now().getTime() - withinMs
      return [...rings]
        .filter(([, { notedAt }]) => notedAt.getTime() > since)
        .map(([processId, { keyIds }]) => ({ processId, keyIds: [...keyIds] }))
    },
  }
}
