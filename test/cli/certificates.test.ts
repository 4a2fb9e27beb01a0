import { createServer, type Server } from 'node:https'
import { request } from 'node:http'
import { writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { newCertificate, type Certificate } from '../support/certificates.ts'
import { startCliProcess } from '../support/cli.ts'
import { suiteCli } from '../support/cli-server.ts'
import { suiteFolder } from '../support/suite-folder.ts'

const DAY_MS = 86_400_000

describe('account-flows and the certificate of the server [full]', () => {
  const authority = newCertificate({})
  const cli = suiteCli()
  const file = suiteFolder()
  let proxy: Server | undefined

  before(() => writeFile(file('authority.pem'), authority.cert))
  afterEach(() => {
    proxy?.closeAllConnections()
    proxy?.close()
  })

  /** The same service, behind TLS. */
  async function behind({ cert, key }: Certificate): Promise<string> {
    const server = createServer({ cert, key }, (incoming, answer) => {
      const { method, url, headers } = incoming
      const onward = request(cli.h.baseUrl + url, { method, headers }, (response) => {
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

  /** `NODE_EXTRA_CA_CERTS` is read as a process starts. */
  async function doctor(url: string) {
    const env = { ...cli.env, NODE_EXTRA_CA_CERTS: file('authority.pem') }
    const { exited, stdout } = startCliProcess(['doctor', '--url', url], env)
    return { exitCode: await exited, stdout: stdout() }
  }

  it('of an authority that NODE_EXTRA_CA_CERTS names is trusted', async () => {
    const { exitCode, stdout } = await doctor(
      await behind(newCertificate({ names, signer: authority })),
    )
    expect(exitCode, stdout).to.equal(0)
    expect(stdout)
      .to.match(/^ok +server_tls: /m)
      .and.match(/^ok +token: /m)
  })

  for (const [what, wish, reason] of [
    [
      'for another host name',
      { names: ['idp.example'], signer: authority },
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
      'CERT_HAS_EXPIRED',
    ],
  ] as const) {
    it(`${what} is refused with exit 3, and doctor tells what to do`, async () => {
      const url = await behind(newCertificate({ ...wish, names: [...wish.names] }))
      const { exitCode, stdout } = await doctor(url)
      expect(exitCode).to.equal(3)
      tellsWhatToDo(stdout, reason)
    })
  }

  for (const [what, wish, reason] of [
    ['of an unknown authority', { names, signer: authority }, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['that signed itself', { names }, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ] as const) {
    it(`${what} is refused with exit 3, and doctor tells what to do`, async () => {
      const url = await behind(newCertificate(wish))
      const { exitCode, stdout } = await cli.run(['doctor', '--url', url])
      expect(exitCode).to.equal(3)
      tellsWhatToDo(stdout, reason)
      const refused = await cli.run(['settings', 'get', '--url', url])
      expect(refused).to.include({ exitCode: 3, stdout: '' })
      expect(refused.stderr).to.include(reason)
    })
  }

  function tellsWhatToDo(stdout: string, reason: string) {
    const [, message = '', advice = ''] = /^FAILED +server_tls: (.*)\n +(.*)$/m.exec(stdout) ?? []
    expect(message).to.include(reason)
    expect(advice).to.match(/\w/).and.not.equal('Check that this is an https port.')
  }
})
