import { createServer, type Server } from 'node:https'
import { request } from 'node:http'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { newCertificate, type Certificate } from '../support/certificates.ts'
import { startCliServer, type CliServer } from '../support/cli-server.ts'

const DAY_MS = 86_400_000
const GET = ['settings', 'get', 'password_reset_expiration']

describe('account-flows and the certificate of the server', () => {
  const authority = newCertificate({})
  let cli: CliServer
  let folder: string
  let proxy: Server | undefined

  before(async function () {
    this.timeout(60_000)
    cli = await startCliServer()
    folder = await mkdtemp(join(tmpdir(), 'cli-test-'))
    await writeFile(join(folder, 'authority.pem'), authority.cert)
  })
  after(() => Promise.all([cli.close(), rm(folder, { recursive: true })]))

  afterEach(() => {
    proxy?.closeAllConnections()
    proxy?.close()
  })

  /** The same service, behind TLS. */
  async function behind({ cert, key }: Certificate): Promise<string> {
    const server = createServer({ cert, key }, (incoming, answer) => {
      const { method, url, headers } = incoming
      const onward = request(cli.server.baseUrl + url, { method, headers }, (response) => {
        answer.writeHead(response.statusCode ?? 500, response.headers)
        response.pipe(answer)
      })
      incoming.pipe(onward)
    })
    proxy = server
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const names = ['127.0.0.1']
  const trusting = () => ({ NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem') })

  it('of an authority that NODE_EXTRA_CA_CERTS names is trusted', async () => {
    const url = await behind(newCertificate({ names, signer: authority }))
    const run = await cli.run([...GET, '--url', url], { env: trusting() })
    expect(run, run.stderr).to.include({ exitCode: 0, stdout: '1h\n' })
    const { stdout } = await cli.run(['doctor', '--url', url], { env: trusting() })
    expect(stdout)
      .to.match(/^ok +server_tls: /m)
      .and.match(/^ok +token: /m)
  })

  for (const [what, wish, env, reason] of [
    [
      'of an unknown authority',
      { names, signer: authority },
      {},
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
    ['that signed itself', { names }, {}, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [
      'for another name',
      { names: ['idp.example'], signer: authority },
      { trusted: true },
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'that has expired',
      {
        names,
        signer: authority,
        validFrom: new Date(Date.now() - 2 * DAY_MS),
        validUntil: new Date(Date.now() - DAY_MS),
      },
      { trusted: true },
      'CERT_HAS_EXPIRED',
    ],
  ] as const) {
    it(`${what} is refused with exit 3, and doctor tells what to do`, async () => {
      const url = await behind(newCertificate({ ...wish, names: [...wish.names] }))
      const options = { env: 'trusted' in env ? trusting() : {} }
      const refused = await cli.run([...GET, '--url', url], options)
      expect(refused).to.include({ exitCode: 3, stdout: '' })
      expect(refused.stderr).to.include(reason)
      const { exitCode, stdout } = await cli.run(['doctor', '--url', url, '--json'], options)
      expect(exitCode).to.equal(3)
      const last = JSON.parse(stdout).checks.at(-1)
      expect(last).to.include({ step: 'server_tls', status: 'failed' })
      expect(last.message).to.include(reason)
      expect(last.advice).to.be.a('string').and.not.equal('Is this an https port?')
    })
  }
})
