import { expect } from 'chai'
import * as fc from 'fast-check'
import { carriedFrom } from '../../src/ports/carried-query.ts'
import { parseFields } from '../../src/http/form.ts'
import { startHarness } from '../support/harness.ts'
import { rawRequest } from '../support/raw-request.ts'

const wellFormed = fc.string({ unit: 'binary', maxLength: 40 })
const anything = fc.string({ unit: 'binary', maxLength: 200 })
const formLike = fc
  .array(
    fc.constantFrom(...'& = % + [ ] $gt %FF %ED%A0%80 %41 a __proto__ \0 ü \uD800 ;'.split(' ')),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''))

describe('The reader of forms, for every form there is', () => {
  it('gives back exactly the fields that a browser would send', () => {
    fc.assert(
      fc.property(fc.dictionary(wellFormed, wellFormed), (fields) => {
        const text = new URLSearchParams(fields).toString()
        expect([...(parseFields(text) ?? [])]).to.deep.equal(Object.entries(fields))
      }),
    )
  })

  it('never throws, never yields what is no well-formed text, and never a name twice', () => {
    fc.assert(
      fc.property(fc.oneof(anything, formLike), (text) => {
        const fields = parseFields(text)
        if (fields === undefined) return
        expect(fields).to.be.instanceOf(Map)
        for (const entry of fields) {
          for (const part of entry) expect(part).to.be.a('string')
        }
        const names = text
          .split('&')
          .filter((pair) => pair !== '')
          .map((pair) => decodeURIComponent((pair.split('=')[0] ?? '').replaceAll('+', ' ')))
        expect([...fields.keys()]).to.deep.equal(names)
      }),
      { numRuns: 2_000 },
    )
  })

  it('refuses every form with a name that comes twice, wherever and however it is written (INJ-13)', () => {
    const pairs = fc.array(fc.tuple(wellFormed, wellFormed))
    const twice = fc.tuple(wellFormed, pairs, pairs)
    fc.assert(
      fc.property(twice, ([name, some, others]) => {
        const encoded = [...Buffer.from(name)]
          .map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
          .join('')
        const pairs = [...some, [name, 'a'], ...others].map((pair) =>
          new URLSearchParams([pair as [string, string]]).toString(),
        )
        expect(parseFields([...pairs, `${encoded}=b`].join('&'))).to.equal(undefined)
      }),
    )
  })

  it('takes the four carried parameters, an absent one being another than an empty one', () => {
    const names = ['client_id', 'redirect_uri', 'scope', 'state']
    const fields = fc.dictionary(fc.constantFrom(...names, 'other'), wellFormed)
    fc.assert(
      fc.property(fields, (given) => {
        const carried = carriedFrom(new Map(Object.entries(given)))
        expect(Object.keys(carried)).to.have.length(names.filter((name) => name in given).length)
        expect([carried.clientId, carried.redirectUri, carried.scope, carried.state]).to.deep.equal(
          names.map((name) => given[name]),
        )
      }),
    )
  })

  it('answers whatever bytes are posted: read, or refused, and never a failure of ours', async () => {
    const h = await startHarness()
    const url = `${h.oauthUrl}/forgot-password`
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      formLike.map((text) => new TextEncoder().encode(text)),
    )
    try {
      await fc.assert(
        fc.asyncProperty(bytes, fc.boolean(), async (tail, isChunked) => {
          const body = Buffer.concat([Buffer.from('identifier=nobody&'), tail])
          const { status, page } = await rawRequest(url, { body, isChunked })
          expect(page).to.equal(status === 200 ? 'forgot-password' : 'error')
          expect(status).to.be.oneOf([200, 400])
        }),
        { numRuns: 200 },
      )
      expect((await h.forgot('nobody')).mode).to.equal('sent')
      expect(h.mail.mails).to.deep.equal([])
    } finally {
      await h.close()
    }
  })
})
