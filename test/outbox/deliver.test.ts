import { expect } from 'chai'
import { deliverMail } from '../../src/outbox/deliver.ts'
import { resolveJob } from '../../src/outbox/resolve.ts'
import { endOf } from '../../src/ports/token-end.ts'
import { SEND_LEASE_MS, type SendTurn } from '../../src/outbox/send-turn.ts'
import { ANN, AT_ONCE, outboxByHand } from '../support/outbox-parts.ts'
import { sha256, tokenOf } from '../support/observe.ts'

describe('A mail whose worker was held up until its hold on it was over', () => {
  for (const isFlowing of [false, true]) {
    it(`is not sent by it: whoever takes it next sends it (mails ${isFlowing ? 'flow' : 'do not flow'})`, async () => {
      const { parts, mails, ask, claim, move, after } = await outboxByHand()
      const turn: SendTurn = {
        ...AT_ONCE,
        take: (send) => send(new AbortController().signal, isFlowing),
      }
      const { sender } = parts
      const slow = {
        ...sender,
        async connect(...given: Parameters<typeof sender.connect>) {
          move(SEND_LEASE_MS)
          return sender.connect(...given)
        },
      }
      await ask()
      const [job] = await claim()
      const held = job && (await resolveJob(parts, job))
      if (!held) throw new TypeError('nothing is to be sent')

      await deliverMail({ ...parts, sender: slow }, held, turn)
      expect(mails).to.deep.equal([])
      const [letter] = await parts.store.resetTokens.ofUser(ANN.id, 10)
      expect(letter?.expiresAt).to.satisfy((at: Date) => at <= after(0))

      const [again] = await claim('send')
      if (!again) throw new TypeError('nobody can take it')
      await deliverMail(parts, again, turn)
      expect(mails.map(({ to }) => to)).to.deep.equal([ANN.email])
      const token = tokenOf(/https:\S+/.exec(mails[0]?.text ?? '')?.[0] ?? '')
      const sent = await parts.store.resetTokens.find(sha256(token))
      expect(sent).to.include({ userId: ANN.id })
      expect(sent && endOf(sent, after(0))).to.equal(undefined)
      expect(await parts.store.outbox.list({ limit: 10 }, after(0))).to.deep.equal([])
    })
  }
})
