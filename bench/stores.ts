/** The same flows on each store, in one run: how many a second, and how often that is what the store in memory does. */
import { several } from '../test/faults/load.ts'
import { startHarness, type Harness, type Technology } from '../test/support/harness.ts'
import { eventually } from '../test/support/eventually.ts'
import { stopMongo } from '../test/support/mongod.ts'
import type { Person } from '../test/support/person.ts'

const PEOPLE = 200
const AT_ONCE = 16
const TECHNOLOGIES: Technology[] = ['memory', 'mongodb', 'postgresql']

/** Does the work for each, so many at once, and answers how many are done in a second. */
async function perSecond(people: Person[], work: (person: Person) => Promise<unknown>) {
  const began = performance.now()
  await several(people, AT_ONCE, work)
  return (people.length * 1000) / (performance.now() - began)
}

async function added(h: Harness, emailVerified: boolean): Promise<Person[]> {
  const people: Person[] = []
  for (let n = 0; n < PEOPLE; n += 1)
    people.push(await h.addUser({ username: `${emailVerified}-${n}`, emailVerified }))
  return people
}

async function figuresOf(technology: Technology): Promise<Record<string, number>> {
  const h = await startHarness({ technology, settings: { password_changed_email: 'true' } })
  try {
    const [people, others] = [await added(h, true), await added(h, false)]
    const linkOf = async ({ email = '' }: Person) => (await h.mail.mailTo(email)).link
    const began = performance.now()
    const forgot = await perSecond(people, ({ username }) => h.forgot(username))
    await eventually('all mails', () => h.mail.mails.length >= PEOPLE, 120_000)
    const mailed = (PEOPLE * 1000) / (performance.now() - began)
    const login = await perSecond(people, (person) => person.signsIn())
    const reset = await perSecond(people, async (person) =>
      h.reset(await linkOf(person), 'another password'),
    )
    const blocked = await perSecond(others, (person) => person.signsIn())
    const verify = await perSecond(others, async (person) => person.agent.get(await linkOf(person)))
    return { forgot, 'forgot mailed': mailed, login, reset, 'blocked login': blocked, verify }
  } finally {
    await h.close()
  }
}

// What a process does for the first time is slow.
await figuresOf('memory')
const figures: Record<string, number>[] = []
for (const technology of TECHNOLOGIES) figures.push(await figuresOf(technology))
console.log(['', ...TECHNOLOGIES].map((name) => name.padEnd(16)).join(''))
for (const [step, inMemory] of Object.entries(figures[0] ?? {})) {
  const cells = figures.map(({ [step]: figure = 0 }) =>
    `${figure.toFixed(0)} (${(figure / inMemory).toFixed(2)})`.padEnd(16),
  )
  console.log(step.padEnd(16) + cells.join(''))
}
stopMongo()
process.exit(0)
