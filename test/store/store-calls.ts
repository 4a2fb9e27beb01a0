import { systemClock } from '../../src/clock.ts'
import type { UserStore } from '../../src/index.ts'
import type { RecordStore } from '../../src/store/published.ts'
import { flowsStore } from '../../src/store/index.ts'
import {
  after as later,
  hour,
  minute,
  sampleClaim,
  sampleClientLogout,
  sampleMailJob,
  sampleNotMeToken,
  samplePendingLogin,
  sampleResetToken,
} from './contract/samples.ts'
import { adapterOn } from '../support/kept.ts'

/** Every method of every port, called with an example; a method without one fails the test. */
export function storeCalls(
  records: RecordStore,
  users: UserStore,
): [name: string, call: () => Promise<unknown>][] {
  const text = 'x'
  const token = sampleResetToken({ id: text, tokenHash: text, userId: text, pendingLoginId: text })
  const login = samplePendingLogin({ id: text, accountId: text })
  const job = { ...sampleMailJob({ id: text }), requestedAt: later(0), attempts: 1, leaseId: text }
  const logout = sampleClientLogout({ id: text, accountId: text })
  const notMe = sampleNotMeToken({ id: text, userId: text })
  const event = { id: text, type: 'sessions_ended', at: later(0) } as const
  const providerRecord = { id: text, model: text, sealed: text }
  const [soon, then] = [later(1), later(2)]
  const ofResets = ['resetTokens', 'invitationTokens'].flatMap((part): Example[] => [
    [`${part}.issue`, token],
    [`${part}.find`, text],
    [`${part}.ofUser`, text, 1],
    [`${part}.claim`, { id: text }, sampleClaim({ at: soon, leaseUntil: then })],
    [`${part}.takeUnfinished`, then, later(3)],
    [`${part}.advance`, text, 'used', later(3)],
    [`${part}.advance`, text, 'completed', later(3)],
    [`${part}.expire`, text, soon],
    [`${part}.revoke`, { userId: text, upTo: token }, soon],
  ])
  const examples: Example[] = [
    ['store.start'],
    ['users.start'],
    ['adapters.start'],
    ...ofResets,
    ['verificationTokens.issue', token],
    ['verificationTokens.find', text],
    ['verificationTokens.ofUser', text, 1],
    ['verificationTokens.expire', text, soon],
    ['verificationTokens.use', token.userId, () => true, soon],
    ['verificationTokens.revoke', { userId: text }, soon],
    ['verificationTokens.revoke', { userId: text, upTo: token }, soon],
    ['verificationTokens.latestExpiry', soon],
    ['notMeTokens.issue', notMe],
    ['notMeTokens.find', text],
    ['notMeTokens.block', text, text],
    ['notMeTokens.use', text, soon],
    ['pendingLogins.save', login, 1],
    ['pendingLogins.find', { id: text }],
    ['pendingLogins.find', { accountId: text, browserHash: text }],
    ['pendingLogins.find', { accountId: text, parameters: { clientId: 'app' } }],
    ['pendingLogins.find', { accountId: text, addressId: text }],
    ['pendingLogins.withOther', text],
    ['pendingLogins.setOther', login, { id: text, email: text, typedAt: 1 }, soon],
    ['pendingLogins.change', { id: text }, { purgeAt: soon }],
    ['pendingLogins.change', { accountId: text }, { isVoid: true }],
    ['pendingLogins.setTurn', text, text, soon],
    ['pendingLogins.setTurn', text, text, undefined],
    ['cutoffs.end', text, { id: text, at: soon }],
    ['cutoffs.read', text],
    ['outbox.add', job],
    ['outbox.claim', 'resolve', 1, soon, then],
    ['outbox.resolve', job, text, then],
    ['outbox.requestsOf', text, 'password_reset'],
    ['outbox.supersede', [text], soon],
    ['outbox.release', job, soon],
    ['outbox.isHeld', job],
    ['outbox.claim', 'send', 1, soon, then],
    ['outbox.claim', 'expire', 1, soon, then],
    ['outbox.giveUpUnreadable', soon],
    ['outbox.giveUp', job, soon, text],
    ['outbox.list', { limit: 1 }, soon],
    ['outbox.list', { id: text, limit: 1 }, soon],
    ['outbox.list', { state: 'dead', limit: 10 }, soon],
    ['outbox.list', { state: 'waiting', limit: 10 }, soon],
    ['outbox.list', { accountId: text, limit: 10 }, soon],
    ['outbox.revive', text, soon, later(hour)],
    ['outbox.discard', { id: text }, soon],
    ['outbox.discard', 'dead', soon],
    ['outbox.remove', job],
    ['clientLogouts.add', [logout]],
    ['clientLogouts.claim', 1, soon, then, ['other']],
    ['clientLogouts.settle', { ...logout, leaseId: text }, { state: 'sent', at: soon }],
    ['clientLogouts.find', { accountId: text }],
    ['clientLogouts.find', { accountId: text, endId: text }],
    ['limits.hit', text, minute],
    ['limits.peek', text],
    ['limits.giveBack', text],
    ['audit.record', event, hour],
    ['audit.list', { id: text, limit: 1 }],
    ['audit.list', { types: [event.type], limit: 10 }],
    ['audit.list', { accountId: text, limit: 10 }],
    ['audit.list', { identifierHash: text, limit: 10 }],
    ['audit.list', { types: [event.type], recordedFrom: later(0), limit: 10 }],
    ['audit.list', { accountId: text, recordedFrom: later(0), types: [event.type], limit: 10 }],
    ['audit.list', { identifierHash: text, recordedFrom: later(0), limit: 10 }],
    ['settings.read'],
    ['settings.write', {}, 0],
    ['keyRings.note', text, [text]],
    ['keyRings.noted', minute],
    ['keyRings.note', text, []],
    ['store.now'],
    ['store.inspect'],
    ['store.forget', text, later(3), text],
    ['users.findById', text],
    ['users.findByUsername', text],
    ['users.findByUsernameInAnyCase', text],
    ['users.findByVerifiedEmail', text],
    ['users.findByEmail', text],
    ['users.replacePasswordHash', text, text, text],
    ['users.setFirstPassword', text, text, text],
    ['users.markEmailVerified', text, text],
    ['users.markEmailUnverified', text, text],
    ['users.replaceEmail', text, text, text],
    ['providerRecords.get', text],
    ['providerRecords.getReadable', text],
    ['providerRecords.find', { equal: { accountId: text }, after: { id: '' }, limit: 1 }],
    ['providerRecords.findAll', { after: { id: text }, limit: 1 }],
    ['providerRecords.insert', providerRecord],
    ['providerRecords.overwrite', providerRecord],
    ['providerRecords.save', providerRecord, () => providerRecord],
    ['providerRecords.change', text, () => ({ next: providerRecord })],
    ['providerRecords.update', text, () => providerRecord],
    ['providerRecords.take', text, () => providerRecord],
    ['providerRecords.updateAll', [{ id: text }], () => undefined],
    ['providerRecords.remove', text],
    ['adapter.upsert', text, {}, 60],
    ['adapter.find', text],
    ['adapter.findByUid', text],
    ['adapter.findByUserCode', text],
    ['adapter.consume', text],
    ['adapter.destroy', text],
    ['adapter.revokeByGrantId', text],
    ['adapter.destroyByAccountId', text, () => true],
  ]
  const store = flowsStore(records, systemClock)
  const adapters = adapterOn(store)
  const ports: Record<string, object> = {
    ...store,
    store,
    users,
    adapters: { start: adapters.start },
    adapter: adapters.of('Session'),
  }
  const named = new Set(examples.map(([name]) => name))
  const ofTheWholeStore = new Set(['start', 'purge', 'wrongIndexes', 'forget'])
  for (const [portName, port] of Object.entries(ports)) {
    for (const [name, method] of Object.entries(port)) {
      if (typeof method !== 'function' || ofTheWholeStore.has(name)) continue
      if (!named.has(`${portName}.${name}`))
        throw new TypeError(`no example of ${portName}.${name}`)
    }
  }
  return examples.map(([name, ...given]) => {
    const [portName = '', methodName = ''] = name.split('.')
    const port = ports[portName] ?? {}
    return [name, async () => Reflect.apply(Reflect.get(port, methodName), port, given)]
  })
}

type Example = [name: string, ...given: unknown[]]
