/** A program that runs out of files before its first form comes, and tells what it answers once there are some again. */
import { closeSync, openSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { ADMIN_TOKEN, startHarness } from '../support/harness.ts'

const { baseUrl } = await startHarness()
// Its connection is open before there is no file left.
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

function ask(method: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(baseUrl + path, { method, agent, headers }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(Number(answer.statusCode)))
    })
    sent.on('error', reject)
    sent.end(method === 'POST' ? 'identifier=nobody' : '')
  })
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const post = () => ask('POST', '/oauth2/forgot-password', FORM)
const admin = () => ask('GET', '/admin/api/settings', { authorization: `Bearer ${ADMIN_TOKEN}` })

await ask('GET', '/oauth2/forgot-password')
const files: number[] = []
try {
  for (;;) files.push(openSync('/dev/null', 'r'))
} catch {
  // None is left.
}
await post()
await admin()
for (const file of files) closeSync(file)
console.log(JSON.stringify({ after: [await post(), await admin()] }))
process.exit(0)
