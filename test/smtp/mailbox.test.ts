import { expect } from 'chai'
import { memoryMailbox } from '../../src/smtp/mailbox.ts'
import { MAIL } from '../support/mail-sending.ts'

describe('memoryMailbox', () => {
  it('keeps the newest mails, newest first, each with a time and an id', async () => {
    const mailbox = memoryMailbox({ limit: 2 })
    for (const subject of ['one', 'two', 'three']) await mailbox.send({ ...MAIL, subject })
    const messages = mailbox.messages()
    expect(messages.map(({ subject }) => subject)).to.deep.equal(['three', 'two'])
    expect(new Set(messages.map(({ id }) => id)).size).to.equal(2)
    expect(messages[0]?.receivedAt).to.be.instanceOf(Date)
    expect(messages[0]).to.deep.include({ ...MAIL, subject: 'three' })
  })
})
