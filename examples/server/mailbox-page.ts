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

const OPEN = html`open`
const CHECKED = html`checked`

export interface MailboxPageParts {
  messages(): ReceivedMail[]
  show: ShowPage
  paths: Paths
}

/** The mails that this process took while SMTP is not configured, newest first. */
export function mailboxPage({ messages, show, paths }: MailboxPageParts) {
  function get(ctx: Context) {
    ctx.vary('Accept')
    ctx.set('Cache-Control', 'no-store')
    if (ctx.accepts('html', 'json') === 'json') {
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
    // The script has shown the newest one.
    if (ctx.query['after'] === (mails[0]?.id ?? '')) {
      ctx.status = 204
      return
    }
    show(ctx, {
      name: 'mailbox',
      mode: mails.length > 0 ? 'mails' : 'empty',
      showsMails: true,
      content: (words) =>
        html`<noscript>
            <p><a href="${paths.base}/mailbox">${words.t('mailbox.again')}</a></p>
          </noscript>
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
    ${mails.map((mail, index) => oneMail(mail, index === 0, t))}`
}

/** As HTML or as text. The newest mail is open. */
function oneMail(
  { id, to, subject, text, html: part, receivedAt }: ReceivedMail,
  isNewest: boolean,
  t: Words['t'],
): Html {
  const tab = (view: string, label: string, isFirst: boolean) =>
    html`<label>
      <input type="radio" name="view-${id}" value="${view}" ${isFirst ? CHECKED : undefined} />
      ${label}
    </label>`
  return html`<article id="${id}">
    <details ${isNewest ? OPEN : undefined}>
      <summary>
        <h2 dir="auto">${subject}</h2>
        <p class="note">
          ${t('mailbox.to', { address: to })}<br />
          <time dir="ltr">${receivedAt.toISOString()}</time>
        </p>
      </summary>
      <div class="tabs" role="radiogroup" aria-label="${subject}">
        ${tab('html', 'HTML', true)} ${tab('text', t('mailbox.text'), false)}
      </div>
      <iframe
        title="${subject}"
        sandbox="allow-top-navigation-by-user-activation"
        srcdoc="${FRAME + part}"
      ></iframe>
      <div class="mail" dir="auto">${withLinks(text)}</div>
    </details>
  </article>`
}

function withLinks(text: string): Html[] {
  return text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : html`${part}`))
}
