import type { Context } from 'koa'
import type { ReceivedMail } from '../../src/index.ts'
import { html, type Html } from './html.ts'
import type { Paths, ShowPage } from './page.ts'
import type { Route } from './routes.ts'

export interface MailboxPageParts {
  messages(): ReceivedMail[]
  show: ShowPage
  paths: Paths
}

/** The mails that this process took while SMTP is not configured, newest first. */
export function mailboxPage({ messages, show, paths }: MailboxPageParts) {
  function get(ctx: Context) {
    ctx.vary('Accept')
    if (ctx.accepts('html', 'json') === 'json') {
      ctx.set('Cache-Control', 'no-store')
      ctx.body = messages().map(({ id, to, subject, text, html: part, receivedAt }) => ({
        id,
        to,
        subject,
        text,
        html: part,
        date: receivedAt,
      }))
      return
    }
    const mails = messages()
    show(ctx, {
      name: 'mailbox',
      mode: mails.length > 0 ? 'mails' : 'empty',
      title: 'Mailbox',
      content: html`<p class="note">
          Nothing is delivered while SMTP is not configured: all mails end up here. A mail arrives
          within two seconds.
        </p>
        <p><a href="${paths.base}/mailbox">Look again</a> · <a href="${paths.base}/">Start</a></p>
        ${mails.length > 0 ? mails.map(mailContent) : html`<p>There is no mail yet.</p>`}`,
    })
  }

  return { [`${paths.base}/mailbox`]: { get } } satisfies Record<string, Route>
}

function mailContent({ to, subject, text, receivedAt }: ReceivedMail): Html {
  return html`<article>
    <h2>${subject}</h2>
    <p class="note">to ${to}, ${receivedAt.toISOString()}</p>
    <div class="mail">${withLinks(text)}</div>
  </article>`
}

function withLinks(text: string): Html[] {
  return text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : html`${part}`))
}
