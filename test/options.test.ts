import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import Koa from 'koa'
import { interactionPolicy, Provider, type Configuration } from 'oidc-provider'
import { ADMIN_SCOPES } from '../src/admin/bearer-tokens.ts'
import {
  createAccountFlows,
  memoryMailbox,
  memoryAdapter,
  memoryStore,
  memoryUsers,
  type AccountFlows,
  type AccountFlowsOptions,
} from '../src/index.ts'

const JWT = {
  issuer: 'https://issuer.example',
  audience: 'https://idp.example/admin',
  algorithms: ['RS256'],
  keys: { keys: [{ kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'key-1' }] },
} satisfies AccountFlowsOptions['adminJwt']

const GOOD = {
  baseUrl: 'https://idp.example',
  oauthPath: '/oauth2',
  secrets: [randomBytes(32)],
  store: memoryStore(),
  users: memoryUsers(),
  adminToken: 'x'.repeat(32),
} satisfies AccountFlowsOptions

describe('createAccountFlows()', () => {
  const logged: string[] = []

  // The types forbid some of these; a host in JavaScript has no types.
  const create = (options: object) =>
    createAccountFlows({
      ...GOOD,
      log: (level, message) => logged.push(`${level} ${message}`),
      ...options,
    })

  /** As in an environment of that name. */
  function within<T>(environment: string | undefined, work: () => T): T {
    const before = process.env['NODE_ENV']
    const set = (value: string | undefined) => {
      if (value === undefined) delete process.env['NODE_ENV']
      else process.env['NODE_ENV'] = value
    }
    set(environment)
    try {
      return work()
    } finally {
      set(before)
    }
  }

  beforeEach(() => logged.splice(0))

  const bad: Partial<Record<keyof AccountFlowsOptions, unknown[]>> = {
    hashing: [null, {}, { hash: async () => 'hash' }, { hash: 1, verify: () => true }],
    baseUrl: [
      undefined,
      '',
      'idp.example',
      '/oauth2',
      'ftp://idp.example',
      'javascript:alert(1)',
      'https://idp.example?x=1',
      'https://idp.example#x',
      'https://user@idp.example',
      'https://user:password@idp.example',
    ],
    oauthPath: ['oauth2', '/', '/oauth2/', '//oauth2', '/o a', '/../x/', '/oauth2?x', '/ö', '/%2e'],
    adminPath: ['', '/', 'admin', '/admin/', '/a b', '/oauth2', '/a?x', 42],
    secrets: [
      undefined,
      null,
      [],
      'text',
      [''],
      ['no base64url!'],
      [new Uint8Array()],
      [42],
      [null],
    ],
    store: [undefined, null, 'mongodb'],
    users: [undefined, null, () => {}],
    adminToken: [
      '',
      [''],
      [null],
      ['x'.repeat(32), 'x'.repeat(32)],
      { token: 'x'.repeat(32) },
      { token: 'x'.repeat(32), scopes: [] },
      { token: 'x'.repeat(32), scopes: 'account-flows:read' },
      { token: 'x'.repeat(32), scopes: ['read'] },
      { token: 'x'.repeat(32), scopes: ['account-flows:read', 'openid'] },
      [{ scopes: ['account-flows:read'] }],
    ],
    beforeForgotPassword: [null, 'allow', {}, true],
    judgePassword: [null, 'good', {}, true],
    captcha: [null, 'altcha', { html: '<i></i>' }],
    bcryptCost: [0, 3, 32, 4.5, NaN, '12', null],
    responseDelay: [
      {},
      { floorMs: -1, jitterMs: 0 },
      { floorMs: 0, jitterMs: -1 },
      { floorMs: 0, jitterMs: Infinity },
      { floorMs: '1', jitterMs: 0 },
    ],
    trustedProxies: [-1, 0.5, '1', true],
    clientLogout: [
      null,
      true,
      'all',
      { allowPrivateNetworks: 'true' },
      { allowPrivateNetworks: null },
    ],
    transport: [null, {}, 'smtp', { send: 'mails' }],
    clock: [null, {}, { now: () => new Date() }, 'utc'],
    viewsDirectory: ['', 'no/such/directory', 'package.json', 'a\0b', null, 42, {}],
    brand: [
      null,
      'Acme',
      { name: 42 },
      { colour: null },
      { name: 'Acme', logo: 'https://cdn.example/l.png' },
    ],
    defaultLocale: ['', 'en_GB', 'x', 'tlh', '../en', null, 42],
  }
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      it(`refuses ${name} ${JSON.stringify(value) ?? String(value)} with a TypeError that names it`, () => {
        for (const environment of [undefined, 'production']) {
          expect(() => within(environment, () => create({ [name]: value }))).to.throw(
            TypeError,
            name,
          )
        }
      })
    }
  }

  const judged = (captcha: unknown) => ({ captcha, beforeForgotPassword: () => 'allow' })

  it('refuses every wrong captcha with a TypeError that names it', () => {
    for (const captcha of [
      null,
      '<i></i>',
      {},
      { html: ' ' },
      { html: 42 },
      { html: '<i>', src: '' },
    ]) {
      expect(() => create(judged(captcha)), JSON.stringify(captcha)).to.throw(TypeError, 'captcha')
    }
    expect(() => create({ captcha: { html: '<i></i>' } })).to.throw(
      TypeError,
      'beforeForgotPassword',
    )
  })

  const everywhere = [
    '*',
    'https:',
    'http:',
    'https://*',
    'https://*.com',
    'https://*.com.',
    'https://*..com',
    "'unsafe-inline'",
    "'unsafe-eval'",
    "'strict-dynamic'",
    "'unsafe-hashes'",
    "'nonce-abc'",
    "'none'",
    "'report-sample'",
    `'sha256-${'A'.repeat(43)}='`,
    "'SELF'",
    'self',
    '',
    'javascript:',
    'filesystem:',
    'data:text/javascript,1',
    'widget.example',
    '//widget.example',
    'https://a.example; script-src *',
    'https://a.example;',
    'https://a.example,',
    ';',
    ',',
    'https://a.example https://b.example',
    'https://a.example\n',
    'https://a.example\r\nX: y',
    "https://a.example/'unsafe-inline'",
    'https://a.example/\t',
    'https://a.example?x',
    '\u0000',
    'https://user@a.example',
    'https://a.example:*',
    'https://a.example:99999',
    'https://a.*',
    'https://ä.example',
    'wss://a.example',
    'ftp://a.example',
    'https://',
    'https://.',
    'https://a..b',
    null,
    42,
    {},
    ['https://a.example'],
    undefined,
  ]
  const elsewhere: Record<string, unknown[]> = {
    'script-src': ['data:', 'blob:'],
    'style-src': ['data:', 'blob:', "'wasm-unsafe-eval'"],
    'img-src': ['blob:', "'wasm-unsafe-eval'"],
    'connect-src': ['data:', 'blob:', "'wasm-unsafe-eval'"],
    'frame-src': ['data:', 'blob:', "'wasm-unsafe-eval'"],
    'worker-src': ['data:', "'wasm-unsafe-eval'"],
  }
  for (const [directive, here] of Object.entries(elsewhere)) {
    it(`refuses what opens or ends ${directive} for a captcha, and names it (HDR-12)`, () => {
      for (const source of [...everywhere, ...here]) {
        const sources = { [directive]: ['https://widget.example', source] }
        expect(
          () => create(judged({ html: '<i></i>', sources })),
          JSON.stringify(source) ?? 'undefined',
        ).to.throw(TypeError, `captcha.sources["${directive}"]`)
      }
    })
  }

  it('refuses sources of a captcha that are no lists by directive, and names them (HDR-12)', () => {
    const other = ['default-src', 'form-action', 'base-uri', 'frame-ancestors', 'script-src; x']
    const wrong: unknown[] = [null, [['script-src']], 'https://a.example', { 'img-src': 'data:' }]
    for (const sources of [...wrong, ...other.map((name) => ({ [name]: [] }))]) {
      expect(() => create(judged({ html: '<i></i>', sources })), JSON.stringify(sources)).to.throw(
        TypeError,
        'captcha.sources',
      )
    }
  })

  it('takes the sources that vendors list, and http on this machine; elsewhere it is warned of, and refused in production', () => {
    const html = '<i></i>'
    const inTheClear = judged({ html, sources: { 'script-src': ['http://widget.example'] } })
    create(inTheClear)
    expect(logged.splice(0).join()).to.match(/^warn captcha\.sources\["script-src"\] has http:/)
    const refused = () => within('production', () => create(inTheClear))
    expect(refused).to.throw(TypeError, 'captcha.sources["script-src"] has http://widget.example')
    const sources = {
      'script-src': ["'self'", "'wasm-unsafe-eval'", 'https://www.google.com/recaptcha/'],
      'style-src': ['https://hcaptcha.com', 'https://*.hcaptcha.com'],
      'img-src': ['data:'],
      'connect-src': ['http://localhost:8080', 'http://127.0.0.1'],
      'frame-src': ["'self'", 'https://xn--bcher-kva.example:8443'],
      'worker-src': ["'self'", 'blob:'],
    }
    within('production', () => create(judged({ html, sources })))
    within('production', () => create(judged({ html })))
    expect(logged).to.deep.equal([])
  })

  const badJwt: Record<string, unknown[]> = {
    'adminJwt.issuer': [undefined, '', null, ['https://issuer.example']],
    'adminJwt.audience': [undefined, '', null, ['https://idp.example/admin']],
    'adminJwt.algorithms': [
      undefined,
      [],
      'RS256',
      ['HS256'],
      ['RS256', 'HS512'],
      ['none'],
      ['rs256'],
      [''],
      [null],
      ['RSA-OAEP'],
    ],
    'adminJwt.scope': ['', 'two scopes', 42, null, ['account-flows:admin'], ...ADMIN_SCOPES],
    'adminJwt.type': ['', 'at jwt', 42, null],
    'adminJwt.keys': [
      undefined,
      null,
      {},
      { keys: [] },
      { keys: [null] },
      { keys: ['key'] },
      { keys: [{}] },
      { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] },
      { keys: [{ ...JWT.keys.keys[0], d: 'AQAB' }] },
      { keys: [{ ...JWT.keys.keys[0], p: 'AQAB', q: 'AQAB' }] },
      { keys: [{ kty: 'RSA', n: 'AQAB' }] },
      { keys: [{ kty: 'EC', crv: 'P-256', x: 'AQAB', y: 'AQAB' }] },
      'https://issuer.example/jwks',
      new URL('http://issuer.example/jwks'),
      new URL('http://127.0.0.1.evil.example/jwks'),
      new URL('http://localhost.evil.example/jwks'),
      new URL('file:///etc/keys'),
    ],
  }
  for (const [name, values] of Object.entries(badJwt)) {
    it(`refuses every wrong ${name} with a TypeError that names it`, () => {
      for (const value of values) {
        const adminJwt = { ...JWT, [name.replace('adminJwt.', '')]: value }
        const creating = () => create({ adminToken: undefined, adminJwt })
        expect(creating, JSON.stringify(value)).to.throw(TypeError, name)
      }
    })
  }

  it('refuses an adminJwt that is no object with a TypeError that names it', () => {
    for (const adminJwt of [null, false, '', 'https://issuer.example', 42]) {
      expect(() => create({ adminToken: undefined, adminJwt })).to.throw(TypeError, 'adminJwt')
    }
  })

  it('refuses adminToken and adminJwt together, and names both', () => {
    for (const adminToken of ['x'.repeat(32), []]) {
      expect(() => create({ adminToken, adminJwt: JWT })).to.throw(
        TypeError,
        /adminToken.*adminJwt/,
      )
    }
  })

  for (const changes of [
    {},
    { algorithms: ['PS512', 'ES384', 'EdDSA', 'Ed25519'] },
    { scope: 'admin', type: 'JWT' },
    { keys: new URL('https://issuer.example/jwks') },
    { keys: new URL('http://localhost:3000/jwks') },
    { keys: new URL('http://127.0.0.1:3000/jwks') },
    { keys: new URL('http://[::1]:3000/jwks') },
  ]) {
    const shown = JSON.stringify(changes)
    it(`takes adminJwt with ${shown} in production without a warning`, () => {
      const adminJwt = { ...JWT, ...changes }
      within('production', () => create({ adminToken: undefined, adminJwt }))
      expect(logged).to.deep.equal([])
    })
  }

  const weak: [name: string, value: unknown][] = [
    ['baseUrl', 'http://idp.example'],
    ['baseUrl', 'http://127.0.0.1.evil.example'],
    ['baseUrl', 'http://localhost.evil.example'],
    ['baseUrl', 'http://128.0.0.1'],
    ['secrets', [randomBytes(31)]],
    ['secrets', [randomBytes(32), randomBytes(16)]],
    ['secrets', [randomBytes(31).toString('base64url')]],
    ['adminToken', 'x'.repeat(31)],
    ['adminToken', { token: 'x'.repeat(31), scopes: ['account-flows:read'] }],
  ]
  for (const [name, value] of weak) {
    const shown = name === 'secrets' ? 'a key under 32 bytes' : JSON.stringify(value)
    it(`refuses ${name} ${shown} in production, and warns of it elsewhere (LINK-06)`, () => {
      expect(() => within('production', () => create({ [name]: value }))).to.throw(TypeError, name)
      for (const environment of [undefined, 'development', 'test']) {
        logged.splice(0)
        within(environment, () => create({ [name]: value }))
        expect(logged).to.have.length(1)
        expect(logged[0]).to.match(new RegExp(`^warn ${name} `))
      }
    })
  }

  const good: [name: string, value: unknown][] = [
    ['baseUrl', 'https://idp.example:8443/accounts/'],
    ['baseUrl', 'http://localhost:3000'],
    ['baseUrl', 'http://127.0.0.1:3000'],
    ['baseUrl', 'http://[::1]:3000'],
    ['oauthPath', ''],
    ['oauthPath', undefined],
    ['oauthPath', '/a/b-c_d.e~1'],
    ['adminPath', '/oauth2/admin'],
    ['adminPath', undefined],
    ['secrets', [randomBytes(32).toString('base64url')]],
    ['secrets', [new Uint8Array(64), randomBytes(32)]],
    ['adminToken', undefined],
    ['bcryptCost', 10],
    ['responseDelay', { floorMs: 0, jitterMs: 1 }],
    ['trustedProxies', 2],
  ]
  for (const [name, value] of good) {
    const shown = name === 'secrets' ? 'of 32 bytes' : JSON.stringify(value)
    it(`takes ${name} ${shown} in production without a warning`, () => {
      within('production', () => create({ [name]: value }))
      expect(logged).to.deep.equal([])
    })
  }

  for (const [name, value] of [
    ['bcryptCost', 9],
    ['responseDelay', { floorMs: 0, jitterMs: 0 }],
  ] as const) {
    it(`takes ${name} ${JSON.stringify(value)} in production with a warning, and elsewhere without one`, () => {
      create({ [name]: value })
      expect(logged).to.deep.equal([])
      within('production', () => create({ [name]: value }))
      expect(logged).to.have.length(1)
      expect(logged[0]).to.match(new RegExp(`^warn ${name}\\b`))
    })
  }

  it('refuses a transport that delivers nothing in production, and takes it elsewhere without a warning', () => {
    for (const transport of [memoryMailbox(), { ...memoryMailbox(), isStandIn: true }]) {
      expect(() => within('production', () => create({ transport }))).to.throw(
        TypeError,
        /^transport delivers nothing/,
      )
      within(undefined, () => create({ transport }))
    }
    within('production', () => create({ transport: { send: memoryMailbox().send } }))
    expect(logged.filter((line) => line.includes('transport'))).to.deep.equal([])
  })

  it('never says a secret in what it refuses or warns of', () => {
    const secret = 'canarycanary'
    for (const options of [
      { adminToken: secret },
      { secrets: [secret] },
      { baseUrl: `http://u:${secret}@x` },
    ]) {
      for (const environment of [undefined, 'production']) {
        try {
          within(environment, () => create(options))
        } catch (error) {
          logged.push(String(error))
        }
      }
    }
    expect(logged.length).to.be.at.least(6)
    expect(logged.join()).not.to.include('canary')
  })

  it('refuses initialSettings that are not acceptable when it starts, and names them', async () => {
    const flows = create({ initialSettings: { smtp_port: '0', smtp_form: 'x' } })
    const refused = await flows.start({ workers: false }).catch((error: unknown) => error)
    await flows.stop()
    expect(refused).to.be.an.instanceof(TypeError)
    expect(String(refused))
      .to.include('initialSettings')
      .and.include('smtp_port')
      .and.include('smtp_form')
  })

  it('attach() refuses what is no provider, and says what to hand it', () => {
    const flows = create({})
    for (const other of [undefined, null, {}, 'provider', new Koa(), providerFor(flows).callback()])
      // The types forbid these; a host in JavaScript has no types.
      expect(() => flows.attach(other as Provider)).to.throw(
        TypeError,
        /^flows\.attach takes the provider itself/,
      )
    flows.attach(providerFor(flows))
  })

  it('attach() refuses a provider whose adapter is not flows.adapter(…), and says what to do', () => {
    const flows = create({})
    const issuer = 'https://idp.example/oauth2'
    for (const adapter of [undefined, memoryAdapter()]) {
      const provider = new Provider(issuer, adapter ? { adapter } : {})
      expect(() => flows.attach(provider)).to.throw(
        TypeError,
        /adapter.*flows\.adapter.*memoryAdapter/,
      )
    }
    const other = create({})
    expect(() =>
      flows.attach(new Provider(issuer, { adapter: other.adapter(memoryAdapter()) })),
    ).to.throw(TypeError, 'adapter')
    flows.attach(new Provider(issuer, { adapter: flows.adapter(memoryAdapter()) }))
  })

  /** One that these flows could work with, but for the changes. */
  const providerFor = (
    flows: AccountFlows,
    issuer = 'https://idp.example/oauth2',
    interactions: Configuration['interactions'] = {
      policy: flows.policy(interactionPolicy.base()),
    },
  ) => new Provider(issuer, { adapter: flows.adapter(memoryAdapter()), interactions })

  it('attach() warns where flows.policy(…) was forgotten, refuses it in production, and says what to do', () => {
    const careless = create({})
    careless.attach(providerFor(careless, undefined, {}))
    expect(logged.join()).to.match(/^warn interactions\.policy .*flows\.policy\(.*in production/)
    logged.splice(0)
    const flows = create({})
    expect(() =>
      within('production', () => flows.attach(providerFor(flows, undefined, {}))),
    ).to.throw(TypeError, /^interactions\.policy .*flows\.policy\(/)
    within('production', () => flows.attach(providerFor(flows)))
    expect(logged).to.deep.equal([])
  })

  const issuers: [issuer: string, baseUrl?: string][] = [
    ['https://other.example/oauth2'],
    ['http://idp.example/oauth2'],
    ['https://idp.example:8443/oauth2'],
    ['https://idp.example/oauth2', 'https://idp.example:8443'],
  ]
  for (const [issuer, baseUrl] of issuers) {
    it(`attach() refuses the issuer ${issuer} in production where links lead to ${baseUrl ?? GOOD.baseUrl}, warns of it elsewhere, and works with the right one`, () => {
      const changes = { ...(baseUrl !== undefined && { baseUrl }) }
      const flows = create(changes)
      expect(() => within('production', () => flows.attach(providerFor(flows, issuer)))).to.throw(
        TypeError,
        /^baseUrl must be at the address of the issuer: links in mails lead to https:.*and the issuer is /,
      )
      within('production', () =>
        flows.attach(providerFor(flows, `${baseUrl ?? GOOD.baseUrl}/oauth2`)),
      )
      expect(logged).to.deep.equal([])
      const elsewhere = create(changes)
      elsewhere.attach(providerFor(elsewhere, issuer))
      expect(logged.splice(0).join()).to.match(
        /^warn baseUrl must be .*in production this is refused$/,
      )
    })
  }

  it('attach() warns of an issuer with another path, whose endpoints may be below oauthPath all the same', () => {
    const flows = create({})
    flows.attach(providerFor(flows, 'https://idp.example'))
    expect(logged).to.deep.equal([
      'warn the issuer of the provider should be baseUrl and oauthPath together',
    ])
    logged.splice(0)
    const root = create({ oauthPath: '' })
    root.attach(providerFor(root, 'https://idp.example:443/'))
    expect(logged).to.deep.equal([])
  })

  it('attach() refuses a second call, with the same provider or another, and says what to do', () => {
    const flows = create({})
    const provider = providerFor(flows)
    flows.attach(provider)
    for (const again of [provider, providerFor(flows)]) {
      expect(() => flows.attach(again)).to.throw(
        TypeError,
        /^flows\.attach was called before: .*once.*createAccountFlows/,
      )
    }
    expect(() => create({}).attach(provider)).to.throw(TypeError, /flows\.adapter/)
  })

  it('attach() refuses a provider whose callback() was called before, and says what to do', () => {
    const flows = create({})
    const late = providerFor(flows)
    late.callback()
    expect(() => flows.attach(late)).to.throw(
      TypeError,
      /^Call flows\.attach\(provider\) before provider\.callback\(\)/,
    )
    const provider = providerFor(flows)
    flows.attach(provider)
    provider.callback()
  })
})
