import { expect } from 'chai'
import type { AccountFlowsStore } from '../../src/store/index.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { parseDuration } from '../../src/settings/kinds.ts'
import { isLoopbackHost, isMailAddress, mailboxKey } from '../../src/settings/addresses.ts'
import { createSettingsKeeper, type SettingsKeeper } from '../../src/settings/settings.ts'
import { settingNamed } from '../../src/settings/table.ts'
import { smtpSettings } from '../../src/mail/smtp/connection.ts'
import { keptInMemory } from '../support/kept.ts'

const [min, max] = ['validation_min_password_length', 'validation_max_password_length'] as const

const ring = (fill: number) => createSecretBox(createKeyRing([Buffer.alloc(32, fill)]))

describe('createSettingsKeeper() (2.5)', () => {
  const logged: string[] = []
  const keeperOf = (
    store: AccountFlowsStore['settings'] = keptInMemory().settings,
    box = ring(1),
  ) =>
    createSettingsKeeper(store, box, (level, message, details) => {
      logged.push(JSON.stringify([level, message, details]))
    })

  /** One that has looked at the store. */
  async function startedOn(store?: AccountFlowsStore['settings'], box?: ReturnType<typeof ring>) {
    const keeper = keeperOf(store, box)
    await keeper.refresh()
    return keeper
  }

  /** As an admin sees the settings in force. */
  const shownBy = async (keeper: SettingsKeeper) => (await keeper.read()).settings

  beforeEach(() => logged.splice(0))

  it('starts with the defaults of section 2.5, and with no SMTP server; has the strictest in force before its first look (SET-18)', async () => {
    expect(keeperOf().current()).to.include({
      requireEmailVerification: true,
      emailLinkConfirmation: 'other_browser',
      resetRequiresVerifiedEmail: true,
      smtpTls: 'auto',
      minPasswordLength: 15,
    })
    const keeper = await startedOn()
    expect(keeper.current()).to.include({
      passwordResetExpiration: 3_600_000,
      requireEmailVerification: false,
      emailVerificationExpiration: 86_400_000,
      minPasswordLength: 8,
      maxPasswordLength: 64,
      smtpHost: undefined,
      smtpPort: undefined,
      smtpUsername: undefined,
      smtpPassword: undefined,
      smtpFrom: undefined,
      smtpTls: 'auto',
      resetRequiresVerifiedEmail: false,
      requestsPerIpPerMinute: 60,
      mailsPerAccountPerHour: 10,
      resendCooldown: 0,
      mailsPerMinute: 600,
    })
    expect(await shownBy(keeper)).not.to.have.any.keys('smtp_port', 'smtp_password')
  })

  it('puts initial settings only where nothing is stored, and the initial password for the initial host alone', async () => {
    const store = keptInMemory().settings
    await keeperOf(store).change({ smtp_port: '26', smtp_host: '' })
    const keeper = keeperOf(store)
    const initial = { smtp_port: '27', smtp_host: 'mail.example', smtp_from: 'a@b.example' }
    await keeper.changeUnset(initial)
    expect(keeper.current()).to.include({
      smtpPort: 26,
      smtpFrom: 'a@b.example',
      smtpHost: undefined,
    })

    const login = { smtp_host: 'mail.example', smtp_password: 'canary' }
    const edited = keptInMemory().settings
    await edited.write({ smtp_host: 'evil.example' }, 0)
    for (const [given, smtpHost, smtpPassword] of [
      [edited, 'evil.example', undefined],
      [keptInMemory().settings, 'mail.example', 'canary'],
    ] as const) {
      const taking = keeperOf(given)
      await taking.changeUnset(login)
      expect(taking.current()).to.include({ smtpHost, smtpPassword })
    }
  })

  it('takes the default for a stored value that is not valid, says so, and never the value', async () => {
    const store = keptInMemory().settings
    await store.write({ smtp_port: 'canary', password_reset_expiration: '99d', other: 'x' }, 0)
    const keeper = await startedOn(store)
    expect(keeper.current()).to.include({ smtpPort: undefined, passwordResetExpiration: 3_600_000 })
    expect(logged.join()).to.include('smtp_port').and.not.to.include('canary')
  })

  it('takes changes beside a stored name that is no setting, also one that every object has', async () => {
    for (const name of ['constructor', 'toString', 'other']) {
      const store = keptInMemory().settings
      await store.write({ [name]: 'x', smtp_host: 'a', smtp_port: '25' }, 0)
      const keeper = await startedOn(store)
      const before = await store.read()
      expect(await keeper.change({ [name]: 'y' })).to.have.length(1)
      expect(await store.read()).to.deep.equal(before)
      const change = { smtp_port: '26', smtp_password: 'canary' }
      expect(await keeper.change(change)).to.deep.include({ changed: Object.keys(change) })
      expect((await store.read()).values).to.include({ [name]: 'x', smtp_port: '26' })
      expect((await startedOn(store)).current()).to.include({ smtpPassword: 'canary' })
    }
  })

  for (const [key, chosen, strictest] of [
    ['require_email_verification', 'false', 'true'],
    ['email_link_confirmation', 'off', 'other_browser'],
    ['reset_requires_verified_email', 'false', 'true'],
    ['reset_verifies_email', 'true', 'false'],
    ['smtp_tls', 'starttls', 'auto'],
    ['password_blocklist', 'pwned', 'common'],
    ['validation_min_password_length', '20', '15'],
  ] as const) {
    it(`keeps ${key} as it was where the stored value is not valid, takes ${strictest} at a start, and says so once (SET-18)`, async () => {
      const store = keptInMemory().settings
      const running = keeperOf(store)
      await running.change({ [key]: chosen })
      for (const bad of ['canary', '', 'null', `${chosen} `]) {
        const starting = keeperOf(store)
        logged.splice(0)
        const { values, version } = await store.read()
        await store.write({ ...values, [key]: bad }, version)
        for (const keeper of [running, starting]) {
          const inForce = keeper === running ? chosen : strictest
          await keeper.refresh()
          expect(await shownBy(keeper)).to.include({ [key]: inForce })
          const other = await keeper.change({ smtp_port: inForce === chosen ? '25' : '26' })
          expect(other).to.have.nested.property(`settings.${key}`, inForce)
          expect(await shownBy(keeper)).to.include({ [key]: inForce })
          expect(keeper.faults().map(({ key }) => key)).to.deep.equal([key])
        }
        expect(logged).to.have.length(2)
        for (const line of logged) expect(line).to.include(`"${key}"`).and.not.include('canary')
        expect((await store.read()).values).to.include({ [key]: bad })
      }
      const repaired = keeperOf(store)
      expect(await repaired.change({ [key]: strictest })).to.deep.include({ changed: [key] })
      expect((await store.read()).values).to.include({ [key]: strictest })
      await repaired.change({ [key]: undefined })
      expect(await shownBy(repaired)).to.include({ [key]: settingNamed(key)?.default })
      expect(repaired.faults()).to.deep.equal([])
    })
  }

  it('lets no maximum lower a minimum, even where one of them is not valid (SET-18)', async () => {
    const store = keptInMemory().settings
    const running = keeperOf(store)
    await running.change({ [min]: '70', [max]: '72' })
    for (const [values, kept, started] of [
      [{ [min]: 'canary', [max]: '10' }, 70, 15],
      [{ [min]: '70', [max]: 'canary' }, 70, 70],
      [{ [min]: '70', [max]: '10' }, 70, 70],
    ] as const) {
      await store.write(values, (await store.read()).version)
      const starting = keeperOf(store)
      for (const keeper of [running, starting]) {
        const least = keeper === running ? kept : started
        await keeper.refresh()
        expect(keeper.current()).to.include({ minPasswordLength: least, maxPasswordLength: 72 })
        expect(await shownBy(keeper)).to.include({ [min]: String(least), [max]: '72' })
        expect(await keeper.change({ [max]: '14' })).to.have.length(1)
      }
    }
    expect(await running.change({ [max]: '71' })).to.deep.include({ changed: [max] })
    expect(running.current()).to.include({ minPasswordLength: 70, maxPasswordLength: 71 })
  })

  it('says so where two stored values exclude each other, and takes other changes', async () => {
    const store = keptInMemory().settings
    await store.write({ [min]: '70', [max]: '10' }, 0)
    const keeper = await startedOn(store)
    expect(logged.join()).to.include(max)
    expect(await keeper.change({ smtp_port: '26' })).to.deep.include({ changed: ['smtp_port'] })
    expect(await keeper.change({ [max]: '7' })).to.have.length(1)
    expect(await keeper.change({ [min]: '30' })).to.deep.include({ changed: [min, max] })
    expect(await shownBy(keeper)).to.include({ [min]: '30', [max]: '64' })
    await keeper.change({ [min]: '9', [max]: '12' })
    expect(keeper.current()).to.include({ minPasswordLength: 9, maxPasswordLength: 12 })
  })

  it('has no mail server where no key opens its password, says so, and keeps the rest (FLT-23)', async () => {
    const store = keptInMemory().settings
    await keeperOf(store).change({ smtp_host: 'a', smtp_port: '26', smtp_password: 'canary' })
    const keeper = await startedOn(store, ring(2))
    const closed = { smtpHost: 'a', smtpFault: 'No key of the ring opens smtp_password' }
    expect(keeper.current()).to.include(closed)
    expect(smtpSettings(keeper.current())).to.equal(undefined)
    expect(keeper.current().smtpPassword).to.equal(undefined)
    expect(await shownBy(keeper)).to.include({ smtp_host: 'a' })
    const { read } = store
    store.read = async () => ({ ...(await read()), values: {}, isUnreadable: true })
    await keeper.refresh()
    expect(keeper.current()).to.include(closed)
    expect(logged.join()).to.include('smtp_password').and.not.to.include('canary')
  })

  it('gives the password to no host but the one that it was given for, also where the record was edited', async () => {
    const store = keptInMemory().settings
    const host = 'mail.example'
    await keeperOf(store).change({ smtp_host: host, smtp_password: 'canary' })
    const { values, version } = await store.read()
    await store.write({ ...values, smtp_host: 'evil.example' }, version)
    const keeper = await startedOn(store)
    expect(keeper.current().smtpPassword).to.equal(undefined)
    expect(smtpSettings(keeper.current())).to.equal(undefined)
    expect(logged.join()).to.include('smtp_password').and.not.to.include('canary')
    await store.write(values, version + 1)
    await keeper.refresh()
    expect(keeper.current()).to.include({ smtpHost: host, smtpPassword: 'canary' })
  })

  it('forgets the password where the port becomes another one without it: something else may listen there (SET-08)', async () => {
    const store = keptInMemory().settings
    const login = { smtp_host: 'a.example', smtp_port: '587', smtp_password: 'canary' }
    await keeperOf(store).change(login)
    const { values, version } = await store.read()
    const outcome = await keeperOf(store).change({ smtp_port: '2525' })
    expect(JSON.stringify(outcome)).to.include('smtp_port changed without smtp_password')
    expect((await store.read()).values['smtp_password']).to.equal('')
    const edited = keptInMemory().settings
    await edited.write({ ...values, smtp_port: '2525' }, version - 1)
    const keeper = await startedOn(edited)
    expect(keeper.current()).to.include({ smtpPort: 2525, smtpPassword: undefined })
    await keeperOf(store).change({ smtp_port: '587', smtp_password: 'canary' })
    const honest = await startedOn(store)
    expect(honest.current()).to.include({ smtpPort: 587, smtpPassword: 'canary' })
  })

  it('keeps a password that is sent again with another host, and one that it cannot open when something else changes', async () => {
    const store = keptInMemory().settings
    await keeperOf(store).change({ smtp_host: 'one.example', smtp_password: 'secret' })
    await keeperOf(store).change({ smtp_host: 'two.example', smtp_password: 'secret' })
    await keeperOf(store, ring(2)).change({ smtp_from: 'a@b.example' })
    const { smtpHost, smtpFrom, smtpPassword } = (await startedOn(store)).current()
    const kept = ['two.example', 'a@b.example', 'secret']
    expect([smtpHost, smtpFrom, smtpPassword]).to.deep.equal(kept)
  })

  it('loses none of two changes at the same time, in one process and in two (SET-14)', async () => {
    const changed = { smtpPort: 26, smtpPassword: 'secret', smtpFrom: 'a@b.example' }
    for (const processes of [1, 2]) {
      const store = keptInMemory().settings
      const one = keeperOf(store)
      await one.change({ smtp_port: '26' })
      const other = processes === 1 ? one : keeperOf(store)
      const [password, from] = [{ smtp_password: 'secret' }, { smtp_from: 'a@b.example' }]
      await Promise.all([one.change(password), other.change(from)])
      if (processes === 2) await one.refresh()
      expect(one.current()).to.include(changed)
    }
  })

  it('never goes back to older settings when a look at the store comes late', async () => {
    const inner = keptInMemory().settings
    let arrives = Promise.resolve()
    const late: AccountFlowsStore['settings'] = {
      ...inner,
      async read() {
        const [stored, arrived] = [await inner.read(), arrives]
        await arrived
        return stored
      },
    }
    const keeper = keeperOf(late)
    await keeper.change({ smtp_port: '26' })
    await inner.write({ smtp_port: '27' }, 1)

    let arrive = () => {}
    arrives = new Promise((resolve) => (arrive = resolve))
    const looking = keeper.refresh()
    await new Promise(setImmediate)
    arrives = Promise.resolve()
    const changing = keeper.change({ smtp_port: '28' })
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
    arrive()
    await Promise.all([looking, changing])
    expect(keeper.current().smtpPort).to.equal(28)
  })
})

