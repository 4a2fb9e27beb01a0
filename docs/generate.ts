/**
 * Writes what is made out of the source: settings.md, both references, openapi.json, shapes.txt and the routes of the admin client. A test
 * compares them with what this would write.
 *
 * @module
 */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import { openApiDocument } from './generate/openapi.ts'
import { referencePage } from './generate/reference.ts'
import { routesFile } from './generate/routes.ts'
import { settingsPage } from './generate/settings-page.ts'
import { shapesFile } from './generate/shapes.ts'
import { storeReferencePage } from './generate/store-reference.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

const files: Record<string, () => string> = {
  'docs/settings.md': settingsPage,
  'docs/reference.md': referencePage,
  'docs/reference-stores.md': storeReferencePage,
  'docs/openapi.json': () => JSON.stringify(openApiDocument(), null, 2),
  'docs/shapes.txt': shapesFile,
  'src/admin/routes.ts': routesFile,
}

/** What each of the files must be, by its path below the root of the checkout. */
export async function generatedFiles(): Promise<Record<string, string>> {
  const contents: Record<string, string> = {}
  for (const [path, content] of Object.entries(files)) {
    const filepath = `${ROOT}${path}`
    const isText = path.endsWith('.txt')
    const options = { ...(await resolveConfig(filepath)), filepath }
    contents[path] = isText ? content() : await format(content(), options)
  }
  return contents
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, content] of Object.entries(await generatedFiles())) {
    await writeFile(`${ROOT}${path}`, content)
    console.log(path)
  }
}
