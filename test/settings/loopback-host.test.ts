import { expect } from 'chai'
import { isLoopbackHost } from '../../src/settings/loopback-host.ts'

describe('isLoopbackHost()', () => {
  it('is true of this machine, in every spelling, and of nothing else', () => {
    const own = `localhost LOCALHOST App.LocalHost 127.0.0.1 127.255.0.9 ::1 [::1] 0:0:0:0:0:0:0:1
      ::ffff:127.0.0.1 ::ffff:7f00:1`
    for (const host of own.split(/\s+/)) expect(isLoopbackHost(host), host).to.equal(true)
    const others = `128.0.0.1 10.0.0.1 0.0.0.0 127.1 127.0.0.256 127.0.0.1. ::2 :: ::127.0.0.1 [::1 [localhost]x
      localhost. .localhost ..localhost notlocalhost localhost.evil.example 127.0.0.1.evil.example`
    for (const host of ['', ...others.split(/\s+/)]) {
      expect(isLoopbackHost(host), host).to.equal(false)
    }
  })
})
