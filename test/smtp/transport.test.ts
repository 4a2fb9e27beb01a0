import { expect } from 'chai'
import { createTransport } from 'nodemailer'
import type { MailTransport, TransportAnswer, TransportMail, User } from '../../src/index.ts'
import { adminOf, outcomeOf, suiteAdmin } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { startHarness } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { eventsOf, sha256, tokenOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'

type Send = MailTransport['send']

/** Settles one promise again and again. */
const settledBy = (
  ...steps: ((
    ends: [resolve: (answer: TransportAnswer) => void, reject: (error: Error) => void],
  ) => void)[]
) =>
  new Promise<TransportAnswer>((...ends) => {
    for (const step of steps) step(ends)
  })

const linkOf = ({ text }: TransportMail) => /https?:\/\/\S+/.exec(text)?.[0] ?? ''

describe('A transport of the host, in the place of SMTP', () => {
  const logged: string[] = []
  let handed: TransportMail[] = []
  let answers: Send[] = []
  const transport: MailTransport = {
    async send(mail, signal) {
      handed.push(mail)
      const answer = answers.shift() ?? (async () => ({ accepted: true }) as const)
      return answer(mail, signal)
    },
  }
  const h = suiteHarness({
    flows: {
      transport,
      log: (level, message, details) => logged.push(JSON.stringify([level, message, details])),
    },
    settings: { smtp_from_name: 'Accounts' },
  })
  const admin = suiteAdmin(h)
  let added = 0

  beforeEach(() => {
    ;[handed, answers] = [[], []]
    logged.splice(0)
  })

  afterEach('an honest mail leaves, and nothing goes by SMTP', async () => {
    answers = []
    const user = await newUser()
    await h.forgot(user.username)
    await isIdle(h)
    expect((await h.reset(linkTo(user), 'a new password')).mode).to.equal('done')
    expect(h.mail.mails).to.deep.equal([])
  })

  const newUser = (changes: Partial<User> = {}) =>
    h.addUser({ username: `user-${(added += 1)}`, ...changes })
  const mailsTo = ({ email }: User) => handed.filter(({ to }) => to === email)
  const linkTo = (user: User) => linkOf(mailsTo(user).at(-1) ?? expect.fail('no mail'))
  const failuresOf = (user: User) => eventsOf(h, 'password_reset_mail_failed', user)

  /** The mail of a request, once it left, waits to be tried again, or is a dead letter. */
  async function asked(user: User, state: 'sent' | 'waiting' | 'dead') {
    const { mail_id } = await admin.sendReset({ id: user.id })
    if (state === 'waiting') await eventually('it failed', () => failuresOf(user)[0])
    return outcomeOf(h, mail_id, state)
  }

  it('is handed one composed mail, whose link works by then, and its id is kept', async () => {
    const user = await newUser()
    let isStored: boolean | undefined
    answers = [
      async (mail) => {
        isStored = (await h.store.resetTokens.find(sha256(tokenOf(linkOf(mail))))) !== undefined
        return { accepted: true, id: 'service-id-1' }
      },
    ]
    const { mail_id } = await asked(user, 'sent')
    const [mail] = handed
    expect(isStored).to.equal(true)
    expect(Object.keys(mail ?? {}).toSorted()).to.deep.equal(
      ['from', 'headers', 'html', 'messageId', 'subject', 'text', 'to'].toSorted(),
    )
    expect(mail).to.deep.include({
      from: { name: 'Accounts', address: 'accounts@idp.example' },
      to: user.email,
      headers: {
        'Auto-Submitted': 'auto-generated',
        'X-Auto-Response-Suppress': 'All',
        'X-Account-Flows-Mail': 'password_reset',
      },
    })
    expect(mail?.html).to.include('token=')
    expect(mail?.messageId).to.match(/^<[\w-]{36}@idp\.example>$/)
    const record = await admin.showMail({ mail_id })
    expect(record).to.include({ message_id: mail?.messageId, queue_id: 'service-id-1' })
    expect((await h.reset(linkTo(user), 'a new password')).mode).to.equal('done')
  })

  it('keeps no id that is none, or that has a piece of the link', async () => {
    const link = (mail: TransportMail) => linkOf(mail)
    const ids: ((mail: TransportMail) => unknown)[] = [
      () => '',
      () => 42,
      () => 'two words',
      () => 'a\r\nb',
      () => 'x'.repeat(201),
      link,
      (mail) => `id-${tokenOf(link(mail)).slice(0, 25)}`,
    ]
    for (const idOf of ids) {
      const user = await newUser()
      // The types forbid some of these; a host in JavaScript has no types.
      answers = [async (mail) => ({ accepted: true, id: idOf(mail) as string })]
      const { mail_id } = await asked(user, 'sent')
      expect(await admin.showMail({ mail_id })).to.not.have.property('queue_id')
      expect(JSON.stringify(h.events)).to.not.include(tokenOf(linkTo(user)).slice(0, 25))
    }
  })

  it('that refuses for good makes a dead letter, and its reason is kept without address, link and control characters', async () => {
    const user = await newUser()
    answers = [
      async (mail) => ({
        accepted: false,
        isForGood: true,
        reason: `<${mail.to}>\r\nis on\u0000our \u001b[31mlist: ${linkOf(mail)} ${'long '.repeat(1_000)}`,
      }),
    ]
    const dead = await asked(user, 'dead')
    expect(dead).to.include({ reason: 'ERR_MAIL_REFUSED', attempts: 1 })
    const [failure] = failuresOf(user)
    expect(failure?.details).to.include({ step: 'transport', code: 'refused' })
    const { reply = '' } = Object(failure?.details) as { reply?: string }
    expect(reply).to.match(/^<…> is on our \[31mlist: /)
    expect(reply).to.match(/^[^\p{C}]{1,200}$/u)
    const told = JSON.stringify([h.events, logged, await admin.showMail({ mail_id: dead.mail_id })])
    expect(told).to.not.include(tokenOf(linkTo(user)).slice(0, 20))
    expect(JSON.stringify(failure)).to.not.include(user.email)
    expect(logged.join()).to.include('refused the mail for good (refused)')
    expect((await h.reset(linkTo(user), 'a new password')).status).to.equal(400)
  })

  it('that says try again is asked again later, with a new token', async () => {
    const user = await newUser()
    answers = [async () => ({ accepted: false, isForGood: false, reason: 'Too many mails' })]
    const { mail_id } = await asked(user, 'waiting')
    expect(failuresOf(user)[0]?.reason).to.equal('ERR_MAIL_FAILED')
    expect(failuresOf(user)[0]?.details).to.deep.equal({
      step: 'transport',
      code: 'try again',
      reply: 'Too many mails',
    })
    await moveTime(60_000)
    await outcomeOf(h, mail_id, 'sent')
    const [first, second] = mailsTo(user).map(linkOf)
    expect(mailsTo(user)).to.have.length(2)
    expect((await h.reset(first ?? '', 'a new password')).status).to.equal(400)
    expect((await h.reset(second ?? '', 'a new password')).mode).to.equal('done')
  })

  const fetchError = () =>
    new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 192.0.2.1:443') })
  const odd: [what: string, code: string, reply: RegExp, send: () => unknown][] = [
    [
      'throws before it does anything',
      'unknown reason',
      /^No key$/,
      () => {
        throw new Error('No key')
      },
    ],
    ['rejects with what is no error', 'unknown reason', /^$/, () => Promise.reject('no')], // oxlint-disable-line prefer-promise-reject-errors
    [
      'rejects as fetch does',
      'unknown reason',
      /^fetch failed: connect ECONNREFUSED/,
      () => Promise.reject(fetchError()),
    ],
    [
      'has a code',
      'ECONNRESET',
      /^reset$/,
      () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' })),
    ],
    [
      'has a code that is none',
      'unknown reason',
      /^odd$/,
      () => Promise.reject(Object.assign(new Error('odd'), { code: 'x'.repeat(99) })),
    ],
    [
      'rejects after it answered',
      'try again',
      /^Busy$/,
      () =>
        settledBy(
          ([resolve]) => resolve({ accepted: false, isForGood: false, reason: 'Busy' }),
          ([, reject]) => reject(new Error('later')),
        ),
    ],
    ['does not say for how long', 'try again', /^$/, () => ({ accepted: false, reason: 42 })],
  ]
  for (const [what, code, reply, send] of odd) {
    it(`that ${what} is asked again, and one sentence says why`, async () => {
      const user = await newUser()
      answers = [send as Send]
      const { mail_id } = await asked(user, 'waiting')
      const details = Object(failuresOf(user)[0]?.details) as { reply?: string }
      expect(details).to.include({ step: 'transport', code })
      expect(details.reply ?? '').to.match(reply)
      const lines = logged.filter((line) => line.includes('transport'))
      expect(lines).to.have.length(1)
      expect(lines[0]).to.include(`The transport did not accept the mail (${code})`)
      await moveTime(60_000)
      await outcomeOf(h, mail_id, 'sent')
      expect(mailsTo(user)).to.have.length(2)
    })
  }

  const nonsense: unknown[] = [
    undefined,
    null,
    true,
    'accepted',
    {},
    { accepted: 'yes' },
    { accepted: ['ann@example.com'], rejected: [] },
  ]
  it('that answers nonsense may have sent the mail: it is a dead letter, and comes only once', async () => {
    for (const answer of nonsense) {
      const user = await newUser()
      answers = [(async () => answer) as Send]
      expect(await asked(user, 'dead')).to.include({ reason: 'ERR_MAIL_REFUSED' })
      expect(failuresOf(user)[0]?.details).to.include({ step: 'transport', code: 'no answer' })
      expect(mailsTo(user)).to.have.length(1)
    }
  })

  it('that accepts twice sent one mail', async () => {
    const user = await newUser()
    answers = [
      () =>
        settledBy(
          ([resolve]) => resolve({ accepted: true, id: 'first' }),
          ([resolve]) => resolve({ accepted: true, id: 'second' }),
        ),
    ]
    const { mail_id } = await asked(user, 'sent')
    expect(await admin.showMail({ mail_id })).to.include({ queue_id: 'first' })
    expect(eventsOf(h, 'password_reset_mail_sent', user)).to.have.length(1)
  })

  for (const late of ['never answers', 'accepts too late', 'fails too late']) {
    it(`that ${late} is given up after 30 seconds, its signal says so, and it is asked again`, async () => {
      const user = await newUser()
      let heard: AbortSignal | undefined
      let end = (_isAccepted: boolean) => {}
      answers = [
        (_mail, signal) => {
          heard = signal
          return new Promise((resolve, reject) => {
            end = (isAccepted) =>
              isAccepted ? resolve({ accepted: true }) : reject(new Error('too late'))
          })
        },
      ]
      const { mail_id } = await admin.sendReset({ id: user.id })
      await eventually('it is asked', () => heard)
      expect(heard?.aborted).to.equal(false)
      await moveTime(30_000)
      await eventually('it is given up', () => failuresOf(user)[0])
      expect(heard?.aborted).to.equal(true)
      expect(failuresOf(user)[0]?.details).to.deep.equal({ step: 'transport', code: 'out of time' })
      if (late !== 'never answers') end(late === 'accepts too late')
      expect(eventsOf(h, 'password_reset_mail_sent', user)).to.deep.equal([])
      await moveTime(60_000)
      await outcomeOf(h, mail_id, 'sent')
      expect(mailsTo(user)).to.have.length(2)
    })
  }

  it('gets five mails at the same time at most, also while mails flow', async () => {
    const users = await Promise.all(Array.from({ length: 20 }, () => newUser()))
    let [now, most] = [0, 0]
    const open: (() => void)[] = []
    answers = users.map(() => async () => {
      now += 1
      most = Math.max(most, now)
      await new Promise<void>((resolve) => open.push(resolve))
      now -= 1
      return { accepted: true }
    })
    await Promise.all(users.map(({ id }) => admin.sendReset({ id })))
    let done = 0
    while (done < users.length) {
      await eventually(
        'as many as may are under way',
        () => now === Math.min(5, users.length - done),
      )
      const some = open.splice(0)
      done += some.length
      for (const finish of some) finish()
    }
    await isIdle(h)
    expect(most).to.equal(5)
    expect(new Set(handed.map(({ to }) => to)).size).to.equal(users.length)
  })

  describe('as the checks see it', () => {
    const steps = async (checking: ReturnType<typeof admin.testMail>) => {
      const { ok, checks } = await checking
      const of = (wanted: string) =>
        checks.find(({ step }) => step === wanted) ?? expect.fail(`no ${wanted}`)
      return { ok, names: checks.map(({ step }) => step), of }
    }
    const TO = 'me@users.example'

    it('mail test hands it a mail, in one step in the place of those of SMTP', async () => {
      answers = [async () => ({ accepted: true, id: 'service-id-2' })]
      const { ok, names, of } = await steps(admin.testMail({ to: TO }))
      expect(names).to.deep.equal(['configuration', 'transport'])
      expect(ok).to.equal(true)
      expect(of('transport')).to.include({
        status: 'ok',
        message: 'The transport accepted the mail, as service-id-2.',
      })
      expect(of('configuration').status, 'SMTP is configured, too').to.equal('advice')
      expect(handed.map(({ to }) => to)).to.deep.equal([TO])
    })

    it('mail test tells why it did not take the mail', async () => {
      answers = [
        async () => ({ accepted: false, isForGood: true, reason: 'Not a verified sender' }),
      ]
      const { ok, of } = await steps(admin.testMail({ to: TO }))
      expect(ok).to.equal(false)
      expect(of('transport')).to.include({ status: 'failed', reply: 'Not a verified sender' })
    })

    it('mail test ends after 30 seconds', async () => {
      let isAsked = false
      answers = [() => new Promise(() => (isAsked = true))]
      const checking = steps(admin.testMail({ to: TO }))
      await eventually('it is asked', () => isAsked)
      await moveTime(30_000)
      expect((await checking).of('transport').message).to.include('(out of time)')
    })

    it('user status tells of the transport, and not of a mail server', async () => {
      for (const [answer, state, summary] of [
        [
          { accepted: false, isForGood: true, reason: 'On our list' },
          'dead',
          /^The transport refused the last reset link for good: "On our list"\.$/,
        ],
        [
          { accepted: false, isForGood: false, reason: '401 bad key' },
          'waiting',
          /^The transport did not accept the last reset link: "401 bad key"\.$/,
        ],
      ] as const) {
        const user = await newUser()
        answers = [async () => answer]
        const { mail_id } = await asked(user, state)
        const told = await admin.userStatus({ id: user.id })
        expect(told.summary).to.match(summary)
        expect(told.advice).to.match(/^See account-flows mail test --to /)
        await admin.purgeMails({ id: mail_id })
      }
    })

    it('doctor sends nothing, and says which way mails go', async () => {
      const { of, names } = await steps(admin.runDoctor({ to: TO }))
      expect(names.slice(-2)).to.deep.equal(['configuration', 'transport'])
      expect(of('configuration').message).to.match(
        /^Mails go to the transport .* accounts@idp\.example\.$/,
      )
      expect(of('transport').status).to.equal('skipped')
      expect(handed).to.deep.equal([])
    })
  })
})

describe('A service without SMTP settings, whose host has a transport', () => {
  const handed: TransportMail[] = []
  const transport: MailTransport = {
    async send(mail) {
      handed.push(mail)
      return { accepted: true }
    },
  }
  const h = suiteHarness({ flows: { transport, initialSettings: {} } })

  it('sends mails without a sender, and nobody is told that mails wait', async () => {
    const user = await h.addUser({ username: 'ann' })
    const admin = adminOf(h)
    expect((await admin.userStatus({ id: user.id })).hints.join()).to.not.include('SMTP')
    const { answer } = await admin.putSettings({ require_email_verification: 'true' })
    expect(answer).to.not.have.property('warnings')
    const { mail_id } = await admin.sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'sent')
    expect(handed).to.have.length(1)
    expect(handed[0]).to.not.have.any.keys('from', 'messageId')
    const { checks } = await admin.runDoctor({})
    expect(checks.find(({ step }) => step === 'configuration')).to.include({ status: 'ok' })
  })
})

describe('A transport of nodemailer', () => {
  it('fits in one line: what the mail server refuses for good is refused for good, and the rest is tried again', async () => {
    const answers: ('defer' | 'refuse')[] = []
    let mailer = createTransport({})
    const h = await startHarness({
      flows: {
        initialSettings: { smtp_from: 'accounts@idp.example', password_changed_email: 'false' },
        transport: {
          send: async (mail) => ({ accepted: true, id: (await mailer.sendMail(mail)).messageId }),
        },
      },
      mail: { answer: () => answers.shift() ?? 'take' },
    })
    mailer = createTransport({ host: '127.0.0.1', port: h.mail.port, ignoreTLS: true })
    const admin = adminOf(h)
    try {
      const [ann, bob, eve] = await Promise.all(
        ['ann', 'bob', 'eve'].map((username) => h.addUser({ username })),
      )
      const { mail_id } = await admin.sendReset({ id: ann?.id ?? '' })
      const { mail, kind, link } = await h.mail.mailTo(ann?.email ?? '')
      await outcomeOf(h, mail_id, 'sent')
      expect(kind).to.equal('password_reset')
      expect(mail.from?.value).to.deep.equal([{ address: 'accounts@idp.example', name: '' }])
      const record = await admin.showMail({ mail_id })
      expect([record.message_id, record.queue_id]).to.deep.equal([mail.messageId, mail.messageId])
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')

      answers.push('refuse')
      const refused = await admin.sendReset({ id: bob?.id ?? '' })
      await outcomeOf(h, refused.mail_id, 'dead')
      const [failure] = eventsOf(h, 'password_reset_mail_failed', bob)
      expect(failure?.reason).to.equal('ERR_MAIL_REFUSED')
      expect(failure?.details).to.include({ step: 'transport', code: '550' })

      answers.push('defer')
      const deferred = await admin.sendReset({ id: eve?.id ?? '' })
      await eventually('it failed', () => eventsOf(h, 'password_reset_mail_failed', eve)[0])
      await moveTime(60_000)
      await outcomeOf(h, deferred.mail_id, 'sent')
    } finally {
      await h.close()
    }
  })
})
