import { expect } from 'chai'
import { longSentences, longSentencesOfSource } from '../.ci/sentences.ts'

/** `words(3)`: "w w w". */
const words = (count: number) => Array.from({ length: count }, () => 'w').join(' ')
const found = (markdown: string) => longSentences(markdown).map(({ line, words }) => [line, words])

describe('The check of sentences', () => {
  it('finds one of 26 words, over lines, and where it begins', () => {
    expect(found(`${words(25)}.\n`)).to.deep.equal([])
    expect(found(`# Title\n\nShort.\n${words(20)}\n${words(6)}. Short.\n`)).to.deep.equal([[4, 26]])
    expect(longSentences(`${words(26)}.`)[0]?.sentence).to.equal(`${words(26)}.`)
  })

  it('ends one at an item, a cell, a heading and an empty line', () => {
    const half = words(20)
    for (const text of [
      `${half}:\n- ${half}\n- ${half}`,
      `| ${half} | ${half} |\n| ${half} | ${half} |`,
      `# ${half}\n${half}`,
      `${half}\n\n${half}`,
      `(${half}.) ${half}`,
    ]) {
      expect(found(text), text).to.deep.equal([])
    }
  })

  it('takes code in a line for one word, a link for its text, and a block of code for none', () => {
    const code = `\`${words(9)}\``
    expect(found(`${words(24)} ${code}.`)).to.deep.equal([])
    expect(found(`${words(24)} ${code} [two words](a/b.md#c).`)).to.deep.equal([[1, 27]])
    expect(found(`| \`*\` ${words(20)} | \`w\` ${words(20)} |`)).to.deep.equal([])
    expect(found(`\`\`\`sh\n${words(30)}\n\`\`\`\n\n<!-- ${words(30)} -->`)).to.deep.equal([])
  })

  it('reads comments and quotes of the source', () => {
    const source = [
      `/** Short.\n * ${words(20)}\n * ${words(6)}.\n *\n * @example\n * ${words(30)}\n */`,
      `// ${words(20)}`,
      `// ${words(6)}`,
      `say('${words(13)} ' +\n  \`${words(11)} \${a b} ${words(1)}\`)`,
      `say('${words(20)}', '${words(20)}\\n${words(20)}')`,
    ].join('\n')
    const lines = longSentencesOfSource(source).map(({ line, words }) => [line, words])
    expect(lines).to.deep.equal([
      [2, 26],
      [8, 26],
      [10, 26],
    ])
  })
})
