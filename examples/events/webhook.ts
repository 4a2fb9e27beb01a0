import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db, Document } from 'mongodb'

/**
 * Posts every recorded event until `url` answers 2xx, signed by `secret` (`whsec_…`, https://www.standardwebhooks.com). Run it in any
 * number of processes. An event is due until it has a mark, so none is skipped, whoever dies and whatever the clocks say.
 */
export async function sendWebhooks(db: Db, url: string, secret: string, signal: AbortSignal) {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  if (key.length < 24) throw new TypeError('secret must be whsec_ and 24 bytes or more in base64')
  const events = db.collection<Document & { _id: string }>('audit_events')
  const due = { webhook_sent_at: null, $expr: { $lte: ['$webhook_due_at', '$$NOW'] } }
  const inAMinute = [{ $set: { webhook_due_at: { $add: ['$$NOW', 60_000] } } }]
  const oldest = { webhook_due_at: 1, recorded_at: 1 } as const
  await events.createIndex(oldest, { partialFilterExpression: { webhook_sent_at: null } })
  const report = (error: unknown) => console.error('webhook:', String(error))
  while (!signal.aborted) {
    const event = await events.findOneAndUpdate(due, inAMinute, { sort: oldest }).catch(report)
    const sent = event && (await post(event).catch(report))
    if (sent) await events.updateOne(sent, { $set: { webhook_sent_at: new Date() } }).catch(report)
    else await sleep(1_000, undefined, { signal }).catch(() => {})
  }

  async function post(event: Document & { _id: string }) {
    const { _id: id, type, at: timestamp, account_id, client_id, reason, details } = event
    const data = { account_id, client_id, reason, details }
    const body = JSON.stringify({ type, timestamp, data }, (_name, value) => value ?? undefined)
    const time = String(Math.floor(Date.now() / 1000))
    const mac = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')
    const signed = { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${mac}` }
    const headers = { ...signed, 'content-type': 'application/json' }
    const late = AbortSignal.timeout(10_000) // Held below: Node 20 drops one that only `any` has.
    const end = AbortSignal.any([signal, late])
    const init = { method: 'POST', headers, body, redirect: 'manual', signal: end } as const
    const { ok, status, body: rest } = await fetch(url, init).finally(() => void late)
    await rest?.cancel()
    return ok ? { _id: id } : report(`${id}: the endpoint answered ${status}`)
  }
}
