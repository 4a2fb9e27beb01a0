import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import Koa from 'koa'
import { interactionPolicy, Provider, type Configuration } from 'oidc-provider'
import { ADMIN_SCOPES } from '../src/admin/options.ts'
import {
  createAccountFlows,
  memoryMailbox,
  memoryStore,
  memoryUsers,
  type AccountFlows,
  type AccountFlowsOptions,
} from '../src/index.ts'

const TOKEN = 'x'.repeat(32)
const READ = ['account-flows:read']
const ISSUER = 'https://issuer.example'
const JWK = { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'key-1' }
const JWT = {
  issuer: ISSUER,
  audience: 'https://idp.example/admin',
  algorithms: ['RS256'],
  keys: { keys: [JWK] },
} satisfies AccountFlowsOptions['adminJwt']

const GOOD = {
  baseUrl: 'https://idp.example',
  oauthPath: '/oauth2',
  secrets: [randomBytes(32)],
  store: memoryStore(),
  users: memoryUsers(),
  adminToken: TOKEN,
} satisfies AccountFlowsOptions

/** Of one option. What the types forbid, a host in JavaScript may give all the same. */
type Row<Name = keyof AccountFlowsOptions> = [name: Name, ...values: unknown[]]

const REFUSED: Row[] = [
  ['hashing', null, {}, { hash: async () => 'hash' }, { hash: 1, verify: () => true }],
  ['baseUrl', undefined, '', 'idp.example', '/oauth2', 'ftp://idp.example', 'javascript:alert(1)'],
  ['baseUrl', 'https://idp.example?x=1', 'https://idp.example#x'],
  ['baseUrl', 'https://user@idp.example', 'https://user:password@idp.example'],
  ['oauthPath', 'oauth2', '/', '/oauth2/', '//oauth2', '/o a', '/../x/', '/oauth2?x', '/ö', '/%2e'],
  ['adminPath', '', '/', 'admin', '/admin/', '/a b', '/oauth2', '/a?x', 42],
  ['secrets', undefined, null, [], 'text', [''], ['no base64url!']],
  ['secrets', [new Uint8Array()], [42], [null]],
  ['store', undefined, null, 'mongodb'],
  ['users', undefined, null, () => {}, {}, { ...memoryUsers([]), markEmailVerified: undefined }],
  ['adminToken', '', [''], [null], [TOKEN, TOKEN], { token: TOKEN }, [{ scopes: READ }]],
  ['adminToken', { token: TOKEN, scopes: [] }, { token: TOKEN, scopes: 'account-flows:read' }],
  ['adminToken', { token: TOKEN, scopes: ['read'] }, { token: TOKEN, scopes: [...READ, 'openid'] }],
  ['beforeForgotPassword', null, 'allow', {}, true],
  ['validatePassword', null, 'good', {}, true],
  ['captcha', null, 'altcha', { html: '<i></i>' }],
  ['bcryptCost', 0, 3, 32, 4.5, NaN, '12', null],
  ['responseDelay', {}, { floorMs: -1, jitterMs: 0 }, { floorMs: 0, jitterMs: -1 }],
  ['responseDelay', { floorMs: 0, jitterMs: Infinity }, { floorMs: '1', jitterMs: 0 }],
  ['trustedProxies', -1, 0.5, '1', true],
  ['clientLogout', null, true, 'all'],
  ['clientLogout', { allowPrivateNetworks: 'true' }, { allowPrivateNetworks: null }],
  ['transport', null, {}, 'smtp', { send: 'mails' }],
  ['clock', null, {}, { now: () => new Date() }, 'utc'],
  ['viewsDirectory', '', 'no/such/directory', 'package.json', 'a\0b', null, 42, {}],
  ['brand', null, 'Acme', { name: 42 }, { colour: null }],
  ['brand', { name: 'Acme', logo: 'https://cdn.example/l.png' }],
  ['defaultLocale', '', 'en_GB', 'x', 'tlh', '../en', null, 42],
]

/** Refused in production, warned of elsewhere. */
const WEAK: Row[] = [
  ['baseUrl', 'http://idp.example', 'http://128.0.0.1'],
  ['baseUrl', 'http://127.0.0.1.evil.example', 'http://localhost.evil.example'],
  ['secrets', [randomBytes(31)], [randomBytes(32), randomBytes(16)]],
  ['secrets', [randomBytes(31).toString('base64url')]],
  ['adminToken', 'x'.repeat(31), { token: 'x'.repeat(31), scopes: READ }],
]

/** Taken in production, with a warning. */
const WARNED_OF: Row[] = [
  ['bcryptCost', 9],
  ['responseDelay', { floorMs: 0, jitterMs: 0 }],
]

