// Verification and password policy on, bcrypt as it comes. It does not await its mails either.
import express from 'express'
import { ParseServer } from 'parse-server'
import { createMailer, FROM, listen } from '../comparison/mailer.mjs'

const { PORT, MONGO_URL } = process.env
const base = `http://127.0.0.1:${PORT}/parse`
const mailer = createMailer()
const server = new ParseServer({
  databaseURI: MONGO_URL,
  databaseOptions: { maxPoolSize: 32 },
  appId: 'bench',
  appName: 'bench',
  masterKey: 'a master key for the bench alone',
  serverURL: base,
  publicServerURL: base,
  verifyUserEmails: true,
  preventLoginWithUnverifiedEmail: true,
  emailVerifyTokenValidityDuration: 86_400,
  passwordPolicy: { resetTokenValidityDuration: 3_600 },
  emailAdapter: { sendMail: (mail) => mailer.sendMail({ from: FROM, ...mail }) },
  silent: true,
  logsFolder: null,
  allowClientClassCreation: false,
  enforcePrivateUsers: true,
})
await server.start()
const app = express()
app.use('/parse', server.app)
listen(app)
