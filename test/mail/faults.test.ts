import { inspect } from 'node:util'
import { expect } from 'chai'
import { mayHaveArrived } from '../../src/mail/sending.ts'
import { eventually } from '../support/eventually.ts'
import {
  acts,
  answers,
  drops,
  fallsSilent,
  goesAway,
  neverEnds,
  onFirst,
  trickles,
  type Fault,
  type FaultySmtp,
  type FaultySmtpOptions,
  type Step,
} from '../support/mail-server.ts'
import { freePort } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'
import {
  connectTo,
  CREDENTIALS,
  failureOf,
  MAIL,
  NO_LOGIN,
  sendThrough,
  suiteSmtp,
} from './smtp-suite.ts'

describe('Sending, where the mail server', () => {
  const { start: startServer, senderFor, sockets } = suiteSmtp()

  async function start(options: FaultySmtpOptions = {}) {
    const server = await startServer(options)
    const sender = senderFor(server)

    /** The next mail is sent; how many connections and mails there were with it. */
    async function next(connections: number, mails = 1) {
      await sendThrough(sender)
      expect([server.connections, server.mails.length]).to.deep.equal([connections, mails])
    }
    return { server, sender, next }
  }

  /** Nothing was sent, and it may be tried again; answers why. */
  async function fails(sending: Promise<unknown>): Promise<string> {
    const { code, message } = await failureOf(sending)
    expect(code).to.equal('ERR_MAIL_FAILED')
    return message
  }

  /** What is left of the failed attempt: no socket, and no mail. */
  async function nothingIsLeft(server: FaultySmtp) {
    await eventually('the socket is closed', () => sockets.open() === 0)
    await eventually('the server sees it closed', () => server.open === 0)
    expect(server.mails).to.deep.equal([])
  }

  /** The first mail fails, once, and leaves nothing; the next one goes over another connection. */
  async function failsOnce(at: Step, fault: Fault, how = /./, mail = MAIL) {
    const { server, sender, next } = await start({ fault: onFirst(1, fault) })
    const error = await failureOf(sendThrough(sender, mail))
    expect(error).to.include({ code: 'ERR_MAIL_FAILED' }).and.property('message').to.match(how)
    expect(server.connections).to.equal(1)
    // At its last step it was handed over, and nobody knows whether it was taken, unless the answer has a code.
    const isUnsure = !TALK.slice(0, -1).includes(at) && !/421/.test(error.message)
    expect(mayHaveArrived(error)).to.equal(isUnsure)
    server.mails.splice(0, at === 'dot' ? 1 : 0)
    await nothingIsLeft(server)
    await next(2)
  }

  const TALK: Step[] = ['greeting', 'EHLO', 'AUTH', 'MAIL', 'RCPT', 'DATA', 'dot']
  for (const [what, faultAt] of [
    ['says nothing any more', fallsSilent],
    ['answers with one byte after the other, for ever', trickles],
  ] as const) {
    for (const offersPipelining of [false, true]) {
      for (const step of TALK) {
        it(`${what}, from ${step} on: the deadline ends it, and its socket${offersPipelining ? ' (pipelined)' : ''}`, async () => {
          const fault = onFirst(1, faultAt(step))
          const { server, sender, next } = await start({ fault, offersPipelining })
          const deadline = new AbortController()
          const failing = fails(sendThrough(sender, MAIL, deadline.signal))
          await server.reaches(step)
          deadline.abort()
          const named = step === 'dot' ? 'handing the mail over' : 'naming sender and recipient'
          const doing = TALK.indexOf(step) < 3 ? 'connecting' : named
          expect(await failing).to.equal(`The mail was not sent (stopped while ${doing})`)
          server.mails.splice(0, step === 'dot' ? 1 : 0)
          await nothingIsLeft(server)
          await next(2)
        })
      }
    }
  }

  it('says nothing: a deadline of AbortSignal.timeout is named in the error', async () => {
    const { server, sender } = await start({ fault: fallsSilent('greeting') })
    const told = await fails(sendThrough(sender, MAIL, AbortSignal.timeout(50)))
    expect(told).to.equal('The mail was not sent (out of time while connecting)')
    await nothingIsLeft(server)
  })

  for (const step of TALK) {
    it(`never ends its answer to ${step}: not more than a bounded part of it is read`, () =>
      failsOnce(step, neverEnds(step), /EPROTOCOL/))

    it(`says 421 at ${step}: the connection is closed, and the next mail goes over another`, () =>
      failsOnce(step, goesAway(step), /421 4\.3\.2/))

    it(`drops the connection at ${step}: it is tried once only`, () => failsOnce(step, drops(step)))
  }

  it('greets with a refusal: later attempts may succeed', () =>
    failsOnce('greeting', answers('greeting', '554 Not you'), /\(554 while connecting\)$/))

  for (const [at, reply, code] of [
    ['MAIL', '550 Not this one', 'ERR_MAIL_FAILED'],
    ['dot', '550 Not this one', 'ERR_MAIL_REFUSED'],
    ['dot', '451 Not this one', 'ERR_MAIL_FAILED'],
  ] as const) {
    it(`answers ${reply} at ${at}: it is ${code}, as an admin can mend what is said of the sender`, async () => {
      const { server, sender } = await start({ fault: onFirst(1, answers(at, reply)) })
      const error = await failureOf(sendThrough(sender))
      expect(error.code).to.equal(code)
      expect(error.message).to.include(reply.slice(0, 3))
      if (at === 'MAIL') expect(error.message).to.include('MAIL FROM')
      expect(server.mails.splice(0)).to.have.length(at === 'dot' ? 1 : 0)
    })
  }

  it('does not listen: it is tried again', async () => {
    await fails(sendThrough(senderFor({ port: await freePort() })))
  })

  const large = { ...MAIL, html: `<p>${'long '.repeat(2_000_000)}</p>` }

  it('drops the connection in the middle of a mail that is larger than what fits on the way', () =>
    failsOnce('content', drops('content'), /./, large))

  it('stops reading in the middle of a large mail: the deadline ends it, and its socket', async () => {
    const pauses = acts('content', (socket) => socket.pause())
    const { server, sender, next } = await start({ fault: onFirst(1, pauses) })
    const deadline = new AbortController()
    const failing = fails(sendThrough(sender, large, deadline.signal))
    await server.reaches('content')
    deadline.abort()
    await failing
    await eventually('the socket is closed', () => sockets.open() === 0)
    expect(server.mails).to.deep.equal([])
    await next(2)
  })

  for (const offersPipelining of [false, true]) {
    const how = offersPipelining ? ' (pipelined)' : ''

    it(`greylists: a later attempt over the same connection is taken${how}`, async () => {
      const fault: Fault = (step, { count }) =>
        step === 'RCPT' && count === 1 ? '451 4.7.1 Come again later' : undefined
      const { server, sender, next } = await start({ fault, offersPipelining })
      const told = await fails(sendThrough(sender))
      expect(told).to.equal('The mail was not sent (451 4.7.1 at RCPT TO)')
      expect(server.mails).to.deep.equal([])
      await next(1)
      expect([server.steps.RSET, server.steps.AUTH]).to.deep.equal([1, 1])
    })

    it(`refuses a recipient for good: another one is taken over the same connection${how}`, async () => {
      const fault: Fault = (step, { line }) =>
        step === 'RCPT' && line.includes('nobody') ? '550 5.1.1 No such user' : undefined
      const { server, sender, next } = await start({ fault, offersPipelining })
      const error = await failureOf(sendThrough(sender, { ...MAIL, to: 'nobody@example.org' }))
      const told = 'The mail server refused the mail for good (550 5.1.1 at RCPT TO)'
      expect([error.code, error.message]).to.deep.equal(['ERR_MAIL_REFUSED', told])
      expect(server.mails).to.deep.equal([])
      await next(1)
      expect(server.mails.map(({ to }) => to)).to.deep.equal([[MAIL.to]])
      expect(server.steps.RSET).to.equal(1)
    })
  }

  describe('is given a user and a password, and', () => {
    it('wants a login, which is refused: half of one is none, and nothing is sent', async () => {
      const fault: Fault = (step) => {
        if (step === 'MAIL') return '530 5.7.0 Authentication required'
        return step === 'AUTH' ? '535 5.7.8 Wrong password' : undefined
      }
      const server = await startServer({ fault })
      const half = { ...NO_LOGIN, username: 'service' }
      for (const credentials of [NO_LOGIN, half, { ...half, password: 'wrong' }]) {
        expect(await fails(sendThrough(senderFor(server, credentials)))).not.to.contain('wrong')
      }
      expect(server.logins).to.have.length(1)
      expect([server.steps.RCPT, server.mails]).to.deep.equal([0, []])
    })

    it('repeats what it was sent: the error holds nothing of the password', async () => {
      const fault: Fault = (step, { line }) =>
        step === 'AUTH' ? `535 5.7.8 ${CREDENTIALS.password} in ${line} is wrong` : undefined
      const { server, sender } = await start({ fault: onFirst(1, fault) })
      const error = await failureOf(sendThrough(sender))
      expect(error.code).to.equal('ERR_MAIL_FAILED')
      expect(error.message).to.equal('The mail was not sent (535 5.7.8 at AUTH PLAIN)')
      const everything = inspect(error, { depth: 10, showHidden: true })
      const pair = `\0${CREDENTIALS.username}\0${CREDENTIALS.password}`
      for (const secret of ['canary', btoa(pair), btoa(CREDENTIALS.password)]) {
        expect(everything).not.to.include(secret)
      }
      expect(server.steps.MAIL).to.equal(0)
      await sendThrough(sender)
      expect(server.mails.map(({ user }) => user)).to.deep.equal([CREDENTIALS.username])
    })
  })

  describe('never answers many at once:', () => {
    it('at most 5 sockets are open, and each that ends makes room for the next', async () => {
      const { server, sender } = await start({ fault: onFirst(5, fallsSilent('greeting')) })
      const deadlines = Array.from({ length: 20 }, () => new AbortController())
      const outcomes = deadlines.map(({ signal }) =>
        sendThrough(sender, MAIL, signal).then(
          (sent) => (sent ? 'sent' : 'no slot'),
          ({ message }: Error) => message,
        ),
      )
      await eventually('5 sockets are open', () => server.connections === 5)
      expect(sockets.open()).to.equal(5)
      // The last of the line gives up while it waits.
      deadlines[19]?.abort()
      expect(await outcomes[19]).to.equal('no slot')
      for (const stalled of deadlines.slice(0, 5)) stalled.abort()
      const ends = await Promise.all(outcomes)
      for (const end of ends.slice(0, 5)) expect(end).to.include('stopped while connecting')
      expect(ends.slice(5, 19)).to.deep.equal(Array.from({ length: 14 }, () => 'sent'))
      expect(server.mails).to.have.length(14)
      expect(sockets.most()).to.equal(5)
    })

    it('also where the server keeps its side of closed connections open', async () => {
      const fault: Fault = (step, { socket }) => {
        socket.allowHalfOpen = true
        return step === 'greeting' ? '421 4.3.2 Not now' : undefined
      }
      const { server, sender, next } = await start({ fault: onFirst(40, fault) })
      await Promise.all(Array.from({ length: 40 }, () => fails(sendThrough(sender))))
      expect(sockets.most()).to.equal(5)
      expect(server.connections).to.equal(40)
      await next(41)
    })
  })

  describe('has an idle connection that', () => {
    it('still answers: it is asked with RSET where it was idle for a second, and taken, until it ends', async () => {
      const { server, next } = await start()
      await next(1)
      await next(1, 2)
      expect(server.steps.RSET).to.equal(0)
      await moveTime(1_000)
      await next(1, 3)
      expect(server.steps.RSET).to.equal(1)
      sockets.destroyAll()
      await next(2, 4)
    })

    for (const [what, fault] of [
      ['is dropped', drops('RSET')],
      ['is told to go away', goesAway('RSET')],
      ['is refused', answers('RSET', '451 4.3.0 Broken')],
      ['answers nothing', fallsSilent('RSET')],
      ['answers for ever', neverEnds('RSET')],
    ] as const) {
      it(`${what} when it is asked: another is opened before a link is minted`, async () => {
        const { server, sender } = await start({ fault: onFirst(1, fault) })
        await sendThrough(sender)
        await moveTime(1_000)
        const connecting = connectTo(sender)
        await server.reaches('RSET')
        await moveTime(5_000)
        const connection = await connecting
        expect([server.connections, server.steps.RSET]).to.deep.equal([2, 1])
        await connection.send(MAIL)
        await connection.release()
        expect(server.mails).to.have.length(2)
        expect(sockets.most()).to.be.at.most(2)
      })
    }

    it('was closed by the server meanwhile: another is opened', async () => {
      const fault: Fault = (step, { socket }) => {
        if (step === 'dot') setImmediate(() => socket.end('421 4.4.2 Idle for too long\r\n'))
        return undefined
      }
      const { server, sender, next } = await start({ fault: onFirst(1, fault) })
      await sendThrough(sender)
      await eventually('it is closed', () => server.open === 0 && sockets.open() === 0)
      await moveTime(15_000)
      await next(2, 2)
    })

    for (const options of [{}, { fault: answers('QUIT', '') }]) {
      const how = options.fault ? ', also where nobody answers that' : ''
      it(`nobody needs: it says QUIT, and is closed${how}`, async () => {
        const { server, sender, next } = await start(options)
        await sendThrough(sender)
        await moveTime(15_000)
        await server.reaches('QUIT')
        await moveTime(5_000)
        await eventually('it is closed', () => server.open === 0 && sockets.open() === 0)
        await next(2, 2)
      })
    }

    it('carried 100 mails: another one carries the next', async () => {
      const { server, sender, next } = await start()
      for (let mail = 0; mail < 100; mail += 1) await sendThrough(sender)
      expect(server.connections).to.equal(1)
      await next(2, 101)
    })
  })

  describe('answers well, and the caller', () => {
    it('stops between connecting and sending, or before: the socket is closed, and nothing is sent', async () => {
      const { server, sender, next } = await start()
      expect(await sendThrough(sender, MAIL, AbortSignal.abort())).to.equal(undefined)
      expect(server.connections).to.equal(0)
      const deadline = new AbortController()
      const connection = await connectTo(sender, deadline.signal)
      deadline.abort()
      await fails(connection.send(MAIL))
      await connection.release()
      await nothingIsLeft(server)
      await next(2)
    })

    it('gives the connection back, and stops, or gives it back unused: it stays for the next', async () => {
      const { sender, next } = await start()
      const deadline = new AbortController()
      await sendThrough(sender, MAIL, deadline.signal)
      deadline.abort()
      await next(1, 2)
      const connection = await connectTo(sender)
      await connection.release()
      await next(1, 3)
    })
  })
})
