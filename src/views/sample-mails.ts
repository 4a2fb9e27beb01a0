import { MAIL_KINDS, mailKinds, type MailKind } from '../contract/mail-kinds.ts'
import type { MailLocals, MailName } from './mails.ts'

export const APPS = {
  told: { names: ['Shop'], more: 0 },
  untold: { names: ['Mail', 'Wiki'], more: 3 },
}

const little = { username: '', link: 'https://id.example/', at: new Date(0) }
const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const much = { ...little, username: 'ann', clientName: 'The App', apps: APPS, userAgent }
const lifetimeMs = 3_600_000

/** Each mail, with little and with much to say. */
export const SAMPLE_MAILS: [MailName, MailLocals][] = [
  ...mailKinds.flatMap((kind) => samplesOf(MAIL_KINDS[kind])),
  ['test', little],
]

function samplesOf({ template, link, isNotice }: (typeof MAIL_KINDS)[MailKind]) {
  const wanted = [little, much, { ...little, [isNotice ? 'isByHost' : 'isByAdmin']: true }]
  return wanted.map((locals): [MailName, MailLocals] => [
    template,
    {
      ...locals,
      notMe: 'https://id.example/not-me',
      ...(link && { lifetimeMs }),
      ...(locals === much && link?.isSigned && { login: { code: '042917', at: new Date(0) } }),
    },
  ])
}
