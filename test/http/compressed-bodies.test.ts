import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { startExampleServer } from '../support/example-server.ts'
import { suiteHarness } from '../support/suite-harness.ts'
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

const PATHS = [
  'forgot-password',
  'reset-password',
  'resend-verification',
  'verify-email/waiting',
  'not-me',
]

describe('A compressed body', () => {
  const h = suiteHarness()

  before(async () => {
    await h.addUser({ username: 'alice' })
  })

  for (const [what, [encoding, body]] of Object.entries(bodies)) {
    it(`is refused by every form and by the admin API: ${what}`, async () => {
      const headers = { 'content-type': form, 'content-encoding': encoding }
      for (const path of PATHS) {
        const url = `${h.oauthUrl}/${path}`
        const answer = await createUserAgent().request('POST', url, { headers, body })
        expect([answer.status, answer.mode], path).to.deep.equal([415, 'unsupported_media_type'])
      }
      const answer = await fetch(`${h.baseUrl}/admin/api/settings`, {
        method: 'PUT',
        headers: {
          ...headers,
          authorization: `Bearer ${ADMIN_TOKEN}`,
          'content-type': 'application/json',
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

  it('does not end the example server either, on any of its forms [full]', async () => {
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
