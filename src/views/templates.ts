import { posix } from 'node:path'
import pug from 'pug'
import type { Log } from '../ports.ts'
import type { ViewFile, ViewFiles } from './view-files.ts'

/** The files of `views/`, each in the host's copy where there is one. */
export interface Templates {
  /**
   * What a host's template fails at is logged, and ours is rendered in its place.
   *
   * @param name - such as `pages/error`.
   */
  render(name: string, locals: object): string
  /** A file as it is. */
  read(name: string): string
}

export interface LayeredTemplates extends Templates {
  /** The same, but what a host's template fails at is thrown. */
  strict: Templates
  /** The host's files that a page or a mail is made of. */
  used: ReadonlySet<string>
}

interface Compiled {
  render: pug.compileTemplate
  /** The host's files that it is made of. */
  hosts: string[]
}

/**
 * Ours are compiled when they are first used, unless a host has templates: then all are at once, so that a mistake is told now.
 *
 * @param problems - takes what does not compile.
 */
export function createTemplates(files: ViewFiles, log: Log, problems: string[]): LayeredTemplates {
  const layered = new Map<string, Compiled>()
  const own = new Map<string, Compiled>()
  const used = new Set<string>()

  function template(name: string): Compiled {
    const compiled = layered.get(name) ?? compile(files, `${name}.pug`, true)
    layered.set(name, compiled)
    return compiled
  }

  function ownTemplate(name: string): Compiled {
    const compiled = own.get(name) ?? compile(files, `${name}.pug`, false)
    own.set(name, compiled)
    return compiled
  }

  function renderStrictly(name: string, locals: object): string {
    const html = template(name).render(locals)
    if (html === '') throw new TypeError('the template says nothing')
    return html
  }

  function read(name: string): string {
    const file = files.find(name)
    if (!file) throw new TypeError(`views have no ${name}`)
    return file.text
  }

  function compileAll() {
    for (const name of new Set([...files.own.keys(), ...files.hosts.keys()])) {
      const isEntry = /^(pages|mails)\/[^/]+\.pug$/.test(name) && files.own.has(name)
      if (!isEntry && !(name.endsWith('.pug') && files.hosts.has(name))) continue
      try {
        const { hosts } = template(name.slice(0, -'.pug'.length))
        if (isEntry) for (const each of hosts) used.add(each)
      } catch (error) {
        problems.push(problemOf(name, error))
      }
    }
  }

  if (files.hasHostsTemplates) compileAll()

  return {
    used,

    read,
    strict: { render: renderStrictly, read },

    render(name, locals) {
      if (template(name).hosts.length === 0) return renderStrictly(name, locals)
      try {
        return renderStrictly(name, locals)
      } catch (error) {
        const { where, message } = failureOf(error)
        log('error', 'a template of viewsDirectory failed; ours is shown', {
          template: name,
          ...(where && { where }),
          error: message,
        })
        return ownTemplate(name).render(locals)
      }
    },
  }
}

function compile(files: ViewFiles, name: string, isLayered: boolean): Compiled {
  const file = isLayered ? files.find(name) : files.own.get(name)
  if (!file) throw new TypeError(`views have no ${name}`)
  const loaded = new Map([[nameOf(file), file]])

  // What each was loaded for, from the page on; a file is loaded again for each that includes it.
  const above = new Map<string, string[]>([[nameOf(file), []]])

  // The host's copy, but for the one that asks for what it replaces itself: that extends ours.
  const resolve = (wanted: string, source: string): string => {
    const from = loaded.get(source) ?? file
    const path = wanted.trim()
    const name = path.startsWith('/')
      ? posix.normalize(path.slice(1))
      : posix.join(posix.dirname(from.name), path)
    const found = isLayered && name !== from.name ? files.find(name) : files.own.get(name)
    if (!found) throw new TypeError(`there is no ${name}`)
    const chain = [...(above.get(source) ?? []), source]
    if (chain.includes(nameOf(found))) throw new TypeError(`${name} is made of itself`)
    above.set(nameOf(found), chain)
    loaded.set(nameOf(found), found)
    return nameOf(found)
  }

  const options = {
    filename: nameOf(file),
    doctype: 'html',
    compileDebug: isLayered && files.hosts.size > 0,
    plugins: [{ resolve, read: (name: string) => loaded.get(name)?.text ?? '' }],
  }
  const render = pug.compile(file.text, options)
  const hosts = [...loaded.values()].filter(({ isHosts }) => isHosts)
  return { render, hosts: hosts.map(({ name }) => name) }
}

/** Tells a host's file and ours of the same name apart. */
function nameOf({ name, isHosts }: ViewFile): string {
  return isHosts ? name : `(ours)/${name}`
}

function problemOf(name: string, error: unknown): string {
  const part = (key: string) => String(Reflect.get(Object(error), key) ?? '')
  const place = part('line') ? `${part('filename') || name}, line ${part('line')}` : name
  return `${place}: ${(part('msg') || part('message')).replace(/\n[^]*$/, '')}`
}

/** The file and line out of what pug puts before a message, and the message. */
export function failureOf(error: unknown): { where: string | undefined; message: string } {
  const text = error instanceof Error ? error.message : String(error)
  const where = /^\S+:\d+(?=\n)/.exec(text)?.[0]
  return { where, message: where ? text.slice(text.lastIndexOf('\n\n') + 2) : text }
}
