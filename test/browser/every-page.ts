import { type SamplePage, samplePages } from '../views/read-pages.ts'

/** One page in one mode, as somebody could come to see it. */
export interface ShownPage extends SamplePage {
  /** Names it in an address, and in a file name. */
  id: string
}

const client = {
  clientName: 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbea',
  href: 'https://shop.example/sign-in',
}
const apps = {
  notified: { names: [client.clientName, ...'ABCDEFGHI'], more: 12 },
  notNotified: { names: ['متجر بترا', '<b>Notes</b>'], more: 0 },
}
const waits = { username: 'petra', lifetimeMs: 3_600_000, parameters: {}, waiting: 'login' }
const elsewhere = { username: 'petra', code: '042917', at: new Date(0), waitMs: 3_600_000 }

/** With names as long as they can be, and one that nothing was mailed for. */
const otherPages: SamplePage[] = [
  { name: 'reset-password', locals: { mode: 'done', client, apps } },
  { name: 'verify-email', locals: { mode: 'elsewhere', client, ...elsewhere } },
  { name: 'verify-email', locals: { mode: 'blocked', ...waits } },
]

/** Every page in every mode, with little and with much to say, and the others. */
export const everyPage: ShownPage[] = [...samplePages, ...otherPages].map((page, index, all) => {
  const { name, locals } = page
  const nth = all
    .slice(0, index)
    .filter((each) => each.name === name && each.locals.mode === locals.mode)
  return { id: [name, locals.mode, nth.length + 1].join('.'), ...page }
})
