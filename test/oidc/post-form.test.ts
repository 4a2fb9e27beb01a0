import { createHook } from 'node:async_hooks'
import { expect } from 'chai'
import { createPostForm, isPublicAddress } from '../../src/oidc/post-form.ts'
import { startLogoutClient } from '../support/logout-clients.ts'
import { serve } from '../support/serve.ts'

describe('A public address', () => {
  const PUBLIC = [
    '93.184.215.14',
    '1.1.1.1',
    '2606:2800:21f:cb07:6820:80da:af6b:8b2c',
    '2a00::1',
    '2a00::1:5efe:1:1',
  ]
  for (const address of [...PUBLIC, '::ffff:1.1.1.1'])
    it(`is ${address}`, () => expect(isPublicAddress(address)).to.equal(true))

  const OTHERS = {
    'this machine': ['127.0.0.1', '127.1.2.3', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1'],
    'a private network': ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fd00::1'],
    'a link, such as the metadata service of a cloud': [
      '169.254.169.254',
      'fe80::1',
      'fe80::1%eth0',
    ],
    'a carrier': ['100.64.0.1'],
    'the host of a machine at Azure': ['168.63.129.16', '::ffff:168.63.129.16'],
    'many at once': ['224.0.0.1', '255.255.255.255', 'ff02::1'],
    'documentation and tests': [
      '192.0.2.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '2001:db8::1',
    ],
    'nobody yet': ['240.0.0.1', '192.0.0.1', '4000::1', '3fff::1', 'fec0::1'],
    'another address inside': [
      '::127.0.0.1',
      '::ffff:10.0.0.1',
      '::ffff:0:10.0.0.1',
      '64:ff9b::10.0.0.1',
      '2002:a00:1::',
      '2001:0:1::',
      '2a00::5efe:10.0.0.1',
      '2a00::200:5efe:a9fe:a9fe',
    ],
    'no address': ['', 'localhost', 'example.com', '0x7f.1', '1.1.1', '1.1.1.1:80'],
  }
  for (const [whose, addresses] of Object.entries(OTHERS))
    it(`is none of ${whose}`, () => {
      for (const address of addresses) expect(isPublicAddress(address), address).to.equal(false)
    })
})

describe('A form for a name that is at an inner address', () => {
  it('is looked up once, and no connection is begun (SES-18, SES-20)', async () => {
    const client = await startLogoutClient('inner')
    const uri = (client.metadata.backchannel_logout_uri ?? '').replace('127.0.0.1', 'localhost')
    const begun: string[] = []
    const hook = createHook({
      init: (_id, type) => void (/^(GETADDRINFO|TCPCONNECT)/.test(type) && begun.push(type)),
    })
    const post = (allowsPrivate: boolean) =>
      createPostForm(allowsPrivate)(uri, { logout_token: 't' }, new AbortController().signal)
    try {
      hook.enable()
      expect(await post(false)).to.equal('refused_address')
      hook.disable()
      expect(begun).to.deep.equal(['GETADDRINFOREQWRAP'])
      expect(client.tokens).to.deep.equal([])
      expect(await post(true)).to.equal(undefined)
      expect(client.tokens).to.deep.equal(['t'])
    } finally {
      hook.disable()
      await client.close()
    }
  })
})

describe('A form for a server that asks to change the protocol', () => {
  it('is answered soon', async () => {
    const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'
    const server = await serve((_req, res) => void res.socket?.write(upgrade))
    const { signal } = new AbortController()
    expect(await createPostForm(true)(server.url, {}, signal)).to.equal('not_reached')
    await server.close()
  })
})
