import type { CommandStartedEvent, MongoClient } from 'mongodb'

/** The MongoDB commands of some work, in rows: those of one row wait for the row before, and not for each other. */
export function commandRows(
  client: MongoClient,
  isCounted: (command: string, event: CommandStartedEvent) => boolean,
) {
  const underWay = new Map<number, number>()
  let rows: string[][] = []
  let answered = 0
  client.on('commandStarted', (event) => {
    const { commandName, command, requestId } = event
    const name = `${commandName} ${String(command[commandName])}`
    if (!isCounted(name, event)) return
    underWay.set(requestId, answered + 1)
    ;(rows[answered] ??= []).push(name)
  })
  client.on('commandSucceeded', ({ requestId }) => {
    answered = Math.max(answered, underWay.get(requestId) ?? 0)
    underWay.delete(requestId)
  })

  return {
    startOver() {
      rows = []
      answered = 0
      underWay.clear()
    },
    /** Each row in the order of the alphabet. */
    rows: () => rows.map((row) => row.toSorted()),
  }
}
