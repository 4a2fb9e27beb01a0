import { adminMutants } from './admin.ts'
import type { Mutant } from './mutant.ts'
import { requestMutants } from './requests.ts'
import { resetMutants } from './reset.ts'
import { secrecyMutants } from './secrecy.ts'
import { verificationMutants } from './verification.ts'
import { waitingMutants } from './waiting.ts'

export const allMutants: Mutant[] = [
  ...resetMutants,
  ...verificationMutants,
  ...waitingMutants,
  ...secrecyMutants,
  ...requestMutants,
  ...adminMutants,
]
