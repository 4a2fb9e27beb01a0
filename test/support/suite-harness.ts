import { startHarness, type Harness, type HarnessOptions } from './harness.ts'

/** One harness for all tests of the suite that this is called in: there before its own hooks, and closed after them. */
export function suiteHarness(options: HarnessOptions = {}): Harness {
  let started: Harness | undefined

  before(async () => {
    started = await startHarness(options)
  })

  after(() => started?.close())

  return new Proxy({} as Harness, {
    get(_target, name) {
      if (!started) throw new Error('the suite has not begun')
      return Reflect.get(started, name) as unknown
    },
  })
}