/** Taken in production without a warning. */
const TAKEN: Row[] = [
  ['baseUrl', 'https://idp.example:8443/accounts/', 'http://localhost:3000'],
  ['baseUrl', 'http://127.0.0.1:3000', 'http://[::1]:3000'],
  ['oauthPath', '', undefined, '/a/b-c_d.e~1'],
  ['adminPath', '/oauth2/admin', undefined],
  ['secrets', [randomBytes(32).toString('base64url')], [new Uint8Array(64), randomBytes(32)]],
  ['adminToken', undefined],
  ['bcryptCost', 10],
  ['responseDelay', { floorMs: 0, jitterMs: 1 }],
  ['trustedProxies', 2],
]

const REFUSED_OF_JWT: Row<keyof typeof JWT | 'scope' | 'type'>[] = [
  ['issuer', undefined, '', null, [ISSUER]],
  ['audience', undefined, '', null, [JWT.audience]],
  ['algorithms', undefined, [], 'RS256', ['HS256'], ['RS256', 'HS512'], ['none'], ['rs256']],
  ['algorithms', [''], [null], ['RSA-OAEP']],
  ['scope', '', 'two scopes', 42, null, ['account-flows:admin'], ...ADMIN_SCOPES],
  ['type', '', 'at jwt', 42, null],
  ['keys', undefined, null, {}, ...keySets(undefined, null, 'key', {})],
  ['keys', ...keySets({ kty: 'oct', k: 'c2VjcmV0' }, { kty: 'RSA', n: 'AQAB' })],
  ['keys', ...keySets({ ...JWK, d: 'AQAB' }, { ...JWK, p: 'AQAB', q: 'AQAB' })],
  ['keys', ...keySets({ kty: 'EC', crv: 'P-256', x: 'AQAB', y: 'AQAB' })],
  ['keys', `${ISSUER}/jwks`, new URL('http://issuer.example/jwks'), new URL('file:///etc/keys')],
  ['keys', new URL('http://127.0.0.1.evil.example/'), new URL('http://localhost.evil.example/')],
]

const TAKEN_OF_JWT = [
  {},
  { algorithms: ['PS512', 'ES384', 'EdDSA', 'Ed25519'] },
  { scope: 'admin', type: 'JWT' },
  { keys: new URL('https://issuer.example/jwks') },
  { keys: new URL('http://localhost:3000/jwks') },
  { keys: new URL('http://127.0.0.1:3000/jwks') },
  { keys: new URL('http://[::1]:3000/jwks') },
]

/** Each key in a set of its own; `undefined`: a set without any. */
function keySets(...keys: unknown[]) {
  return keys.map((key) => ({ keys: key === undefined ? [] : [key] }))
}

const shown = (value: unknown) => JSON.stringify(value) ?? String(value)
const allOf = (rows: Row[]) =>
  rows.flatMap(([name, ...values]) => values.map((value) => [name, value] as const))

