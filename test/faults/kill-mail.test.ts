import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { forgot, opensForm, PASSWORD } from '../support/example-server.ts'
import { SMTP_POINTS, type SmtpPoint } from '../support/mail-server.ts'
import type { Topology } from '../support/mongod.ts'
import { setsSession, tokenOf } from '../support/person.ts'
import { sha256 } from '../support/observe.ts'
import type { AuthorizationRequest } from '../support/relying-party.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { scaled, startService, type Service } from './servers.ts'
import {
  describeOnBothTopologies,
  isWriteTo,
  type KillMoment,
  momentsAround,
  nameOf,
  part,
  type Round,
  SETTLED_WITHIN_MS,
  type Step,
  stepsOf,
  strikesAtMails,
  tellRounds,
} from './rounds.ts'
import {
  addPerson,
  answered,
  countEvents,
  hasCode,
  isVerified,
  mailed,
  opens,
  postForgot,
  postLogin,
  postReset,
} from './people.ts'

const NEW_PASSWORD = 'the password of the form'

/** Before a worker has looked for the job. */
const ANSWERED = 'as it has answered'

/** A server under test, and what is to happen at the mail server that only its mails go to. */
type Place = Service & Pick<ReturnType<typeof strikesAtMails>, 'strikes'>

type Work = 'forgot-password' | 'blocked login' | 'verify-email'

interface Planned {
  work: Work
  moment: KillMoment
}

/** Somebody who is owed a mail, or opens a link, while the process is killed. */
interface MailRound extends Round<Place>, Planned {
  /** Of the login that waits; `undefined` where none does. */
  request: AuthorizationRequest | undefined
  /** Whether the person was told that a mail is on its way. */
  isOwed: boolean
}

