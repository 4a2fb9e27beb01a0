import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { ADMIN_TOKEN, startHarness, type Harness } from '../support/harness.ts'
import { startExampleServer } from '../support/example-server.ts'
import { createUserAgent } from '../support/user-agent.ts'

const form = 'application/x-www-form-urlencoded'

/** Inflates past every limit, and then breaks: a decompressor that goes on reading fails where nobody listens. */
const broken = Buffer.concat([
  gzipSync(Buffer.alloc(81_921, 'a')).subarray(0, -8),
  Buffer.alloc(64, 255),
])

const bodies = {
  'gzip that breaks after the limit': ['gzip', broken],
  'gzip of a good form': ['gzip', gzipSync('identifier=alice')],
  'text that says it is gzip': ['gzip', Buffer.from('identifier=alice')],
  'text that says it is br': ['br', Buffer.from('identifier=alice')],
  'gzip cut short': ['deflate', gzipSync('identifier=alice').subarray(0, 12)],
} as const

describe('A compressed body (D31)', () => {
  let h: Harness

  before(async () => {
    h = await startHarness()
    await h.addUser({ username: 'alice' })
  })
  after(() => h.close())

  for (const [what, [encoding, body]] of Object.entries(bodies)) {
    for (const path of [
      'forgot-password',
      'reset-password',
      'resend-verification',
      'verify-email',
    ]) {
      it(`is refused by ${path}: ${what}`, async () => {
        const headers = { 'content-type': form, 'content-encoding': encoding }
        const agent = createUserAgent()
        const answer = await agent.request('POST', `${h.oauthUrl}/${path}`, { headers, body })
        expect([answer.status, answer.mode]).to.deep.equal([415, 'unsupported_media_type'])
      })
    }

    it(`is refused by the admin API: ${what}`, async () => {
      const answer = await fetch(`${h.baseUrl}/admin/api/settings`, {
        method: 'PUT',
        headers: {
          authorization: `Bearer ${ADMIN_TOKEN}`,
          'content-type': 'application/json',
          'content-encoding': encoding,
        },
        body,
      })
      expect(answer.status).to.equal(415)
      expect(answer.headers.get('content-type')).to.match(/^application\/problem\+json/)
    })
  }

  it('leaves the process alive, no mail sent, and an honest request working', async () => {
    expect(h.mail.mails).to.have.length(0)
    expect((await h.forgot('alice')).mode).to.equal('sent')
    await h.mail.mailTo('alice@users.example')
  })

  it('does not end the example server either, on any of its forms', async () => {
    const server = await startExampleServer()
    try {
      for (const path of ['/oauth2/forgot-password', '/oauth2/login', '/oauth2/login/consent']) {
        for (const [encoding, body] of Object.values(bodies)) {
          const headers = { 'content-type': form, 'content-encoding': encoding }
          const answer = await fetch(`${server.baseUrl}${path}`, { method: 'POST', headers, body })
          expect(answer.status, path).to.equal(415)
        }
      }
      const alive = await fetch(`${server.baseUrl}/oauth2/forgot-password`)
      expect(alive.status).to.equal(200)
    } finally {
      await server.stop()
    }
  })
})

describe('A form that is no UTF-8 (D8, D31)', () => {
  it('is refused, raw or percent-encoded, and leaves the token unspent', async () => {
    const h = await startHarness()
    try {
      const user = await h.addUser({ username: 'bob' })
      const link = await h.resetLink(user)
      const token = new URL(link).searchParams.get('token')
      const raw = (password: Buffer | string) =>
        Buffer.concat([
          Buffer.from(`token=${token}&password=`),
          Buffer.from(password),
          Buffer.from('&confirm_password='),
          Buffer.from(password),
        ])
      for (const body of [raw(Buffer.from('fffefd4142434445e9', 'hex')), raw('%ff%fe%fdABCDE')]) {
        const headers = { 'content-type': form }
        const url = `${h.oauthUrl}/reset-password`
        const answer = await createUserAgent().request('POST', url, { headers, body })
        expect([answer.status, answer.mode]).to.deep.equal([400, 'bad_request'])
      }
      const headers = { 'content-type': form }
      const body = raw('sch\u00f6n und lang')
      const url = `${h.oauthUrl}/reset-password`
      const answer = await createUserAgent().request('POST', url, { headers, body })
      expect([answer.status, answer.mode]).to.deep.equal([200, 'done'])
      const signedIn = await h.signIn(createUserAgent(), 'bob', 'sch\u00f6n und lang')
      expect(signedIn.location).to.include('code=')
    } finally {
      await h.close()
    }
  })
})

describe('A flood of requests for unknown names', () => {
  it('does not hold up the mail of somebody who exists, more than their own look-ups do', async () => {
    const h = await startHarness()
    try {
      const alice = await h.addUser({ username: 'alice' })
      await Promise.all(Array.from({ length: 200 }, (_, i) => h.forgot(`nobody ${i}`)))
      await h.forgot('alice')
      await h.mail.mailTo(alice.email ?? '')
    } finally {
      await h.close()
    }
  })
})
