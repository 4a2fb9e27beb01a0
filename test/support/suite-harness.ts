import { startHarness, type Harness, type HarnessOptions } from './harness.ts'

/** The harness of the suite that asks for it, from its first hook to its end. Options that a hook makes, or that are waited for, are given as a function. */
export function suiteHarness(
  options: HarnessOptions | (() => HarnessOptions | Promise<HarnessOptions>) = {},
): Harness {
  const h = {} as Harness
  let close = async () => {}
  before('the harness runs', async () => {
    Object.assign(h, await startHarness(typeof options === 'function' ? await options() : options))
    close = h.close
  })
  after(() => close())
  return h
}
