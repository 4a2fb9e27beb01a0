import { readFile } from 'node:fs/promises'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect } from 'chai'
import { generatedFiles } from '../../docs/generate.ts'
import { openApiDocument } from '../../docs/generate/openapi.ts'
import { operations, type Operation } from '../../src/admin/description.ts'
import { allSettings } from '../../src/settings/table.ts'
import { operationNames, responsesOf } from '../support/documented-answers.ts'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8')

describe('What is made out of the table of settings and the description of the admin API', () => {
  let made: Record<string, string>

  before(async function () {
    this.timeout(60_000)
    made = await generatedFiles()
  })

  for (const path of ['docs/settings.md', 'docs/reference.md', 'docs/openapi.json']) {
    it(`is in ${path} as it would be made now; otherwise: npm run docs`, async () => {
      expect(made).to.have.property(path)
      expect(await read(path)).to.equal(made[path])
    })
  }

  it('are these files, and no others', () => {
    expect(Object.keys(made)).to.have.members([
      'docs/settings.md',
      'docs/reference.md',
      'docs/openapi.json',
    ])
  })

  it('is a valid OpenAPI 3.1 document', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(JSON.parse(await read('docs/openapi.json')))
    expect(errors ?? []).to.deep.equal([])
    expect([valid, validator.version]).to.deep.equal([true, '3.1'])
  })

  it('names for each operation one of the three scopes, and nothing that changes settings is for another one', async () => {
    const { paths, security } = JSON.parse(await read('docs/openapi.json'))
    expect(security).to.equal(undefined)
    for (const { route, scope } of Object.values<Operation>(operations)) {
      const [method = '', path = ''] = route.split(' ')
      const described = paths[path][method.toLowerCase()]
      expect(described.security, path).to.deep.equal([{ bearer: [scope] }])
      expect(scope).to.match(/^account-flows:(read|support|settings)$/)
      if (method === 'GET') expect(scope, path).to.equal('account-flows:read')
    }
  })

  it('is refused as OpenAPI where it is none', async () => {
    const broken = { ...openApiDocument(), paths: { settings: {} } }
    expect((await new Validator().validate(broken)).valid).to.equal(false)
  })

  it('has every setting of the table, with its meaning, its default, its bounds and its values', async () => {
    const page = await read('docs/settings.md')
    const { components } = JSON.parse(await read('docs/openapi.json'))
    for (const schema of ['Settings', 'SettingsInForce']) {
      const names = Object.keys(components.schemas[schema].properties)
      expect(names.filter((name) => name !== 'warnings')).to.deep.equal(
        allSettings.map(({ name }) => name),
      )
    }
    expect(components.schemas.Settings.additionalProperties).to.equal(false)
    for (const setting of allSettings) {
      const described = components.schemas.Settings.properties[setting.name]
      expect(described.description).to.include(setting.meaning).and.include(setting.expected)
      expect(described.default).to.equal(setting.default)
      expect(described.enum).to.deep.equal(setting.values)
      const row = page.split('\n').find((line) => line.startsWith(`| \`${setting.name}\``))
      expect(row, setting.name).to.include(setting.meaning)
      expect(row?.includes('(secret)')).to.equal(setting.secret)
      expect(row).to.include(setting.default === undefined ? '| none ' : `\`${setting.default}\``)
      for (const value of setting.values ?? []) expect(row).to.include(`\`${value}\``)
      expect(row).to.include(setting.values ? '|' : (setting.bounds ?? setting.expected))
    }
  })

  it('has each operation once, by its name, with each of its answers', () => {
    const { paths } = openApiDocument()
    const described = Object.values(paths).flatMap((path) =>
      Object.values(path).map((one) => Reflect.get(one, 'operationId')),
    )
    expect(described).to.have.members(operationNames)
    for (const [name, operation] of Object.entries<Operation>(operations)) {
      const [method = '', path = ''] = operation.route.split(' ')
      expect(paths[path]).to.have.property(method.toLowerCase())
      const statuses = Object.keys(responsesOf(name as keyof typeof operations))
      expect(statuses).to.include(String(operation.status ?? 200))
      expect(statuses).to.include.members(['400', '401', '403', '429', '500', '503'])
    }
  })
})
