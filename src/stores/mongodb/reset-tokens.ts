import type { Collection, Filter } from 'mongodb'
import type { ResetStep, ResetTokenStore } from '../../ports/index.ts'
import { endOf } from '../../ports/token-end.ts'
import { type OpenCollection, readable } from './collection.ts'
import { reached, text, time } from './conditions.ts'
import { type AccountPart, accountPart } from './forget.ts'
import { type NamedIndex } from './indexes.ts'
import { liveIndexes, liveResetTokens } from './live-reset-tokens.ts'
import { toRequesterFields } from './request-types.ts'
import {
  fromTokenDocument,
  isClaimed,
  isWholeReset,
  type ResetTokenDocument,
  toClaimedReset,
} from './token-document.ts'
import { isInTime, mongoTokens, revoked, tokenIndexes } from './tokens.ts'

const unfinished: NamedIndex = { name: 'unfinished', key: { lease_until: 1 }, sparse: true }

export function mongoResetTokens(
  open: OpenCollection,
  name: 'password_reset_tokens' | 'invitation_tokens',
): ResetTokenStore & AccountPart {
  const collection = open<ResetTokenDocument>(name)
  const { issue, invalidateUpTo } = liveResetTokens(collection)
  return {
    ...accountPart(collection, [...tokenIndexes, ...liveIndexes, unfinished], 'user_id', () => ({
      lease_until: { $exists: true },
    })),
    ...mongoTokens(open, name, isWholeReset),
    ...claims(collection),
    issue,

    async revoke(which, at) {
      if ('userId' in which && which.upTo) return invalidateUpTo(which.userId, which.upTo, at)
      await collection.updateMany(
        { ...revoked(which), live: true, ...isInTime(at) },
        { $set: { expires_at: at } },
      )
    },
  }
}

/** From the claim of a reset to its end. */
function claims(
  collection: Collection<ResetTokenDocument>,
): Pick<ResetTokenStore, 'claim' | 'takeUnfinished' | 'advance'> {
  return {
    async claim(tokenHash, { newHash, by, at, leaseUntil }) {
      const claimed = {
        claimed_at: time(at),
        claimed_by: toRequesterFields(by),
        new_hash: text(newHash),
        lease_until: time(leaseUntil),
      }
      const token = await collection.findOne({ token_hash: text(tokenHash), ...isInTime(at) })
      if (!token || !isWholeReset(token) || endOf(fromTokenDocument(token), at)) return undefined
      const document = await collection.findOneAndUpdate(
        { _id: token._id, live: true, ...isInTime(at) },
        { $set: claimed, $unset: { live: true } },
        { returnDocument: 'after' },
      )
      return document ? toClaimedReset(document) : undefined
    },

    async takeUnfinished(at, leaseUntil) {
      const left = collection.find({ lease_until: reached(at) }).sort({ lease_until: 1 })
      for await (const { _id } of readable(left, isClaimed)) {
        const document = await collection.findOneAndUpdate(
          { _id, lease_until: reached(at) },
          { $set: { lease_until: time(leaseUntil) } },
          { returnDocument: 'after' },
        )
        if (document) return toClaimedReset(document)
      }
      return undefined
    },

    async advance(id, step, at) {
      const { from, sets, unset } = STEPS[step]
      const document = await collection.findOneAndUpdate(
        { _id: text(id), claimed_at: { $type: 'date' }, ...from },
        { $set: { [sets]: time(at) }, $unset: unset },
        { returnDocument: 'after' },
      )
      // Once set, a time never changes, so that a second look is as good as one step.
      const taken = document ?? (await collection.findOne({ _id: id, [sets]: { $type: 'date' } }))
      return taken && isWholeReset(taken) ? fromTokenDocument(taken) : undefined
    },
  }
}

interface Step {
  from: Filter<ResetTokenDocument>
  sets: 'used_at' | 'invalidated_at' | 'completed_at'
  unset: { new_hash?: true; lease_until?: true }
}

const isNull = { $type: 'null' } as const
const isOpen = { used_at: isNull, invalidated_at: isNull }

const STEPS: Record<ResetStep, Step> = {
  used: { from: isOpen, sets: 'used_at', unset: { new_hash: true } },
  rejected: { from: isOpen, sets: 'invalidated_at', unset: { new_hash: true, lease_until: true } },
  completed: {
    from: { used_at: { $type: 'date' }, completed_at: isNull },
    sets: 'completed_at',
    unset: { lease_until: true },
  },
}
