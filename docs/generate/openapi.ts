import * as z from 'zod'
import * as description from '../../src/admin/all-operations.ts'

type Operation = description.Operation

// Whatever the description names is a component, by that name.
const named = z.registry<{ id: string }>()
for (const [id, value] of Object.entries<unknown>(description)) {
  if (value instanceof z.ZodType) named.add(value, { id })
}

// What is sent as a body is read as it is. A query gets its defaults.
const jsonSchema = {
  uri: (id: string) => `#/components/schemas/${id}`,
  // Any whole number of JavaScript is below.
  override: ({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }) => {
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  },
} as const

const schemas = Object.fromEntries(
  Object.entries(z.toJSONSchema(named, jsonSchema).schemas).map(([name, schema]) => {
    const { $schema: _schema, $id: _id, ...rest } = schema
    return [name, rest]
  }),
)

function ref(schema: z.ZodType) {
  const { id } = named.get(schema) ?? {}
  if (id !== undefined) return { $ref: jsonSchema.uri(id) }
  throw new Error(`src/admin/all-operations.ts does not export the schema '${schema.description}'`)
}

const problem = { 'application/problem+json': { schema: ref(description.Problem) } }

const REFUSALS: Record<number, string> = {
  400: 'Something in the request is wrong; nothing was changed.',
  401: 'The bearer token is missing or wrong.',
  403: 'The bearer token is genuine, and lacks the scope; `WWW-Authenticate` names it.',
  404: 'What the request names does not exist.',
  405: 'Another method is needed, which `Allow` names.',
  409: 'Not one account alone is meant, or a worker holds the mail.',
  412: 'The settings changed since the ETag of `If-Match`; nothing was changed.',
  413: 'The body has more than 64 KiB.',
  415: 'The body is not application/json.',
  429: 'Too many requests without a right token; `Retry-After` says how long to wait.',
  500: 'Something went wrong in the server.',
  503: 'The database cannot be reached; try again later.',
}

/** The OpenAPI 3.1 document; paths are below `{base_url}/admin/api`. */
export function openApiDocument() {
  const paths: Record<string, Record<string, object>> = {}
  for (const [operationId, operation] of Object.entries<Operation>(description.operations)) {
    const [method = '', path = ''] = operation.route.split(' ')
    const there = (paths[path] ??= {})
    there[method.toLowerCase()] = describe(operationId, operation)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Admin API of oidc-account-flows',
      version: '1',
      description: 'Settings, mails, accounts, links and the audit log. Errors are RFC 9457.',
    },
    servers: [
      {
        url: '{base_url}/admin/api',
        variables: { base_url: { default: 'http://localhost:3000' } },
      },
    ],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'A fixed token, or a JWT, with the scope that the operation names. `account-flows:admin` is all of them.',
        },
      },
      schemas,
    },
  }
}

function describe(operationId: string, operation: Operation): object {
  const { route, scope, summary, query, body, answer, status = 200 } = operation
  const etag = TAGGED.has(answer)
  const mayBeStale = etag && !route.startsWith('GET')
  const headers = etag && {
    headers: { ETag: { description: 'Of the settings.', schema: { type: 'string' } } },
  }
  const { properties = {}, required = [] } = query
    ? z.toJSONSchema(query, { ...jsonSchema, io: 'input' })
    : {}
  const parameters = [
    ...Object.entries(properties).map(([name, parameter]) => {
      const { description, ...schema } = Object(parameter)
      return { name, in: 'query', description, required: required.includes(name), schema }
    }),
    ...(mayBeStale
      ? [
          {
            name: 'If-Match',
            in: 'header',
            description: 'ETag that the settings must still have.',
            schema: { type: 'string' },
          },
        ]
      : []),
  ]
  return {
    operationId,
    summary,
    security: [{ bearer: [scope] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: true, content: { 'application/json': { schema: ref(body) } } },
    }),
    responses: {
      [status]: {
        description: answer.description,
        ...headers,
        content: { 'application/json': { schema: ref(answer) } },
      },
      ...Object.fromEntries(
        refusalsOf(operation, mayBeStale).map((code) => [
          code,
          { description: REFUSALS[code], content: problem },
        ]),
      ),
    },
  }
}

/** Their answers have the ETag of the settings. */
const TAGGED = new Set<unknown>([description.SettingsInForce, description.SettingsHistory])
const NAMING = new Set<unknown>([description.AccountQuery, description.MailChoice])

function refusalsOf({ body }: Operation, mayBeStale = false): number[] {
  return [
    400,
    401,
    403,
    ...(body && NAMING.has(body) ? [404] : []),
    405,
    ...(body && NAMING.has(body) ? [409] : []),
    ...(mayBeStale ? [412] : []),
    ...(body ? [413, 415] : []),
    429,
    500,
    503,
  ]
}
