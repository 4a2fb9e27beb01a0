import type { SecretBox } from '../crypto/secret-box.ts'
import type { CapturedRequest, PendingLogin, PendingLoginStore } from './index.ts'

/** The same store, which seals what lets a reader of the database act, or learn about a person. A login that no key opens is not found. */
export function sealedLogins(store: PendingLoginStore, box: SecretBox): PendingLoginStore {
  const opened = (login: PendingLogin | undefined): PendingLogin | undefined => {
    const captured = login && open(login.captured, login.id, box)
    if (!captured || !login.other) return captured && { ...login, captured }
    const email = box.open(login.other.email, purposeOfEmail(login.id))
    if (email === undefined) return undefined
    return { ...login, captured, other: { ...login.other, email } }
  }
  return {
    save: (login, most) =>
      store.save({ ...login, captured: seal(login.captured, login.id, box) }, most),
    find: async (which) => opened(await store.find(which)),
    withOther: async (accountId) => opened(await store.withOther(accountId)),
    setOther(login, other, purgeAt) {
      const email = box.seal(other.email, purposeOfEmail(login.id))
      return store.setOther(login, { ...other, email }, purgeAt)
    },
    change: (which, changes) => store.change(which, changes),
    setTurn: (id, turn, at) => store.setTurn(id, turn, at),
  }
}

function seal(captured: CapturedRequest, id: string, box: SecretBox): CapturedRequest {
  const { deviceCode, parJti, ...rest } = captured
  const { id_token_hint: idTokenHint, ...params } = captured.params
  // A prompt with a hint repeats it.
  const prompt = idTokenHint === undefined ? undefined : captured.prompt
  const secrets = JSON.stringify({ deviceCode, parJti, idTokenHint, prompt })
  if (secrets === '{}') return captured
  const sealed = box.seal(secrets, purposeOf(id))
  return { ...rest, params, prompt: prompt === undefined ? rest.prompt : undefined, sealed }
}

function open(stored: CapturedRequest, id: string, box: SecretBox): CapturedRequest | undefined {
  const { sealed, ...rest } = stored
  if (sealed === undefined) return stored
  const secrets = box.open(sealed, purposeOf(id))
  if (secrets === undefined) return undefined
  const { idTokenHint, ...others }: Partial<CapturedRequest> & { idTokenHint?: unknown } =
    JSON.parse(secrets)
  const hint = idTokenHint !== undefined && { id_token_hint: idTokenHint }
  return { ...rest, ...others, params: { ...rest.params, ...hint } }
}

const purposeOf = (id: string) => `login that waits ${id}`
const purposeOfEmail = (id: string) => `address of ${purposeOf(id)}`
