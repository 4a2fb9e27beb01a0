import { DomUtils, parseDocument } from 'htmlparser2'
import { decodeEntities, type Answer, type UserAgent } from './user-agent.ts'

/** A form as a browser without scripts reads it. */
export interface PageForm {
  method: string
  /** Absolute. */
  action: string
  /** Of its fields, as they are filled in; a box that is not ticked sends nothing. */
  fields: Record<string, string>
  /** Names and values of its buttons. */
  buttons: { name: string; value: string }[]
}

export interface Pressed {
  /** What the person types, by field. */
  typed?: Record<string, string>
  /** The value of the button, where there are several. */
  button?: string
  headers?: Record<string, string>
}

export function formsOf({ text, url }: Answer): PageForm[] {
  const outside = elements(text, 'button').filter(({ attribs }) => attribs['form'] !== undefined)
  return elements(text, 'form').map((form) => {
    const own = outside.filter(({ attribs }) => attribs['form'] === form.attribs['id'])
    const inputs = DomUtils.getElementsByTagName('input', form)
    const isSent = ({ attribs }: (typeof inputs)[number]) =>
      attribs['name'] !== undefined && attribs['type'] !== 'checkbox'
    return {
      method: form.attribs['method'] ?? 'get',
      action: new URL(decodeEntities(form.attribs['action'] ?? ''), url).href,
      fields: Object.fromEntries(
        inputs.filter(isSent).map(({ attribs }) => [attribs['name'] ?? '', attribs['value'] ?? '']),
      ),
      buttons: [...DomUtils.getElementsByTagName('button', form), ...own].map(({ attribs }) => ({
        name: attribs['name'] ?? '',
        value: attribs['value'] ?? '',
      })),
    }
  })
}

/** The fields of a form, but for the id that each form has of its own. */
export function withoutId(fields: Record<string, string>): Record<string, string> {
  const { form_id: _formId, ...others } = fields
  return others
}

/** Absolute addresses of the links of a page. */
export function linksOf({ text, url }: Answer): string[] {
  return elements(text, 'a').map(({ attribs }) => new URL(attribs['href'] ?? '', url).href)
}

/** Absolute addresses of what a page loads. */
export function assetsOf({ text, url }: Answer): string[] {
  const sheets = elements(text, 'link').map(({ attribs }) => attribs['href'])
  const others = ['script', 'img'].flatMap((tag) =>
    elements(text, tag).map(({ attribs }) => attribs['src']),
  )
  return [...sheets, ...others].flatMap((path) =>
    path === undefined ? [] : [new URL(path, url).href],
  )
}

/** Posts the form of a page whose action ends with `path`, as a person does who presses its button. */
export function press(
  agent: UserAgent,
  page: Answer,
  path: string,
  { typed = {}, button, headers = {} }: Pressed = {},
): Promise<Answer> {
  const isPressed = (each: { value: string }) => button === undefined || each.value === button
  const form = formsOf(page).find(
    ({ action, buttons }) => new URL(action).pathname.endsWith(path) && buttons.some(isPressed),
  )
  const pressed = form?.buttons.find(isPressed)
  if (!form || !pressed) {
    throw new Error(`no form to ${path} with the button ${button} on: ${page.text}`)
  }
  const unknown = Object.keys(typed).filter((name) => !(name in form.fields))
  if (unknown.length > 0) throw new Error(`no field ${unknown.join()} in the form to ${path}`)
  const sent = { ...form.fields, ...typed, ...(pressed.name && { [pressed.name]: pressed.value }) }
  return agent.post(form.action, sent, headers)
}

function elements(html: string, tag: string) {
  return DomUtils.getElementsByTagName(tag, parseDocument(html))
}
