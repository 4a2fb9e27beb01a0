// One auth collection with verification, by its HTTP endpoints, without Next.js and the admin panel.
import { createServer } from 'node:http'
import { mongooseAdapter } from '@payloadcms/db-mongodb'
import { nodemailerAdapter } from '@payloadcms/email-nodemailer'
import { buildConfig, getPayload, handleEndpoints } from 'payload'
import { createMailer, FROM, listen } from '../comparison/mailer.mjs'

const { PORT, MONGO_URL } = process.env
const base = `http://127.0.0.1:${PORT}`
const linkTo = (path) => ({
  generateEmailHTML: ({ token }) => `Open this link: ${base}${path}/${token}`,
})
const config = await buildConfig({
  serverURL: base,
  secret: 'a secret for the bench alone',
  telemetry: false,
  typescript: { autoGenerate: false },
  graphQL: { disable: true },
  logger: { options: { level: 'error' } },
  db: mongooseAdapter({
    url: MONGO_URL,
    connectOptions: { maxPoolSize: 32, autoCreate: false, autoIndex: false },
  }),
  email: nodemailerAdapter({
    defaultFromAddress: FROM,
    defaultFromName: 'bench',
    transport: createMailer(),
    skipVerify: true,
  }),
  collections: [
    {
      slug: 'users',
      fields: [],
      auth: { verify: linkTo('/api/users/verify'), forgotPassword: linkTo('/admin/reset') },
    },
  ],
})
// What mongoose would do beside the first requests.
const { db } = await getPayload({ config })
for (const model of Object.values(db.connection.models)) {
  await model.createCollection()
  await model.createIndexes()
}

async function answer(req, res) {
  const parts = []
  for await (const chunk of req) parts.push(chunk)
  const body = parts.length > 0 ? Buffer.concat(parts) : undefined
  const { method, headers } = req
  const request = new Request(base + req.url, { method, headers, body })
  const answered = await handleEndpoints({ config, request })
  res.writeHead(answered.status, Object.fromEntries(answered.headers))
  res.end(Buffer.from(await answered.arrayBuffer()))
}

listen(createServer((req, res) => void answer(req, res)))
