import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pug from 'pug'

/** The files of `views/`, compiled when they are first used. */
export interface Templates {
  /** @param name - such as `pages/error`. */
  render(name: string, locals: object): string
  /** A file as it is. */
  read(name: string): string
}

export function createTemplates(directory: string): Templates {
  const compiled = new Map<string, pug.compileTemplate>()

  function compile(name: string): pug.compileTemplate {
    const options = { compileDebug: false, doctype: 'html' }
    const template = pug.compileFile(join(directory, `${name}.pug`), options)
    compiled.set(name, template)
    return template
  }

  return {
    render: (name, locals) => (compiled.get(name) ?? compile(name))(locals),
    read: (name) => readFileSync(join(directory, name), 'utf8'),
  }
}
