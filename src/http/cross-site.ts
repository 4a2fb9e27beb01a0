import type { Context } from 'koa'
import type { Fields } from './form.ts'

/**
 * Whether a form was posted by a page of another site. Our own pages send no referrer, and so `Origin: null`; that is
 * believed only beside `Sec-Fetch-Site: same-origin`. A client that sends neither header is no browser.
 *
 * @param origin - of the configured base URL.
 */
export function isCrossSite(ctx: Context, origin: string): boolean {
  const site = ctx.get('Sec-Fetch-Site')
  if (!['', 'same-origin', 'none'].includes(site)) return true
  const from = ctx.get('Origin')
  if (from === '' || from === origin) return false
  return !(from === 'null' && site === 'same-origin')
}

/**
 * Whether a person pressed the button of a form. Scanners render pages and send their forms by script: that sends no button,
 * or no sign of a person, which browsers put into a header and our script, where they do not, into a field.
 */
export function isByPerson(ctx: Context, form: Fields): boolean {
  if (!form.has('action')) return false
  if (form.get('person') === 'yes') return true
  // Our script was there, and saw nobody press it: header and tick can be had by script.
  if (form.has('scripted')) return false
  if (form.get('tick') === 'yes') return true
  return ctx.get('Sec-Fetch-Site') === '' || ctx.get('Sec-Fetch-User') === '?1'
}

/** Whether nobody looks at the answer: HEAD, a prefetch, or a request for something other than a page. */
export function isUnattended(ctx: Context): boolean {
  if (ctx.method === 'HEAD') return true
  const purposes = ['Sec-Purpose', 'Purpose', 'X-Moz'].map((name) => ctx.get(name))
  if (purposes.some((purpose) => /prefetch|prerender|preview/i.test(purpose))) return true
  const destination = ctx.get('Sec-Fetch-Dest')
  return destination !== '' && destination !== 'document'
}
