import { expect } from 'chai'
import { CompactEncrypt } from 'jose'
import { sharedProviderKeys } from '../../examples/server/keys.ts'
import { derivedKey } from '../../examples/server/keys.ts'
import { StartRefused } from '../../examples/server/environment.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { suiteDatabase } from '../support/suite-database.ts'

const [OLD, NEW, LOST] = ['old', 'new', 'lost'].map((name) =>
  Buffer.alloc(32, name).toString('base64url'),
) as [string, string, string]
const OLD_ALONE = [OLD]
const APPENDED = [OLD, NEW]
const IN_FRONT = [NEW, OLD]
const NEW_ALONE = [NEW]

describeWithMongo(
  'The provider keys of the example server, while SIGNING_KEYS are rotated (SIG-17) [full]',
  () => {
    const fresh = suiteDatabase()
    const start = (ring: string[]) => sharedProviderKeys(fresh.db, ring)
    const stored = () => fresh.db.collection('provider_jwks').find().toArray()
    beforeEach(() => fresh.db.collection('provider_jwks').deleteMany({}))

    async function expectRefused(ring: string[]) {
      const before = await stored()
      const refusal: unknown = await start(ring).catch((error: unknown) => error)
      expect(refusal).to.be.instanceOf(StartRefused)
      expect(await stored()).to.deep.equal(before)
    }

    it('are the same for every process, whichever starts again at any moment', async () => {
      const keys = await start(OLD_ALONE)
      const steps = [OLD_ALONE, APPENDED, IN_FRONT, NEW_ALONE]
      for (const [index, next] of steps.slice(1).entries()) {
        const former = steps[index] ?? []
        for (const ring of [next, former, next, next, former, former, next]) {
          expect(await start(ring)).to.deep.equal(keys)
        }
      }
      await expectRefused(OLD_ALONE)
      expect(await start(NEW_ALONE)).to.deep.equal(keys)
    })

    it('are the same where a key was put in front at once, and all start at the same time', async () => {
      const keys = await start(OLD_ALONE)
      for (const rings of [
        [IN_FRONT, OLD_ALONE, IN_FRONT, OLD_ALONE],
        [APPENDED, IN_FRONT, OLD_ALONE, APPENDED],
      ]) {
        for (const opened of await Promise.all(rings.map(start))) {
          expect(opened).to.deep.equal(keys)
        }
        expect(await start(OLD_ALONE)).to.deep.equal(keys)
      }
    })

    it('are not written again by a process with the same keys, in whatever order', async () => {
      await start(APPENDED)
      const before = await stored()
      await start(IN_FRONT)
      await start(APPENDED)
      expect(await stored()).to.deep.equal(before)
    })

    it('are opened by nobody else', async () => {
      const keys = await start(IN_FRONT)
      await expectRefused([LOST])
      expect(await start([LOST, OLD])).to.deep.equal(keys)
    })

    it('are those that an earlier version sealed, under one key', async () => {
      const keys = { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] }
      const jwe = await new CompactEncrypt(Buffer.from(JSON.stringify(keys)))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .encrypt(derivedKey(OLD, 'jwks'))
      await fresh.db
        .collection<{ _id: string; jwe: string }>('provider_jwks')
        .insertOne({ _id: 'jwks', jwe })
      const before = await stored()
      expect(await start(OLD_ALONE)).to.deep.equal(keys)
      expect(await stored()).to.deep.equal(before)
      expect(await start(APPENDED)).to.deep.equal(keys)
      expect(await start(NEW_ALONE)).to.deep.equal(keys)
    })
  },
)
