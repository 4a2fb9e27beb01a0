import { Argument, type Command } from 'commander'
import { withExamples } from '../arguments.ts'
import { outputOf } from '../output.ts'

const shells = ['bash', 'zsh', 'fish'] as const

export function add(completion: Command): void {
  completion.addArgument(new Argument('<shell>', 'which shell').choices(shells)).action(print)
  withExamples(
    completion,
    'completion bash > ~/.account-flows.bash   # then: source it in ~/.bashrc',
    'completion zsh > ~/.account-flows.zsh     # then: source it in ~/.zshrc',
    'completion fish > ~/.config/fish/completions/account-flows.fish',
  )
}

async function print(shell: (typeof shells)[number], _: unknown, command: Command) {
  const { scriptOf } = await import('../completion.ts')
  const script = scriptOf(command.parent ?? command, shell)
  outputOf(command).document(script, script)
}
