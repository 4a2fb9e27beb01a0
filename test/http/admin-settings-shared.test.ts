import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { settingsOf } from '../support/admin-requests.ts'
import { createAccountFlows, mongoStore, mongoUsers, type AccountFlows } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN, startHarness, type Harness } from '../support/harness.ts'
import { databaseOf } from '../support/observe.ts'

const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` }

onBothStores('A change of settings (D27)', (technology) => {
  const secrets = [randomBytes(32)]
  let h: Harness

  before(async () => {
    h = await startHarness({ technology, flows: { secrets } })
  })

  after(() => h.close())

  const shown = () => settingsOf(h).shown()
  const put = (body: Record<string, string>) => settingsOf(h).put({ body })

  describe('applies every one of several changes at the same time', () => {
    it('to different settings: none is lost (SET-14)', async () => {
      for (let round = 1; round <= 5; round += 1) {
        const changes = {
          password_reset_expiration: `${round}h`,
          email_verification_expiration: `${round + 10}h`,
          smtp_username: `name ${round}`,
          smtp_password: `password ${round}`,
          validation_max_password_length: String(64 + round),
        }
        const each = Object.entries(changes).map(([key, value]) => put({ [key]: value }))
        for (const { status } of await Promise.all(each)) expect(status).to.equal(200)
        expect(await shown()).to.include({ ...changes, smtp_password: '***' })
      }
    })

    it('to a minimum and a maximum that exclude each other: one of them is refused', async () => {
      await h.put({ validation_min_password_length: '8', validation_max_password_length: '64' })
      const answers = await Promise.all([
        put({ validation_min_password_length: '40' }),
        put({ validation_max_password_length: '20' }),
      ])
      expect(answers.map(({ status }) => status)).to.have.members([200, 400])
      const settings = await shown()
      const { validation_min_password_length: min, validation_max_password_length: max } = settings
      expect(Number(min)).to.be.at.most(Number(max))
    })
  })

  if (technology === 'mongodb') {
    describe('is followed by every process that shares the database (D27, SET-13)', () => {
      let other: AccountFlows
      let server: Server
      let otherUrl: string

      before(async () => {
        const db = databaseOf(h)
        other = createAccountFlows({
          baseUrl: h.baseUrl,
          secrets,
          store: mongoStore(db),
          users: mongoUsers(db.collection('users')),
          adminToken: ADMIN_TOKEN,
          log: () => {},
        })
        await other.start({ workers: false })
        server = createServer((req, res) => other.adminHandler(req, res, () => res.end()))
        server.listen(0, '127.0.0.1')
        await once(server, 'listening')
        const { port } = server.address() as AddressInfo
        otherUrl = `http://127.0.0.1:${port}/admin/api/settings`
      })

      after(async () => {
        await other.stop()
        server.closeAllConnections()
        server.close()
      })

      it('in both directions, without a restart', async () => {
        const elsewhere = async () => (await fetch(otherUrl, { headers: bearer })).json()
        await h.put({ email_verification_expiration: '3h', smtp_password: 'a password' })
        await eventually('the other process follows', async () => {
          const { email_verification_expiration, smtp_password } = await elsewhere()
          return email_verification_expiration === '3h' && smtp_password === '***'
        })
        const body = JSON.stringify({ email_verification_expiration: '4h', smtp_username: 'x' })
        const headers = { ...bearer, 'content-type': 'application/json' }
        const changed = await fetch(otherUrl, { method: 'PUT', headers, body })
        expect(await changed.json()).to.include({ email_verification_expiration: '4h' })
        await eventually('this process follows', async () => {
          const { email_verification_expiration, smtp_username } = await shown()
          return email_verification_expiration === '4h' && smtp_username === 'x'
        })
        expect(await shown()).to.include({ smtp_password: '***' })
      })
    })
  }
})
