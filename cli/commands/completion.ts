import { Argument, type Command } from 'commander'
import { allSettings } from '../../src/settings/table.ts'
import { addExamples } from '../command.ts'
import { outputOf, type Run } from '../output.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

export function addCompletion(program: Command, run: Run): void {
  const completion = program
    .command('completion')
    .description('Print a completion script for your shell.')
    .addArgument(new Argument('<shell>', 'which shell').choices(shells))
    .action((shell: Shell) => {
      const script = scriptOf(program, shell)
      outputOf(run, completion.optsWithGlobals()).document(script, script)
    })
  addExamples(completion, [
    'completion bash > ~/.account-flows.bash   # then: source it in ~/.bashrc',
    'completion zsh > ~/.account-flows.zsh     # then: source it in ~/.zshrc',
    'completion fish > ~/.config/fish/completions/account-flows.fish',
  ])
}

/** One command, and what may come next. */
interface Spot {
  /** The name of its group and its own name, each after a blank. */
  path: string
  words: string[]
  flags: string[]
}

const names = allSettings.map(({ name }) => name)
const enumerated = allSettings.filter(({ values }) => values !== undefined)
const assigned = enumerated.flatMap(({ name, values = [] }) =>
  values.map((one) => `${name}=${one}`),
)

/** It completes commands, options, names of settings and their values. */
function scriptOf(program: Command, shell: Shell): string {
  const spots = spotsOf(program)
  const values = enumerated.map(({ name, values = [] }): Behind => [`settings set ${name}`, values])
  const behind = [...behindFlags(program), ...values]
  if (shell === 'fish') return fishScript(spots, behind)
  const before =
    '(($+functions[compdef])) || { autoload -Uz compinit && compinit; }\nautoload -Uz bashcompinit && bashcompinit\n'
  return (shell === 'zsh' ? before : '') + bashScript(spots, behind)
}

function spotsOf(command: Command, path = ''): Spot[] {
  const words = command.registeredArguments.flatMap((argument) =>
    ['key', 'settings'].includes(argument.name()) ? names : (argument.argChoices ?? []),
  )
  const spot: Spot = {
    path,
    words: [...command.commands.map((each) => each.name()), ...words],
    flags: command.options.map(({ long }) => long ?? ''),
  }
  return [spot, ...command.commands.flatMap((each) => spotsOf(each, `${path} ${each.name()}`))]
}

/** What may come after a word, wherever the word is. No words: the values cannot be listed, such as files. */
type Behind = [word: string, words: readonly string[]]

function behindFlags({ options, commands }: Command): Behind[] {
  const own = options
    .filter(({ required }) => required)
    .map(({ long, flags, argChoices }): Behind => {
      return [long ?? '', argChoices ?? (flags.includes('<key>') ? names : [])]
    })
  return [...new Map([...own, ...commands.flatMap(behindFlags)])]
}

function bashScript([program, ...spots]: Spot[], behind: Behind[]): string {
  const cases = (rows: string[]) => rows.map((row) => `    ${row} ;;`).join('\n')
  return `_account_flows() {
  local line="\${COMP_LINE:0:$COMP_POINT}" at='' flags='' i=1
  local list='${program?.words.join(' ')}'
  local cur="\${line##* }" prev="\${COMP_WORDS[COMP_CWORD-1]}"
  while [ "$i" -lt "$COMP_CWORD" ]; do
    case "$at \${COMP_WORDS[i]}" in
      ${spots.map(({ path }) => `'${path}'`).join('|')}) at="$at \${COMP_WORDS[i]}" ;;
    esac
    i=$((i + 1))
  done
  case "$at" in
${cases(spots.map(({ path, words, flags }) => `'${path}') list='${words.join(' ')}' flags='${flags.join(' ')}'`))}
  esac
  case "$cur" in
    -*) list="$flags ${program?.flags.join(' ')} --help" ;;
    *=*) list='${assigned.join(' ')}' ;;
    *) case "$at $prev" in
${cases(behind.map(([word, words]) => `*' ${word}') list='${words.join(' ')}'`))}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$list" -- "$cur"))
  # Bash takes what is behind a "=" for a word of its own.
  case "$cur \${COMP_WORDBREAKS-}" in *=*\\ *=*) COMPREPLY=("\${COMPREPLY[@]#*=}") ;; esac
}
complete -o default -F _account_flows account-flows`
}

function fishScript(spots: Spot[], behind: Behind[]): string {
  const offer = (condition: string, words: readonly string[]) =>
    `complete -c account-flows -f -n '${condition}' -a '${words.join(' ')}'`
  const flags = [...(spots[0]?.flags ?? []), '--help']
  return `function __account_flows_at
  set -l path ''
  for word in (commandline -opc)[2..-1]
    contains -- "$path $word" ${spots.map(({ path }) => `'${path}'`).join(' ')}; and set path "$path $word"
  end
  test "$path" = "$argv[1]"
end
${spots.map(({ path, words, flags: own }) => offer(`__account_flows_at "${path}"`, [...words, ...own, ...flags])).join('\n')}
${behind.map(([word, words]) => offer(`string match -q -- "* ${word}" (string join -- " " (commandline -opc))`, words)).join('\n')}
${offer('string match -q -- "*=*" (commandline -ct)', assigned)}`
}
