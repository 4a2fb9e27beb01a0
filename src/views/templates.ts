import { createRequire } from 'node:module'
import { posix } from 'node:path'
import type pug from 'pug'
import type { Log } from '../contract/index.ts'
import type { ViewFile, ViewFiles } from './view-files.ts'

/** The files of `views/`, each replaced by the host's copy if there is one. */
export type Templates = Pick<ReturnType<typeof createTemplates>, 'render' | 'read'>

type Compiled = ReturnType<typeof compile>

/** Loads pug with the first page, because pug takes much memory. */
const load = createRequire(import.meta.url)
const loadPug = (): typeof pug => load('pug')

const compiledOwn = new WeakMap<ViewFile, Compiled>()

/** Our templates are compiled once in a process, each at its first use. */
function renderOwn({ own }: ViewFiles, name: string, locals: object): string {
  const file = own.get(`${name}.pug`)
  if (!file) throw new TypeError(`views have no ${name}`)
  const template = compiledOwn.get(file) ?? compile(file, (wanted) => own.get(wanted), false)
  compiledOwn.set(file, template)
  return template.render(locals)
}

/** If a host has templates, it compiles all templates at once, and their mistakes become `problems`. */
export function createTemplates(files: ViewFiles, log: Log, problems: string[]) {
  const hosts = new Map<string, Compiled>()
  const used = new Set<string>()

  if (files.hasHostsTemplates) {
    // If a host's copy extends the file that it replaces, it extends ours.
    const find = (name: string, from?: ViewFile) =>
      name === from?.name ? files.own.get(name) : files.find(name)
    for (const file of new Map([...files.own, ...files.hosts]).values()) {
      const isEntry = files.own.has(file.name) && /^(pages|mails)\/[^/]+\.pug$/.test(file.name)
      if (!isEntry && !(file.isHosts && file.name.endsWith('.pug'))) continue
      try {
        const template = compile(file, find, true)
        hosts.set(file.name, template)
        if (isEntry) for (const name of template.names) used.add(name)
      } catch (error) {
        problems.push(problemOf(file.name, error))
      }
    }
  }

  function renderStrictly(name: string, locals: object): string {
    const html = hosts.get(`${name}.pug`)?.render(locals) ?? renderOwn(files, name, locals)
    if (html === '') throw new TypeError('the template has no output')
    return html
  }

  function read(name: string): string {
    const file = files.find(name)
    if (!file) throw new TypeError(`views have no ${name}`)
    return file.text
  }

  return {
    used,
    read,
    /** The same, but it throws the errors of a host's template. */
    strict: { render: renderStrictly, read },

    /** Renders a template such as `pages/error`. If a host's template fails, it logs that, and renders ours in its place. */
    render(name: string, locals: object): string {
      try {
        return renderStrictly(name, locals)
      } catch (error) {
        if (!files.hasHostsTemplates) throw error
        const { where, message } = failureOf(error)
        log('error', 'a template of viewsDirectory failed; the built-in one is shown', {
          template: name,
          ...(where && { where }),
          error: message,
        })
        return renderOwn(files, name, locals)
      }
    },
  }
}

function compile(
  file: ViewFile,
  find: (name: string, from?: ViewFile) => ViewFile | undefined,
  compileDebug: boolean,
) {
  const loaded = new Map([[nameOf(file), file]])
  // The chain of files that led to each one, from the page on.
  const above = new Map<string, string[]>([[nameOf(file), []]])

  const resolve = (wanted: string, source: string): string => {
    const from = loaded.get(source) ?? file
    const path = wanted.trim()
    const name = path.startsWith('/')
      ? posix.normalize(path.slice(1))
      : posix.join(posix.dirname(from.name), path)
    const found = find(name, from)
    if (!found) throw new TypeError(`there is no ${name}`)
    const chain = [...(above.get(source) ?? []), source]
    if (chain.includes(nameOf(found))) throw new TypeError(`${name} includes itself`)
    above.set(nameOf(found), chain)
    loaded.set(nameOf(found), found)
    return nameOf(found)
  }

  const options = {
    filename: nameOf(file),
    doctype: 'html',
    compileDebug,
    plugins: [{ resolve, read: (path: string) => loaded.get(path)?.text ?? '' }],
  }
  const render = loadPug().compile(file.text, options)
  return { render, names: [...loaded.values()].map(({ name }) => name) }
}

/** Differs for a host's file and ours of the same name. */
function nameOf({ name, isHosts }: ViewFile): string {
  return isHosts ? name : `(ours)/${name}`
}

function problemOf(name: string, error: unknown): string {
  const part = (key: string) => String(Reflect.get(Object(error), key) ?? '')
  const place = part('line') ? `${part('filename') || name}, line ${part('line')}` : name
  return `${place}: ${(part('msg') || part('message')).replace(/\n[^]*/, '')}`
}

/** pug puts file and line in front of a message. */
export function failureOf(error: unknown): { where: string | undefined; message: string } {
  const text = error instanceof Error ? error.message : String(error)
  const where = /^\S+:\d+(?=\n)/.exec(text)?.[0]
  return { where, message: where ? text.slice(text.lastIndexOf('\n\n') + 2) : text }
}
