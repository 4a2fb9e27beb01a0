import { hashQueue } from '../crypto/hash-queue.ts'
import { createHashing } from '../crypto/hashing.ts'
import type { CheckedOptions } from '../options.ts'
import type { Settings } from '../settings/table.ts'
import { createPasswordJudge } from './judge.ts'
import { createIsLeaked } from './range-service.ts'

/** All that is done with passwords: they are hashed, compared and judged. */
export function createPasswords(options: CheckedOptions, settings: () => Settings) {
  const { hashing, bcryptCost, brand, baseUrl, judgePassword, clock, log } = options
  const { hashPassword, verifyPassword } = createHashing(hashing, bcryptCost, hashQueue)
  const passwordJudge = createPasswordJudge({
    settings,
    service: [brand.name, baseUrl.hostname],
    verifyPassword,
    isLeaked: createIsLeaked(clock, log),
    judgePassword,
    clock,
  })
  return { hashPassword, verifyPassword, passwordJudge }
}
