import type { Context } from 'koa'
import type { ReceivedMail } from '../../src/index.ts'
import { html, type Html } from './html.ts'
import type { Paths, ShowPage } from './page.ts'
import type { Route } from './requests.ts'
import type { Words } from './words.ts'

/** A mail is somebody else's page: nothing of it runs or is loaded, and its links open where a person sees the address. */
const FRAME =
  '<!doctype html>' +
  `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">` +
  '<base target="_top">'

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
      showsMails: mails.length > 0,
      content: (words) =>
        html`<p><a href="${paths.base}/mailbox">${words.t('mailbox.again')}</a></p>
          ${mails.length > 0 ? mailList(mails, words) : whatToDo(words)}`,
    })
  }

  function whatToDo({ t }: Words): Html {
    return html`<h2>${t('mailbox.empty.none')}</h2>
      <p>${t('mailbox.empty.ask')}</p>
      <ul>
        <li><a href="${paths.oauth}/forgot-password">${t('login.forgot')}</a></li>
        <li><a href="${paths.base}/demo/start">${t('home.start')}</a></li>
      </ul>`
  }

  return { [`${paths.base}/mailbox`]: { get } } satisfies Record<string, Route>
}

function mailList(mails: ReceivedMail[], { t }: Words): Html {
  return html`<fieldset class="widths">
      <legend>${t('mailbox.width')}</legend>
      <label><input type="radio" name="width" checked /> ${t('mailbox.desktop')}</label>
      <label><input type="radio" name="width" id="phone" /> ${t('mailbox.phone')}</label>
    </fieldset>
    ${mails.map(
      ({ to, subject, text, html: part, receivedAt }) =>
        html`<article>
          <h2 dir="auto">${subject}</h2>
          <p class="note">
            ${t('mailbox.to', { address: to })}<br />
            <time dir="ltr">${receivedAt.toISOString()}</time>
          </p>
          <div class="both">
            <iframe
              title="${subject}"
              sandbox="allow-top-navigation-by-user-activation"
              srcdoc="${FRAME + part}"
            ></iframe>
            <div class="mail" dir="auto">${withLinks(text)}</div>
          </div>
        </article>`,
    )}`
}

function withLinks(text: string): Html[] {
  return text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : html`${part}`))
}
