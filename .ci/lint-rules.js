import { analyse } from 'scslre'

/** What the linter does not bring along. */

const USE = 'Time is a port: take a Clock (src/clock.ts).'
const TIMERS = new Set(['setTimeout', 'setInterval', 'setImmediate'])
const MODULES = new Set(['node:timers', 'node:timers/promises', 'timers', 'timers/promises'])

const isNamed = (node, name) => node.type === 'Identifier' && node.name === name

/** Refuses the usual ways to read the time or to wait, but for the clock that the root hands down (`src/clock.ts`). */
const timeIsAPort = {
  create(context) {
    const refuse = (node) => context.report({ node, message: USE })
    return {
      NewExpression(node) {
        if (isNamed(node.callee, 'Date') && node.arguments.length === 0) refuse(node)
      },
      CallExpression({ callee }) {
        if (callee.type === 'Identifier' && TIMERS.has(callee.name)) refuse(callee)
        if (isNamed(callee, 'Date')) refuse(callee)
      },
      ImportExpression({ source }) {
        if (MODULES.has(source.value)) refuse(source)
      },
      MemberExpression(node) {
        const { object, property } = node
        if (isNamed(object, 'Date') && isNamed(property, 'now')) refuse(node)
        if (isNamed(object, 'globalThis') && TIMERS.has(property.name)) refuse(node)
        if (isNamed(object, 'AbortSignal') && isNamed(property, 'timeout')) refuse(node)
      },
      ImportDeclaration(node) {
        if (MODULES.has(node.source.value)) refuse(node)
      },
    }
  },
}

/** Refuses expressions that take more than twice as long for twice the text: strangers choose the text. */
const expressionsAreLinear = {
  create(context) {
    return {
      Literal(node) {
        if (!node.regex) return
        const { pattern: source, flags } = node.regex
        const [report] = analyse({ source, flags }).reports
        if (!report) return
        const { literal } = report.character
        context.report({
          node,
          message: `Quadratic (${report.type}): try many of /${literal.source}/.`,
        })
      },
    }
  },
}

// oxlint-disable-next-line import/no-default-export -- the linter asks for it
export default {
  meta: { name: 'account-flows' },
  rules: { 'time-is-a-port': timeIsAPort, 'expressions-are-linear': expressionsAreLinear },
}