describe('parseDuration() (2.5)', () => {
  const durations: Record<string, number> = {
    '1s': 1_000,
    '59s': 59_000,
    '90s': 90_000,
    '90m': 5_400_000,
    '1h': 3_600_000,
    '24h': 86_400_000,
    '7d': 604_800_000,
    '1h30m': 5_400_000,
    '1d2h3m4s': 93_784_000,
    '1d4s': 86_404_000,
    '100h': 360_000_000,
    '999999d': 86_399_913_600_000,
  }
  for (const [text, ms] of Object.entries(durations)) {
    it(`reads ${text} as ${ms} ms`, () => expect(parseDuration(text)).to.equal(ms))
  }

  const others = ['', ' ', '0', '0s', '00s', '1', '60', '-1h', '+1h', '1.5h', '1,5h', '1e3h', '01h']
  others.push(' 1h', '1h ', '1 h', '1h\n', '\n1h', '1h 30m', '1h30', '30m1h', '1h1h', '1h0m', 'h')
  others.push('1H', '1D', '1M', 'PT1H', '1ms', '1w', '1y', '1hour', '0x1h', '١h', '１h', 'Infinity')
  others.push('NaN', 'null', '9999999d', '99999999999h', '1h;', '1h\0', `${'1'.repeat(100_000)}h`)
  for (const text of others) {
    it(`refuses ${JSON.stringify(text).slice(0, 40)}`, () => {
      expect(parseDuration(text)).to.equal(undefined)
    })
  }
})

