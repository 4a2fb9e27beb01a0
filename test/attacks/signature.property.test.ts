import { expect } from 'chai'
import * as fc from 'fast-check'
import { appendCarried, carriedFrom } from '../../src/ports/carried-query.ts'
import { createAuthorizeSig } from '../../src/crypto/authorize-sig.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { newToken } from '../../src/crypto/token.ts'
import type { CarriedParameters } from '../../src/index.ts'
import { expectExpired } from '../support/blocked-login.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import {
  isSameLink,
  linkChange,
  SIGNED,
  spellings,
  valueOf,
  type Pairs,
} from '../support/link-changes.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { addVerified, blockedLogin, type Person } from '../support/person.ts'

const text = fc.string({ unit: 'binary', maxLength: 40 })
const carried = fc.record(
  { clientId: text, redirectUri: text, scope: text, state: text },
  { requiredKeys: [] },
) satisfies fc.Arbitrary<CarriedParameters>

describe('authorize_sig, whatever the parameters are (5.4)', () => {
  const sig = createAuthorizeSig(createKeyRing([Buffer.alloc(32, 7)]))

  function asPairs(token: string, parameters: CarriedParameters): Pairs {
    const link = appendCarried(new URLSearchParams({ token }), parameters)
    link.append('authorize_sig', sig.sign(token, parameters))
    return [...link]
  }

  it('verifies what it signed', () => {
    fc.assert(
      fc.property(carried, (parameters) => {
        const token = newToken()
        expect(sig.verify(sig.sign(token, parameters), token, { ...parameters })).to.equal(true)
      }),
    )
  })

  it('verifies nothing else: no two links have one signature', () => {
    fc.assert(
      fc.property(carried, carried, fc.boolean(), (one, other, isSameToken) => {
        const token = newToken()
        const second = isSameToken ? token : newToken()
        fc.pre(
          !isSameToken || JSON.stringify(asPairs('', one)) !== JSON.stringify(asPairs('', other)),
        )
        expect(sig.verify(sig.sign(token, one), second, other)).to.equal(false)
      }),
    )
  })

  it('notices every change of a byte, a boundary or a presence (SIG-07)', () => {
    fc.assert(
      fc.property(carried, linkChange, (parameters, change) => {
        const honest = asPairs(newToken(), parameters)
        const names = honest.map(([name]) => name)
        const changed = change(honest)
        // Repeated and bracketed names never come this far.
        fc.pre(changed.every(([name], at) => changed.findIndex(([each]) => each === name) === at))
        fc.pre(!isSameLink(honest, changed) && names.length > 0)
        fc.pre(!changed.some(([name]) => name.includes('[')))
        const verified = sig.verify(
          valueOf(changed, 'authorize_sig'),
          valueOf(changed, 'token'),
          carriedFrom(new Map(changed)),
        )
        expect(verified).to.equal(false)
      }),
      { numRuns: 1_000 },
    )
  })

  it('answers false, and never throws, for any signature of any length (SIG-11, TIM-10)', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 200 }),
        carried,
        (signature, parameters) => {
          expect(sig.verify(signature, newToken(), parameters)).to.equal(false)
        },
      ),
    )
  })
})

describe('A mailed verification link, whatever becomes of its query (5.4, SIG) [full]', () => {
  let harness: Harness
  let login: Person
  let pairs: Pairs
  /** Signed in with another account: a link that is accepted asks first, and consumes nothing. */
  let bystander: UserAgent
  let url: string

  before(async () => {
    harness = await startHarness()
    url = `${harness.oauthUrl}/verify-email`
    login = await blockedLogin(harness, {
      extra: { state: 'a b&c=d+é%26"😀', scope: 'openid email' },
    })
    pairs = [...new URL(login.link).searchParams]
    bystander = createUserAgent()
    await harness.signIn(bystander, (await addVerified(harness)).username)
  })
  after(async () => {
    try {
      await login.stillGetsIn()
    } finally {
      await harness.close()
    }
  })

  const query = (changed: Pairs) =>
    changed.map((pair) => pair.map((each) => encodeURIComponent(each)).join('=')).join('&')

  it('is refused after any change, duplication, removal or bracket, and is unspent (SIG-01, SIG-04)', async () => {
    await fc.assert(
      fc.asyncProperty(linkChange, async (change) => {
        const changed = change(pairs)
        fc.pre(!isSameLink(pairs, changed))
        const answer = await createUserAgent().get(`${url}?${query(changed)}`)
        expectExpired(answer)
        await login.getsNothing(answer)
      }),
      { numRuns: 150 },
    )
  })

  it('is refused with a parameter twice, though a line break stands before its second value', async () => {
    for (const name of SIGNED) {
      for (const value of ['%0Aer', '%0D%0A', '%0A%20x', '3Dx']) {
        const again = `${name}=${value}`
        for (const text of [`${query(pairs)}&${again}`, `${again}&${query(pairs)}`]) {
          const answer = await bystander.get(`${url}?${text}`)
          expectExpired(answer)
          await login.getsNothing(answer)
        }
      }
    }
    expect((await bystander.get(`${url}?${query(pairs)}`)).mode).to.equal('other_account')
  })

  it('is accepted in every order and percent-encoding, with foreign parameters beside (SIG-03)', async () => {
    await fc.assert(
      fc.asyncProperty(spellings(pairs), async (spelling) => {
        const answer = await bystander.get(`${url}?${spelling}`)
        expect([answer.status, answer.mode], spelling).to.deep.equal([200, 'other_account'])
        const ahead = await bystander.get(`${url}?${spelling}`, { purpose: 'prefetch' })
        const { ui_locales: _, ...link } = ahead.hidden
        expect(link).to.deep.equal(Object.fromEntries(pairs))
        expect(await login.isVerified()).to.equal(false)
      }),
      { numRuns: 80 },
    )
  })
})
