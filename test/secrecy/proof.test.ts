import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { contrasts, titleOf } from '../../bench/secrecy/contrasts.ts'
import { readOptions } from '../../bench/secrecy/options.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { conclude, EXIT_CODES, type Outcome } from '../../bench/secrecy/report.ts'

const outcome = (verdict: Outcome['verdict'], control?: Outcome['control']): Outcome => ({
  title: 'x',
  verdict,
  control,
  stages: [],
})

describe('npm run prove:secrecy', () => {
  describe('concludes', () => {
    const nothing = outcome('quiet', 'negative')
    const held = outcome('seen', 'positive')
    const runs: [string, Outcome[], number][] = [
      ['quiet', [nothing, held, outcome('quiet'), outcome('skipped')], 0],
      ['leak', [nothing, held, outcome('quiet'), outcome('LEAK')], 1],
      ['void', [], 2],
      ['void', [nothing, held], 2],
      ['void', [outcome('quiet')], 2],
      ['void', [nothing, outcome('quiet')], 2],
      ['void', [held, outcome('LEAK')], 2],
      ['void', [nothing, held, outcome('skipped')], 2],
      ['void', [outcome('LEAK', 'negative'), held, outcome('quiet')], 2],
      ['void', [nothing, outcome('NOT SEEN', 'positive'), outcome('quiet')], 2],
      ['void', [nothing, outcome('NOT SEEN', 'positive'), outcome('LEAK')], 2],
    ]
    for (const [expected, outcomes, exitCode] of runs) {
      const said = outcomes.map(({ verdict, control }) => `${control ?? 'contrast'} ${verdict}`)
      it(`${expected} from ${said.join(', ') || 'nothing'}: exit code ${exitCode}`, () => {
        const conclusion = conclude(outcomes)
        expect(conclusion).to.equal(expected)
        expect(EXIT_CODES[conclusion]).to.equal(exitCode)
      })
    }
  })

  it('calls no two contrasts by the same name', () => {
    const titles = contrasts.map(titleOf)
    expect(new Set(titles).size).to.equal(titles.length)
  })

  describe('reads its arguments', () => {
    const file = suiteFolder()

    before(async () => {
      await writeFile(file('known'), 'ann\nben\r\n\n')
      await writeFile(file('unknown'), 'eve\nfay\n')
      await writeFile(file('longer'), 'evelyn\nfay\n')
      await writeFile(file('one'), 'eve\n')
    })

    it('with 1,000 pairs, 200 in the short form, or as many as are asked for', () => {
      expect(readOptions([]).pairs).to.equal(1_000)
      expect(readOptions(['--short']).pairs).to.equal(200)
      expect(readOptions(['--short', '--pairs', '3000']).pairs).to.equal(3_000)
    })

    it('and those of somebody’s own deployment', () => {
      const known = ['--known', file('known'), '--unknown', file('unknown')]
      const { deployment } = readOptions(['--url', 'https://id.example/oauth2', ...known])
      expect(deployment?.oauthUrl.href).to.equal('https://id.example/oauth2/')
      expect(deployment?.known).to.deep.equal(['ann', 'ben'])
      expect(deployment?.unknown).to.deep.equal(['eve', 'fay'])
    })

    it('and refuses what cannot be meant', () => {
      const url = ['--url', 'https://id.example/oauth2']
      const refused: [string[], RegExp][] = [
        [['--pairs', '0'], /--pairs/],
        [['--pairs', 'many'], /--pairs/],
        [['--unheard-of'], /unheard-of/],
        [url, /together/],
        [[...url, '--known', file('known'), '--unknown', file('longer')], /same number of bytes/],
        [[...url, '--known', file('known'), '--unknown', file('one')], /two identifiers/],
        [['--url', 'ftp://x', '--known', file('known'), '--unknown', file('unknown')], /--url/],
      ]
      for (const [args, message] of refused) {
        expect(() => readOptions(args), args.join(' ')).to.throw(message)
      }
    })
  })
})
