/** Records of oidc-provider, all models in one place: what an account or a grant has is found by one look. */
import type {
  ProviderRecord,
  ProviderRecordField,
  ProviderRecords,
} from '../ports/provider-records.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

export const PROVIDER_RECORDS = kindOf<ProviderRecord>({
  name: 'oidc_records',
  fields: {
    model: 'text',
    accountId: 'text?',
    grantId: 'text?',
    uid: 'text?',
    userCode: 'text?',
    clear: 'json?',
    sealed: 'text?',
    consumedAt: 'time?',
    expiresAt: 'time?',
  },
  indexes: [['accountId'], ['grantId'], ['uid'], ['userCode']],
  purgedAt: 'expiresAt',
})

/** So many are read at a time. */
const PAGE = 1_000

export function providerRecords(records: Records): ProviderRecords {
  const table = tableOf(records, PROVIDER_RECORDS)

  /** Page by page, in the order of ids. */
  async function* pages(equal: { [F in ProviderRecordField]?: string }, from = '') {
    for (let id = from; ;) {
      const found = await table.findAll({ equal, after: { id }, limit: PAGE })
      yield found.flatMap(({ record }) => record ?? [])
      const last = found.at(-1)
      if (!last || found.length < PAGE) return
      id = last.id
    }
  }

  return {
    find: (id) => table.getReadable(id),

    async findBy(field, value, work) {
      for await (const page of pages({ [field]: value })) await work(page)
    },

    async findAll(beginning, work) {
      for await (const page of pages({}, beginning)) {
        const wanted = page.filter(({ id }) => id.startsWith(beginning))
        await work(wanted)
        if (wanted.length < page.length) return
      }
    },

    overwrite: (record) => table.overwrite(record),

    async save(record, mayReplace) {
      if (await table.insert(record)) return true
      return table.change(record.id, (before) =>
        before && !mayReplace(before)
          ? { next: before, answer: false }
          : { next: record, answer: true },
      )
    },

    reseal: (found, next) =>
      table.change(found, (before) => ({
        next: before?.sealed === found.sealed ? next : before,
        answer: undefined,
      })),

    consume: (which, consumedAt) =>
      table.change(which, (record) =>
        record && !record.consumedAt
          ? { next: { ...record, consumedAt }, answer: true }
          : { next: record, answer: false },
      ),

    remove: (id) => table.remove(id),

    async removeFound(found, isToGo) {
      const removals = found.map((record) =>
        table.change(record, (now) =>
          now && isToGo(now) ? { next: undefined, answer: 1 } : { next: now, answer: 0 },
        ),
      )
      return (await Promise.all(removals)).reduce((sum: number, one) => sum + one, 0)
    },
  }
}
