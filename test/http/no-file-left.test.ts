import { execFileSync } from 'node:child_process'
import { expect } from 'chai'

describe('A process that had no file left when its first form came [full]', () => {
  it('takes forms and admin requests again, once there are some', () => {
    const run = 'ulimit -n 400; exec node --import tsx/esm test/http/no-file-left.ts 2>/dev/null'
    const lines = execFileSync('sh', ['-c', run], { encoding: 'utf8' }).trim().split('\n')
    const { after }: { after: number[] } = JSON.parse(lines.at(-1) ?? '{}')
    expect(after).to.deep.equal([200, 200])
  })
})
