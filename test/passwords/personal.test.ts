import { expect } from 'chai'
import { isMadeOf, namesOf } from '../../src/passwords/personal.ts'

const ANN = { username: 'Ann.Smith', email: 'a.smith+shop@mail.example' }
const names = namesOf(ANN, ['Acme Café', 'login.acme-shop.example'])

describe('A password made of names (ASVS 6.2.11)', () => {
  const made: Record<string, string[]> = {
    'the username': ['Ann.Smith', 'ann.smith', ' ANN.SMITH ', 'annsmith', 'smith'],
    'the address': ['a.smith+shop@mail.example', 'A.Smith+Shop', 'shop'],
    'the service': ['acme café', 'Acme Cafe\u0301', 'ACME', 'login.acme-shop.example', 'acme-shop'],
    'digits and signs around': ['ann.smith2026', '!!acme!!', '12 Smith 34', 'smith🎉'],
    'a name again and again': ['smithsmithsmith', 'acme-acme-acme', 'ann.smith ann.smith'],
    'several names': ['annsmithacme', 'smith@acme', 'login.acme'],
    'full width': ['ａｃｍｅ２０２６'],
  }
  for (const [what, passwords] of Object.entries(made)) {
    it(`is one of ${what}`, () => {
      for (const password of passwords) expect(isMadeOf(password, names), password).to.equal(true)
    })
  }

  it('is none that has other letters too, nor one that has a name of one or two letters by chance', () => {
    const good = [
      'ann likes blue tea',
      'smithy-on-the-hill',
      '7391 8264',
      'xacmey',
      'wool and snow',
    ]
    for (const password of good) expect(isMadeOf(password, names), password).to.equal(false)
    const short = namesOf({ username: '7', email: undefined }, [undefined, 'x.example'])
    expect(isMadeOf('7391-8264-0012', short)).to.equal(false)
    expect(isMadeOf('77777777', short)).to.equal(true)
    expect(isMadeOf(' '.repeat(15), names), 'blanks alone').to.equal(false)
    expect(isMadeOf('anything', namesOf({ username: ' ', email: undefined }, []))).to.equal(false)
  })
})
