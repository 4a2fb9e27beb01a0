import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { Log } from '../../src/index.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import { startExampleServer } from '../support/example-server.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { FORM } from '../support/raw-request.ts'
import { suiteHarness } from '../support/suite-harness.ts'

/** After three good characters; `undefined`: the connection is reset. */
const ENDS = {
  'a chunk without a size': 'zz\r\n',
  'a chunk of another size': '5\r\nabcdefg',
  'a chunk cut off': '5\r\nab',
  'a client that hangs up': undefined,
}

const requestsWith = (adminToken: string) => ({
  'a form page': `POST /oauth2/forgot-password HTTP/1.1\r\ncontent-type: ${FORM}`,
  'the admin API': `PUT /admin/api/settings HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer ${adminToken}`,
})

/** Answers the first line of the answer; empty where there is none. */
async function sendBroken(port: number, head: string, end: string | undefined): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  const begun = `${head}\r\nhost: localhost:${port}\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n`
  socket.write(`${begun}3\r\nabc\r\n`)
  // The server has the head now, and reads on.
  await once(socket, 'data')
  answer = ''
  if (end === undefined) socket.resetAndDestroy()
  else socket.end(end)
  await closed
  return answer.split('\r\n')[0] ?? ''
}

function expectRefused(answer: string, end: string | undefined): void {
  expect(answer).to.equal(end === undefined ? '' : 'HTTP/1.1 400 Bad Request')
}

describe('A body that the client breaks', () => {
  const logged: Parameters<Log>[] = []
  const h = suiteHarness({
    flows: { log: (...line) => logged.push(line) },
    host(parts) {
      // Koa prints it otherwise.
      Reflect.set(parts.provider, 'silent', true)
      return nodeHttpHost(parts)
    },
  })

  before(async () => {
    await h.addUser({ username: 'alice' })
  })

  for (const [where, head] of Object.entries(requestsWith(ADMIN_TOKEN))) {
    for (const [what, end] of Object.entries(ENDS)) {
      it(`is refused by ${where}, and is no error of ours: ${what}`, async () => {
        expectRefused(await sendBroken(Number(new URL(h.baseUrl).port), head, end), end)
        expect((await h.forgot('alice')).mode).to.equal('sent')
        expect(logged.filter(([level]) => level === 'error')).to.deep.equal([])
      })
    }
  }

  it('is no error of ours either where it breaks before anybody reads it', async () => {
    const { port } = new URL(h.baseUrl)
    for (const head of Object.values(requestsWith(ADMIN_TOKEN))) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.resume().on('error', () => {})
      socket.end(`${head}\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`)
      await once(socket, 'close')
    }
    expect((await h.forgot('alice')).mode).to.equal('sent')
    expect(logged.filter(([level]) => level === 'error')).to.deep.equal([])
  })

  it('is no error in the log of the example server either [full]', async () => {
    const server = await startExampleServer()
    try {
      const pages = ['login', 'token'].map(
        (it) => `POST /oauth2/${it} HTTP/1.1\r\ncontent-type: ${FORM}`,
      )
      for (const head of [...Object.values(requestsWith(server.adminToken)), ...pages]) {
        for (const end of Object.values(ENDS)) {
          expectRefused(await sendBroken(server.port, head, end), end)
        }
      }
      expect((await fetch(`${server.baseUrl}/oauth2/forgot-password`)).status).to.equal(200)
    } finally {
      await server.stop()
    }
    expect(server.output()).not.to.include('"level":"error"')
  })
})
