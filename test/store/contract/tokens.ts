import { expect } from 'chai'
import { it } from 'mocha'
import type { NewToken, Token, TokenStore } from '../../../src/store/index.ts'
import { after, issuedAs, minute } from './samples.ts'

/** That the token is told, with what happened to it. */
export async function expectToken(tokens: TokenStore, token: NewToken, changes?: Partial<Token>) {
  expect(await tokens.find(token.tokenHash)).to.deep.equal({ ...issuedAs(token), ...changes })
}

/** What both kinds of tokens have in common. */
export function itFindsTokens(
  port: () => TokenStore,
  issue: (changes?: Partial<NewToken>) => Promise<NewToken>,
): void {
  it('finds a token as it was saved, an empty parameter apart from an absent one', async () => {
    const changes = [
      { parameters: { clientId: 'app', state: '' } },
      { userId: 'bob', parameters: {}, locale: undefined, pendingLoginId: undefined },
      { userId: 'eve', createdAt: after(-minute), expiresAt: after(-1) },
    ]
    for (const each of changes) {
      const token = await issue(each)
      await expectToken(port(), token)
      expect(await port().ofUser(token.userId, 1)).to.deep.equal([issuedAs(token)])
    }
  })

  it('keeps nothing of what was carried but its four parameters, and no end that came before', async () => {
    const more = { clientId: 'app', pendingLoginId: 'x', userId: 'eve', newHash: 'x' }
    const ends = { usedAt: after(0), claimedAt: after(0), completedAt: after(0) }
    const token = await issue({ parameters: more, ...ends })
    const parameters = { clientId: 'app' }
    const open = { usedAt: undefined, claimedAt: undefined, completedAt: undefined }
    await expectToken(port(), { ...token, ...open, parameters })
  })

  it('finds none by another hash, and none of another user', async () => {
    const token = await issue()
    for (const each of ['', '0'.repeat(64), token.id, token.tokenHash.toUpperCase()])
      expect(await port().find(each), each).to.equal(undefined)
    for (const each of ['', 'bob', 'an', 'Ann'])
      expect(await port().ofUser(each, 10), each).to.deep.equal([])
    expect(await port().find(token.tokenHash)).to.include({ id: token.id })
  })

  it('tells the newest of a user first, as many as were asked for, whatever order they were saved in', async () => {
    for (const at of [2, 1, 4, 3]) await issue({ createdAt: after(at) })
    for (const [limit, expected] of [
      [1, [4]],
      [3, [4, 3, 2]],
      [10, [4, 3, 2, 1]],
    ] as const) {
      const tokens = await port().ofUser('ann', limit)
      expect(tokens.map(({ createdAt }) => createdAt)).to.deep.equal(expected.map(after))
    }
  })
}
