import { hashQueue } from '../crypto/hash-queue.ts'
import { createHashing } from '../crypto/hashing.ts'
import type { CheckedOptions } from '../check-options.ts'
import type { Settings } from '../settings/table.ts'
import { createPasswordJudge } from './judge.ts'
import { createIsLeaked } from './range-service.ts'

/** All that is done with passwords: they are hashed, compared and judged. */
export function createPasswords(options: CheckedOptions, settings: () => Settings) {
  const { hashing, bcryptCost, brand, baseUrl, judgePassword, clock, log } = options
  let dearestCost: number | undefined

  function tellDearer(cost: number) {
    const message =
      'the stored hash of an account costs much more than bcryptCost: its logins can be told by their time'
    if (dearestCost === undefined) log('warn', message, { cost, bcryptCost })
    dearestCost = Math.max(cost, dearestCost ?? 0)
  }

  const means = createHashing(hashing, bcryptCost, hashQueue, tellDearer)
  const passwordJudge = createPasswordJudge({
    settings,
    service: [brand.name, baseUrl.hostname],
    verifyPassword: means.verifyPassword,
    isLeaked: createIsLeaked(clock, log),
    judgePassword,
    clock,
  })
  return { ...means, passwordJudge, dearestCost: () => dearestCost }
}
