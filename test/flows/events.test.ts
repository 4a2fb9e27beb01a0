import { expect } from 'chai'
import { type AuditEvent, type Log } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { suiteHarness } from '../support/harness.ts'
import { keptInMemory } from '../support/kept.ts'
import { moveTime, movableClock } from '../support/time.ts'

const MINUTE = 60_000

describe('Listeners of flows.events (6)', () => {
  const store = keptInMemory(movableClock)
  const logged: { level: string; message: string; details: ReturnType<typeof Object> }[] = []
  const log: Log = (level, message, details) => logged.push({ level, message, details })
  const h = suiteHarness({ mayLogErrors: true, flows: { store: store.records, log } })
  const complaints = () => logged.filter(({ message }) => message.includes('listener'))
  const recorded = () => store.recorded().map(({ id }) => id)

  beforeEach(() => logged.splice(0))
  afterEach(() => h.flows.events.removeAllListeners())

  it('hear of all of a load, once each, beside others that throw, reject or never return (FLT-19)', async () => {
    const before = recorded().length
    const heard: string[] = []
    function throwing() {
      throw Object.assign(new Error('it throws'), { code: 'E_LISTENER' })
    }
    h.flows.events.on('audit', throwing)
    // oxlint-disable typescript/no-misused-promises -- hosts do this
    h.flows.events.on('audit', () => Promise.reject(new Error('it rejects')))
    h.flows.events.on('audit', () => Promise.reject(Object.create(null)))
    h.flows.events.on('audit', () => new Promise(() => {}))
    // oxlint-enable typescript/no-misused-promises
    h.flows.events.on('audit', (event) => Object.assign(event, { id: 'changed', details: {} }))
    h.flows.events.on('audit', ({ id }) => heard.push(id))

    const people = await Promise.all(Array.from({ length: 8 }, () => h.addVerified()))
    await Promise.all(people.map((person) => person.forgets()))
    await Promise.all(
      people.map(async ({ choosesPassword }) => {
        expect((await choosesPassword('a new password')).mode).to.equal('done')
        expect((await choosesPassword('another password')).mode).to.equal('invalid')
      }),
    )
    await (await h.blockedLogin()).stillGetsIn()
    await h.put({ resend_cooldown: '0s' })

    const told = recorded().slice(before)
    expect(told.length).to.be.at.least(8 * 4 + 4)
    await eventually('all are heard', () => heard.length === told.length)
    expect(heard).to.have.members(told)
    const errors = ['Error: it throws', 'Error: it rejects', 'object']
    expect(complaints().map(({ details }) => details.error)).to.have.members(errors)
    const [first] = complaints()
    expect(first?.level).to.equal('error')
    expect(first?.details).to.include({ code: 'E_LISTENER', type: 'password_reset_requested' })
    expect(first?.details.at[0]).to.match(/throwing .*events\.test/)
  })

  it('do no harm with what they throw, even where reading that throws', async () => {
    const boom = () => {
      throw new Error('it cannot be read')
    }
    const odd = [
      undefined,
      Symbol('odd'),
      Object.defineProperty({}, 'code', { get: boom }),
      Object.assign(new Error('odd'), { toString: boom }),
      Object.assign(new Error('odd'), { stack: 5 }),
      new Proxy(new Error('odd'), { get: boom, getPrototypeOf: boom }),
    ]
    for (const thrown of odd)
      h.flows.events.on('settings_changed', () => {
        throw thrown
      })
    const heard: string[] = []
    h.flows.events.on('settings_changed', ({ id }) => heard.push(id))
    await h.put({ resend_cooldown: '1s' })
    await h.put({ resend_cooldown: '0s' })
    expect(heard).to.have.length(2)
    await eventually('all are logged', () => complaints().length === odd.length)
  })

  it('that fail are logged once a minute each, with how often they failed', async () => {
    h.flows.events.on('audit', () => {
      throw new Error('it throws')
    })
    const failures = () => complaints().map(({ details }) => details.failures)
    await h.put({ resend_cooldown: '1s' })
    await h.put({ resend_cooldown: '0s' })
    expect(failures()).to.deep.equal([1])
    await moveTime(MINUTE)
    await h.put({ resend_cooldown: '1s' })
    expect(failures().slice(0, 2)).to.deep.equal([1, 5])
    expect(failures()).to.have.length(2)
  })

  it('hear one type alone where they ask for it, narrowed to what it tells', async () => {
    const changes: string[] = []
    const all: string[] = []
    h.flows.events.on('settings_changed', ({ type, details: { actor, keys } }) =>
      changes.push(type, actor, ...keys),
    )
    h.flows.events.once('settings_changed', ({ id }) => all.push(id))
    h.flows.events.on('audit', ({ id }) => all.push(id))
    // @ts-expect-error -- there is no such event
    h.flows.events.on('password_reset_complete', () => changes.push('never'))
    // @ts-expect-error -- it has no account
    h.flows.events.on('settings_changed', ({ accountId }) => accountId.slice())
    await h.put({ resend_cooldown: '0s' })
    await h.put({ resend_cooldown: '1s' })
    const change = ['settings_changed', 'admin_token', 'resend_cooldown']
    expect(changes).to.deep.equal([...change, ...change])
    expect(all).to.have.length(1 + recorded().slice(-4).length)
  })

  it('switch on the type, and read details without casts', async () => {
    const told: (string | number | undefined)[] = []
    function listener(event: AuditEvent) {
      // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- there is a default
      switch (event.type) {
        case 'settings_changed':
          return told.push(event.details.actor, ...event.details.keys)
        case 'sessions_ended':
          // @ts-expect-error -- it has no reason
          return told.push(event.accountId, event.details.oauth, event.reason.slice())
        case 'password_reset_rejected':
          if (event.reason === 'too_many_requests') return told.push(event.address)
          return told.push(event.accountId.slice())
        case 'admin_auth_failed':
          return event.reason === 'insufficient_scope' && told.push(event.details.scope.slice())
        // @ts-expect-error -- there is no such type
        case 'password_was_changed':
          return told.push('never')
        default:
          return told.push(event.type)
      }
    }
    h.flows.events.on('audit', listener)
    await h.put({ resend_cooldown: '0s' })
    expect(told).to.deep.equal(['admin_action', 'admin_token', 'resend_cooldown'])
  })
})