describe('createAccountFlows()', () => {
  const logged: string[] = []
  beforeEach(() => logged.splice(0))

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
  const inProduction = <T>(work: () => T) => within('production', work)

  function refuses(options: object, named: string, environment?: string) {
    const creating = () => within(environment, () => create(options))
    expect(creating, shown(options)).to.throw(TypeError, named)
  }

  function takesInProduction(options: object) {
    inProduction(() => create(options))
    expect(logged).to.deep.equal([])
  }

  /** It logged one line, which begins like this. */
  function warned(of: string) {
    expect(logged).to.have.length(1)
    expect(logged.splice(0)[0]).to.match(new RegExp(`^warn ${of}\\b`))
  }

  for (const [name, value] of allOf(REFUSED)) {
    it(`refuses ${name} ${shown(value)} with a TypeError that names it`, () => {
      for (const environment of [undefined, 'production'])
        refuses({ [name]: value }, name, environment)
    })
  }

  // Random keys have no place in a title.
  const titled = (name: string, value: unknown, what: string) =>
    `${name} ${name === 'secrets' ? what : shown(value)}`

  for (const [name, value] of allOf(WEAK)) {
    it(`refuses ${titled(name, value, 'a key under 32 bytes')} in production, and warns of it elsewhere (LINK-06)`, () => {
      refuses({ [name]: value }, name, 'production')
      for (const environment of [undefined, 'development', 'test']) {
        logged.splice(0)
        within(environment, () => create({ [name]: value }))
        warned(name)
      }
    })
  }

  for (const [name, value] of allOf(TAKEN)) {
    it(`takes ${titled(name, value, 'of 32 bytes')} in production without a warning`, () =>
      takesInProduction({ [name]: value }))
  }

  for (const [name, value] of allOf(WARNED_OF)) {
    it(`takes ${name} ${shown(value)} in production with a warning, and elsewhere without one`, () => {
      create({ [name]: value })
      expect(logged).to.deep.equal([])
      inProduction(() => create({ [name]: value }))
      warned(name)
    })
  }

  for (const [name, ...values] of REFUSED_OF_JWT) {
    it(`refuses adminJwt.${name} ${values.map(shown).join(' ')} with a TypeError that names it`, () => {
      for (const value of values)
        refuses({ adminToken: undefined, adminJwt: { ...JWT, [name]: value } }, `adminJwt.${name}`)
    })
  }

  it('refuses an adminJwt that is no object with a TypeError that names it', () => {
    for (const adminJwt of [null, false, '', ISSUER, 42])
      refuses({ adminToken: undefined, adminJwt }, 'adminJwt')
  })

  it('refuses adminToken and adminJwt together, and names both', () => {
    for (const adminToken of [TOKEN, []]) {
      const creating = () => create({ adminToken, adminJwt: JWT })
      expect(creating).to.throw(TypeError, /adminToken.*adminJwt/)
    }
  })

  for (const changes of TAKEN_OF_JWT) {
    it(`takes adminJwt with ${shown(changes)} in production without a warning`, () =>
      takesInProduction({ adminToken: undefined, adminJwt: { ...JWT, ...changes } }))
  }

  describe('with a captcha', () => {
    const validated = (captcha: unknown) => ({ captcha, beforeForgotPassword: () => 'allow' })
    const withSources = (sources: unknown) => validated({ html: '<i></i>', sources })

    it('refuses every wrong one with a TypeError that names it', () => {
      for (const captcha of [null, '<i></i>', {}, { html: ' ' }, { html: 42 }])
        refuses(validated(captcha), 'captcha')
      refuses(validated({ html: '<i>', src: '' }), 'captcha')
      refuses({ captcha: { html: '<i></i>' } }, 'beforeForgotPassword')
    })

    const EVERYWHERE: unknown[] = [
      // Any host, or many.
      ['*', 'https:', 'http:', 'https://*', 'https://*.com', 'https://*.com.'],
      ['https://*..com', 'https://a.*', 'https://a.example:*'],
      // Keywords.
      ["'unsafe-inline'", "'unsafe-eval'", "'strict-dynamic'", "'unsafe-hashes'"],
      ["'nonce-abc'", `'sha256-${'A'.repeat(43)}='`, "'report-sample'", "'none'", "'SELF'", 'self'],
      // Other schemes, or none.
      ['javascript:', 'filesystem:', 'data:text/javascript,1', 'wss://a.example'],
      ['ftp://a.example', 'widget.example', '//widget.example'],
      // The end of a directive, or of the header.
      ['https://a.example; script-src *', 'https://a.example;', 'https://a.example,', ';', ','],
      ['https://a.example https://b.example', 'https://a.example\n', 'https://a.example/\t'],
      ['https://a.example\r\nX: y', "https://a.example/'unsafe-inline'", '\u0000', ''],
      // No origin.
      ['https://', 'https://.', 'https://a..b', 'https://ä.example', 'https://a.example:99999'],
      ['https://user@a.example', 'https://a.example?x'],
      [null, 42, {}, ['https://a.example'], undefined],
    ].flat()
    for (const [directive, ...here] of [
      ['script-src', 'data:', 'blob:'],
      ['style-src', 'data:', 'blob:', "'wasm-unsafe-eval'"],
      ['img-src', 'blob:', "'wasm-unsafe-eval'"],
      ['connect-src', 'data:', 'blob:', "'wasm-unsafe-eval'"],
      ['frame-src', 'data:', 'blob:', "'wasm-unsafe-eval'"],
      ['worker-src', 'data:', "'wasm-unsafe-eval'"],
    ] as const) {
      it(`refuses what opens or ends ${directive}, and names it (HDR-12)`, () => {
        for (const source of [...EVERYWHERE, ...here]) {
          const sources = { [directive]: ['https://widget.example', source] }
          refuses(withSources(sources), `captcha.sources["${directive}"]`)
        }
      })
    }

    it('refuses sources that are no lists by directive, and names them (HDR-12)', () => {
      const other = ['default-src', 'form-action', 'base-uri', 'frame-ancestors', 'script-src; x']
      const wrong = [null, [['script-src']], 'https://a.example', { 'img-src': 'data:' }]
      for (const sources of [...wrong, ...other.map((name) => ({ [name]: [] }))])
        refuses(withSources(sources), 'captcha.sources')
    })

    it('takes the sources that vendors list, and http on this machine; elsewhere it is warned of, and refused in production', () => {
      const inTheClear = withSources({ 'script-src': ['http://widget.example'] })
      create(inTheClear)
      expect(logged.splice(0).join()).to.match(/^warn captcha\.sources\["script-src"\] has http:/)
      const named = 'captcha.sources["script-src"] has http://widget.example'
      refuses(inTheClear, named, 'production')
      const sources = {
        'script-src': ["'self'", "'wasm-unsafe-eval'", 'https://www.google.com/recaptcha/'],
        'style-src': ['https://hcaptcha.com', 'https://*.hcaptcha.com'],
        'img-src': ['data:'],
        'connect-src': ['http://localhost:8080', 'http://127.0.0.1'],
        'frame-src': ["'self'", 'https://xn--bcher-kva.example:8443'],
        'worker-src': ["'self'", 'blob:'],
      }
      takesInProduction(withSources(sources))
      takesInProduction(withSources(undefined))
    })
  })

  it('refuses a transport that delivers nothing in production, and takes it elsewhere without a warning', () => {
    for (const transport of [memoryMailbox(), { ...memoryMailbox(), isStandIn: true }]) {
      refuses({ transport }, 'transport delivers nothing', 'production')
      create({ transport })
    }
    inProduction(() => create({ transport: { send: memoryMailbox().send } }))
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
    for (const named of ['initialSettings', 'smtp_port', 'smtp_form'])
      expect(String(refused)).to.include(named)
  })

  describe('.attach()', () => {
    /** One that these flows could work with, but for the changes. */
    const providerFor = (
      flows: AccountFlows,
      issuer = 'https://idp.example/oauth2',
      interactions: Configuration['interactions'] = {
        policy: flows.policy(interactionPolicy.base()),
      },
    ) => new Provider(issuer, { adapter: flows.adapter(), interactions })

    const refusesToAttach = (flows: AccountFlows, provider: unknown, words: RegExp) =>
      expect(() => flows.attach(provider as Provider)).to.throw(TypeError, words)

    it('refuses what is no provider, and says what to hand it', () => {
      const flows = create({})
      for (const other of [
        undefined,
        null,
        {},
        'provider',
        new Koa(),
        providerFor(flows).callback(),
      ])
        refusesToAttach(flows, other, /^flows\.attach takes the provider itself/)
      flows.attach(providerFor(flows))
    })

    it('warns where flows.policy(…) was forgotten, refuses it in production, and says what to do', () => {
      const careless = create({})
      careless.attach(providerFor(careless, undefined, {}))
      const words = /^warn interactions\.policy .*flows\.policy\(.*in production/
      expect(logged.splice(0).join()).to.match(words)
      const flows = create({})
      inProduction(() => {
        const forgotten = providerFor(flows, undefined, {})
        refusesToAttach(flows, forgotten, /^interactions\.policy .*flows\.policy\(/)
        flows.attach(providerFor(flows))
      })
      expect(logged).to.deep.equal([])
    })

    for (const [issuer, baseUrl] of [
      ['https://other.example/oauth2', GOOD.baseUrl],
      ['http://idp.example/oauth2', GOOD.baseUrl],
      ['https://idp.example:8443/oauth2', GOOD.baseUrl],
      ['https://idp.example/oauth2', 'https://idp.example:8443'],
    ] as const) {
      it(`refuses the issuer ${issuer} in production where links lead to ${baseUrl}, warns of it elsewhere, and works with the right one`, () => {
        const words =
          /^baseUrl must be at the address of the issuer: links in mails lead to https:.*and the issuer is /
        const flows = create({ baseUrl })
        inProduction(() => {
          refusesToAttach(flows, providerFor(flows, issuer), words)
          flows.attach(providerFor(flows, `${baseUrl}/oauth2`))
        })
        expect(logged).to.deep.equal([])
        const elsewhere = create({ baseUrl })
        elsewhere.attach(providerFor(elsewhere, issuer))
        expect(logged.join()).to.match(/^warn baseUrl must be .*in production this is refused$/)
      })
    }

    it('warns of an issuer with another path, whose endpoints may be below oauthPath all the same', () => {
      const flows = create({})
      flows.attach(providerFor(flows, 'https://idp.example'))
      warned('the issuer of the provider should be baseUrl and oauthPath together$')
      const root = create({ oauthPath: '' })
      root.attach(providerFor(root, 'https://idp.example:443/'))
      expect(logged).to.deep.equal([])
    })

    it('refuses a second call, with the same provider or another, and says what to do', () => {
      const flows = create({})
      const provider = providerFor(flows)
      flows.attach(provider)
      for (const again of [provider, providerFor(flows)]) {
        const words = /^flows\.attach was called before: .*once.*createAccountFlows/
        refusesToAttach(flows, again, words)
      }
      refusesToAttach(create({}), provider, /flows\.adapter/)
    })

    it('refuses a provider whose callback() was called before, and says what to do', () => {
      const flows = create({})
      const late = providerFor(flows)
      late.callback()
      const words = /^Call flows\.attach\(provider\) before provider\.callback\(\)/
      refusesToAttach(flows, late, words)
      const provider = providerFor(flows)
      flows.attach(provider)
      provider.callback()
    })
  })
})
