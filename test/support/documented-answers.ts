import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { openApiDocument } from '../../docs/generate/openapi.ts'
import { operations, type Operation, type OperationName } from '../../src/admin/description.ts'
import { ADMIN_TOKEN, type Harness } from './harness.ts'

export type { OperationName }

export interface DocumentedRequest {
  /** As it is behind the `?`. */
  query?: string
  body?: unknown
  headers?: Record<string, string>
  /** In place of that of the operation. */
  method?: string
}

export interface DocumentedAnswer {
  status: number
  headers: Headers
  json: Record<string, unknown>
}

interface Media {
  schema: object
}

interface DescribedResponse {
  headers?: Record<string, object>
  content: Record<string, Media>
}

const document = openApiDocument()
const ajv = new Ajv2020({ allErrors: true })
ajv.addVocabulary(['components'])
ajv.addFormat('date-time', (text: string) => new Date(text).toISOString() === text)

const compiled = new Map<string, ValidateFunction>()

function checkOf(schema: object): ValidateFunction {
  const key = JSON.stringify(schema)
  const known = compiled.get(key)
  if (known) return known
  const { schemas } = document.components
  const check = ajv.compile({ ...schema, components: { schemas } })
  compiled.set(key, check)
  return check
}

/** Throws where a value is not as its schema in the OpenAPI document says. */
export function expectDescribed(name: string, value: unknown): void {
  const check = checkOf({ $ref: `#/components/schemas/${name}` })
  check(value)
  expect(check.errors ?? [], `${name}: ${JSON.stringify(value)}`).to.deep.equal([])
}

/** Throws where an answer is not as the document says of the operation. */
export function expectAnswer(name: OperationName, value: unknown): void {
  const { status = 200 }: Operation = operations[name]
  const { schema = {} } = responsesOf(name)[status]?.content['application/json'] ?? {}
  const check = checkOf(schema)
  check(value)
  expect(check.errors ?? [], `${name}: ${JSON.stringify(value)}`).to.deep.equal([])
}

/** The names of the operations, in the order of the document. */
export const operationNames = Object.keys(operations).filter(
  (name): name is OperationName => name in operations,
)

/** What the document says of each answer of an operation, by its status. */
export function responsesOf(name: OperationName): Record<string, DescribedResponse> {
  const [method = '', path = ''] = operations[name].route.split(' ')
  const described = document.paths[path]?.[method.toLowerCase()]
  return Object(Reflect.get(Object(described), 'responses'))
}

/** Asks for operations of the admin API; every answer, be it a refusal, must be one that the document describes. */
export function documentedAnswers({ baseUrl }: Pick<Harness, 'baseUrl'>, token = ADMIN_TOKEN) {
  return async (
    name: OperationName,
    request: DocumentedRequest = {},
  ): Promise<DocumentedAnswer> => {
    const [method = '', path] = operations[name].route.split(' ')
    const { query, body, headers } = request
    const response = await fetch(
      `${baseUrl}/admin/api${path}${query === undefined ? '' : `?${query}`}`,
      {
        method: request.method ?? method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      },
    )
    const text = await response.text()
    const { status } = response
    const described = responsesOf(name)[status]
    if (!described) throw new Error(`${name} answers ${status}, which is not described: ${text}`)
    const [type = ''] = (response.headers.get('content-type') ?? '').split(';')
    const media = described.content[type]
    if (!media) throw new Error(`${name} answers ${status} as ${type}, which is not described`)
    const json = JSON.parse(text)
    const check = checkOf(media.schema)
    check(json)
    expect(check.errors ?? [], `${name} ${status}: ${text}`).to.deep.equal([])
    for (const header of Object.keys(described.headers ?? {})) {
      expect(response.headers.has(header), `${name} ${status} has ${header}`).to.equal(true)
    }
    return { status, headers: response.headers, json }
  }
}