describe('isLoopbackHost()', () => {
  it('is true of this machine, in every spelling, and of nothing else', () => {
    const own = `localhost LOCALHOST App.LocalHost 127.0.0.1 127.255.0.9 ::1 [::1] 0:0:0:0:0:0:0:1
      ::ffff:127.0.0.1 ::ffff:7f00:1`
    for (const host of own.split(/\s+/)) expect(isLoopbackHost(host), host).to.equal(true)
    const others = `128.0.0.1 10.0.0.1 0.0.0.0 127.1 127.0.0.256 127.0.0.1. ::2 :: ::127.0.0.1 [::1 [localhost]x
      localhost. .localhost ..localhost notlocalhost localhost.evil.example 127.0.0.1.evil.example`
    for (const host of ['', ...others.split(/\s+/)]) {
      expect(isLoopbackHost(host), host).to.equal(false)
    }
  })
})

/** Whoever reads one of these as an address mails to another mailbox, to several, or says more than an address. */
const MALFORMED: Record<string, string> = {
  'a bare LF': 'victim@users.example\nRCPT TO:<attacker@evil.example>',
  'a bare CR': 'victim@users.example\rattacker@evil.example',
  'NEL and a line separator': 'victim@users.example\u0085\u2028attacker@evil.example',
  'a semicolon': 'victim@users.example;attacker@evil.example',
  'a space': 'victim@users.example attacker@evil.example',
  'angle brackets': '<attacker@evil.example>',
  'two angle brackets': '<victim@users.example><attacker@evil.example>',
  'a group': 'friends: victim@users.example, attacker@evil.example;',
  'a comment': 'victim(attacker@evil.example)@users.example',
  'a quoted local part': '"attacker@evil.example x"@users.example',
  'a quoted pair': '"a\\"b"@users.example',
  'two at signs': 'victim@users.example@evil.example',
  'parameters of SMTP': 'victim@users.example> NOTIFY=SUCCESS ORCPT=rfc822;x@evil.example',
  'an international domain': 'victim@b\u00fccher.example',
  'an international local part': 'v\u0131ctim@users.example',
  'a tab': 'victim@users.example\t',
  'a route': '@evil.example:victim@users.example',
  'no domain': 'victim',
  'no local part': '@users.example',
  'a dot at the end': 'victim@users.example.',
  'a local part of 65': `${'a'.repeat(65)}@users.example`,
  '255 characters': `a@${'b.'.repeat(125)}example`.slice(0, 255),
  'very many dots': `${'a.'.repeat(50_000)}@`,
  'many hyphens': `a@${'a-'.repeat(120)}`,
  'a dot in front': '.a@b.io',
  'two dots': 'a..b@b.io',
  'two dots in the domain': 'a@b..io',
  'a hyphen in front of the domain': 'a@-b.io',
  'a ligature in the domain': 'a@\uFB00.example',
  'an override of the direction': 'a\u202E@b.io',
  'a line break at the end': 'victim@example.com\n',
  'no domain after the at sign': 'a@',
  'a domain of 260': `a@${'b.'.repeat(130)}io`,
  nothing: '',
}

describe('isMailAddress()', () => {
  it('takes plain addresses', () => {
    for (const address of [
      'ada@example.org',
      'Ada.Lovelace+reset@mail.example.co.uk',
      "o'neil@example.org",
      'root@localhost',
      'a@xn--bcher-kva.example',
      `${'a'.repeat(64)}@b.io`,
    ])
      expect(isMailAddress(address), address).to.equal(true)
  })

  for (const [what, address] of Object.entries(MALFORMED)) {
    it(`takes no address with ${what}`, () => {
      expect(isMailAddress(address)).to.equal(false)
    })
  }
})

describe('mailboxKey()', () => {
  it('is the same for what many mail servers put into one mailbox, and no other', () => {
    for (const other of ['V.ictim+x@gmail.com', 'vic.tim@googlemail.com', 'victim@Gmail.com'])
      expect(mailboxKey(other)).to.equal(mailboxKey('victim@gmail.com'))
    for (const other of ['victim@gmail.co', 'victims@gmail.com', 'victim@mail.com'])
      expect(mailboxKey(other)).to.not.equal(mailboxKey('victim@gmail.com'))
  })
})