describeOnBothTopologies('A process that is killed around a mail', () => {
  const { rounds, outcomes, count, fault, faults, itHasNone, die } = tellRounds({
    title: 'Mails and verifications',
    start,
    plan,
    prepare,
    kill,
    arm: atPoint,
    afterwards: settled,
    validate,
  })

  async function start(topology: Topology): Promise<Place> {
    const { strikes, reaches } = strikesAtMails()
    const settings = { require_email_verification: 'true' }
    return Object.assign(await startService({ topology, settings, mail: { reaches } }), { strikes })
  }

  function atPoint({ at, person }: MailRound, name: string) {
    if (name === ANSWERED) return () => {}
    const strike = { point: name as SmtpPoint, recipient: person.email, act: at.kill }
    at.strikes.add(strike)
    return () => at.strikes.delete(strike)
  }

  /** One of each that nobody disturbs tells the steps. What is done before the answer owes nobody anything. */
  async function plan(at: Place): Promise<(index: number) => Planned[]> {
    const verified = await addPerson(at)
    const forgotten = await stepsOf(at.proxy, [verified.id, verified.username], async () => {
      await forgot(at, verified.username)
      await mailed(at, verified)
    })
    const person = await addPerson(at, false)
    const blocked = await stepsOf(at.proxy, [person.id, person.username], async () => {
      expect((await postLogin(at, person)).answer.mode).to.equal('blocked')
      await mailed(at, person)
    })
    const { link } = await at.mail.mailTo(person.email)
    const opened = await stepsOf(at.proxy, [person.id, sha256(tokenOf(link))], async () => {
      const { location } = await person.agent.get(link)
      expect(hasCode(location), location).to.equal(true)
    })
    const steps = {
      'forgot-password': ofWorker(forgotten),
      'blocked login': ofWorker(blocked),
      'verify-email': opened,
    }

    // Those whose leases last longest come first.
    return (index) => {
      const ours = <T>(all: T[]) => part(all, index, 2)
      const planned = (work: Work, moments: KillMoment[]) =>
        moments.map((moment) => ({ work, moment }))
      const points = scaled({ full: [...SMTP_POINTS], short: ours([...SMTP_POINTS]) })
      return [
        ...planned('forgot-password', [ANSWERED, ...points]),
        ...planned('blocked login', scaled({ full: points, short: points.slice(-1) })),
        ...(['forgot-password', 'blocked login', 'verify-email'] as const).flatMap((work) =>
          planned(work, ours(momentsAround(steps[work]))),
        ),
      ]
    }
  }

  const ofWorker = (steps: Step[]) => steps.slice(steps.findIndex(isWriteTo('mail_outbox')) + 1)

  async function prepare(at: Place, { work, moment }: Planned): Promise<MailRound> {
    const title = `${at.topology}, ${work}, killed ${nameOf(moment)}`
    const person = await addPerson(at, work === 'forgot-password')
    const round = { title, at, person, work, moment, request: undefined, isOwed: false }
    if (work !== 'verify-email') return round
    const { request } = await postLogin(at, person)
    await mailed(at, person)
    return { ...round, request }
  }

  async function kill(round: MailRound): Promise<void> {
    const { at, person } = round
    rounds.push(round)
    const ids = [person.id, person.username, ...linksOf(round).map(tokenOf).map(sha256)]
    round.isOwed = (await die(round, ids, () => dieOnceAsked(round))) ?? false
    await at.restart()
  }

  async function dieOnceAsked(round: MailRound): Promise<boolean> {
    const isOwed = await ask(round)
    if (round.moment === ANSWERED) await round.at.kill()
    return isOwed
  }

  /** Asks for a mail, or opens its link; answers whether a mail is owed. */
  async function ask(round: MailRound): Promise<boolean> {
    const { at, work, person } = round
    if (work === 'forgot-password') return (await postForgot(at, person.username)).mode === 'sent'
    if (work === 'verify-email') {
      await person.agent.get(linksOf(round).at(-1) ?? '')
      return false
    }
    const { request, answer } = await postLogin(at, person)
    round.request = request
    return answer.mode === 'blocked'
  }

  function linksOf({ at, person, work }: MailRound): string[] {
    const wanted = work === 'forgot-password' ? 'password_reset' : 'email_verification'
    return at.mail.mails
      .filter(({ to, kind }) => to.includes(person.email) && kind === wanted)
      .map(({ link }) => link)
  }

  /** Until nobody owes anybody a mail. */
  async function settled(at: Place): Promise<void> {
    const outbox = at.database.db.collection('mail_outbox')
    const isEmpty = async () => (await outbox.countDocuments({ state: { $ne: 'dead' } })) === 0
    await eventually(`the outbox of ${at.topology} is empty`, isEmpty, SETTLED_WITHIN_MS)
    const dead = await outbox.find({ state: 'dead' }).toArray()
    for (const { reason } of dead)
      fault({ title: at.topology }, true, 'lost mail', `given up, ${reason}`)
  }

  async function validate(round: MailRound): Promise<void> {
    if (round.work === 'verify-email') return judgeOpening(round)
    const links = linksOf(round)
    const kind = round.work === 'forgot-password' ? 'password_reset' : 'email_verification'
    count(round.isOwed ? 'owed' : 'not answered')
    await judgeEvents(round, `${kind}_requested`)
    await judgeEvents(round, `${kind}_mail_sent`, 0)
    if (round.work === 'blocked login') await judgeEvents(round, 'email_login_blocked')
    const newest = links.at(-1)
    if (newest === undefined) return fault(round, round.isOwed, 'lost mail', 'no mail')
    if (round.work === 'forgot-password') return judgeResetLinks(round, newest)
    return judgeVerificationLinks(round, newest)
  }

  async function judgeEvents(round: MailRound, type: string, atLeast = 1): Promise<void> {
    const events = await countEvents(round.at, round.person, type)
    fault(round, round.isOwed && events < atLeast, 'lost event', type)
    fault(round, events > 1, 'double event', `${events} times ${type}`)
  }

  async function judgeResetLinks(round: MailRound, newest: string): Promise<void> {
    const { at, person } = round
    const earlier = linksOf(round).filter((link) => link !== newest)
    for (const link of earlier) fault(round, await opensForm(link), 'link too many', 'an old link')
    fault(round, !(await opensForm(newest)), 'lost mail', 'the newest link is dead')
    const done = await answered(postReset(at, newest, NEW_PASSWORD))
    fault(round, done?.mode !== 'done', 'lost mail', `the newest link does not work: ${done?.mode}`)
    fault(round, !(await opens(at, person, NEW_PASSWORD)), 'half done', 'no new password')
    for (const link of [...earlier, newest]) {
      fault(round, await opensForm(link), 'token used twice', 'a link after the reset')
    }
  }

  async function judgeVerificationLinks(round: MailRound, newest: string): Promise<void> {
    const { person, isOwed } = round
    if (!isOwed) return
    const why = await whyNotFinished(round, await person.agent.get(newest))
    fault(round, why !== undefined, 'lost mail', `the newest link does not work: ${why}`)
    await judgeSpent(round)
  }

  async function judgeOpening(round: MailRound): Promise<void> {
    const { at, person } = round
    const isDone = await isVerified(at, person)
    count(isDone ? 'verified' : 'not verified')
    if (!isDone) {
      const why = await whyNotFinished(round, await person.agent.get(linksOf(round).at(-1) ?? ''))
      fault(round, why !== undefined, 'half done', `not verified, and the link is dead: ${why}`)
    }
    await judgeSpent(round)
    await judgeEvents(round, 'email_verification_completed', 0)
    fault(round, !(await opens(at, person, PASSWORD)), 'half done', 'cannot sign in')
  }

  /** `undefined`: the link led to the client, whose login is that of the person. */
  async function whyNotFinished({ at, person, request }: MailRound, answer: Answer) {
    const { status, mode, location = '' } = answer
    if (status !== 302 || !hasCode(location)) return `${status} ${mode} ${location}`
    if (!request) return 'no login'
    const sub = (await at.party.exchange(request, location)).claims()?.sub
    return sub === person.id ? undefined : 'somebody else'
  }

  /** No link of the round gives a session or a code, to whomever. */
  async function judgeSpent(round: MailRound): Promise<void> {
    for (const link of linksOf(round)) {
      for (const agent of [round.person.agent, createUserAgent()]) {
        const answer = await agent.get(link)
        const gives = setsSession(answer) || answer.location !== undefined
        fault(round, gives, 'token used twice', `a session or ${answer.location}`)
      }
    }
  }

  it('owes nobody a mail in the end, and the newest link of each works (FLT-06)', () => {
    expect(faults('lost mail', 'missed moment')).to.deep.equal([])
    expect([...outcomes.keys()]).to.include('owed')
  })

  itHasNone('leaves no reset link alive beside the newest', 'link too many')

  it('has verified the address and spent the link, or neither', () => {
    expect(faults('half done')).to.deep.equal([])
    expect([...outcomes.keys()]).to.include.members(['verified', 'not verified'])
  })

  itHasNone('lets no link be used twice', 'token used twice')

  itHasNone('records each event of a job once', 'double event', 'lost event')
})
