import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { storageIn } from '../../examples/server/postgresql.ts'
import { postgresUsers } from '../../examples/stores/postgresql-users.ts'
import { itIsAUserStore } from '../../src/contract/suites/index.ts'
import { startHarness } from '../support/harness.ts'
import {
  describeOnPostgresql,
  describeWithPostgresql,
  freshPostgresql,
  poolOf,
} from '../support/postgresql.ts'

describeOnPostgresql('examples/server/postgresql.ts', (database) => {
  const signingKey = () => randomBytes(32).toString('base64url')
  const keys = [signingKey()]

  before(() => storageIn(database(), keys))
  beforeEach(() => database().query('TRUNCATE users'))

  itIsAUserStore('postgresUsers()', async (users) => {
    for (const { id, username, email, emailVerified, passwordHash, disabled } of users)
      await database().query(
        `INSERT INTO users (id, username, email, email_verified, password_hash, disabled)
         VALUES ($1, $2, $3, $4, $5, $6)`,
        [id, username, email, emailVerified, passwordHash, disabled],
      )
    return { users: postgresUsers(database()), close: async () => {} }
  })

  it('has the same keys for each process, also while SIGNING_KEYS is rotated, and for no other', async () => {
    const next = [signingKey(), ...keys]
    const all = await Promise.all([keys, keys, next].map((ring) => storageIn(database(), ring)))
    const [first, ...others] = all.map(({ providerKeys }) => providerKeys)
    for (const each of others) expect(each).to.deep.equal(first)
    const refused: unknown = await storageIn(database(), [signingKey()]).catch((error) => error)
    expect(String(refused)).to.include('SIGNING_KEYS holds no key')
    const { rows } = await database().query('SELECT * FROM provider_jwks')
    expect(JSON.stringify(rows)).not.to.include('"kty"')
  })

  it('takes an empty hash for none, and sets the first password in its place', async () => {
    const { users, addUser } = await storageIn(database(), keys)
    const email = 'ann@users.example'
    const ann = { username: 'ann', email, passwordHash: '' }
    await addUser({ ...ann, emailVerified: true, disabled: false })
    const { id = '', ...found } = (await users.findByUsername('ann')) ?? {}
    expect(found).to.include({ passwordHash: undefined })
    expect(await users.setFirstPassword?.(id, email, 'first')).to.equal(true)
    expect(await users.findById(id)).to.include({ passwordHash: 'first' })
  })

  it('adds a user once, who resets the password, with all that is kept in PostgreSQL', async () => {
    const { store, users, addUser } = await storageIn(database(), keys)
    const ann = { username: 'ann', email: 'ann@users.example', passwordHash: '$2b$04$old' }
    const user = { ...ann, emailVerified: true, disabled: false }
    await Promise.all([1, 2, 3].map(() => addUser(user)))
    const { rows } = await database().query('SELECT username FROM users')
    expect(rows).to.deep.equal([{ username: 'ann' }])
    const h = await startHarness({ flows: { store, users } })
    await h.forgot('ann')
    const { link } = await h.mail.mailTo('ann@users.example')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    const found = await users.findByUsername('ann')
    expect(found?.passwordHash)
      .to.match(/^\$2[aby]\$/)
      .and.not.equal('$2b$04$old')
    await h.close()
  })
})

describeWithPostgresql('examples/server/postgresql.ts beside others [full]', () => {
  it('starts again while somebody writes to its tables', async () => {
    const { pool, url, drop } = await freshPostgresql()
    const keys = [randomBytes(32).toString('base64url')]
    await storageIn(pool, keys)
    const writer = await pool.connect()
    await writer.query('BEGIN; DELETE FROM users; DELETE FROM provider_jwks WHERE false')
    const starting = poolOf(url, '-c lock_timeout=5000')
    await storageIn(starting, keys)
    await starting.end()
    await writer.query('ROLLBACK')
    writer.release()
    await drop()
  })
})
