import pg from 'pg'
import { eventually } from '../support/eventually.ts'
import type { FreshPostgresql } from '../support/postgresql.ts'

/** The tables that a reset alone writes to. */
const TABLES = ['password_reset_tokens', 'users', 'session_cutoffs']

/** A lock of this class stands for each write, by its number. */
const CLASS = 7

const DEFINITIONS = [
  'CREATE SEQUENCE writes',
  `CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
     PERFORM pg_advisory_xact_lock_shared(${CLASS}, nextval('writes')::int); RETURN NEW;
   END $$`,
  ...TABLES.map(
    (table) =>
      `CREATE TRIGGER counted BEFORE INSERT OR UPDATE ON ${table} EXECUTE FUNCTION counted()`,
  ),
  // The notice that is sent meanwhile has an event too.
  `CREATE TRIGGER counted BEFORE INSERT ON audit_events
     FOR EACH ROW WHEN (NEW.type = 'password_reset_completed') EXECUTE FUNCTION counted()`,
]

type CountedWrites = Awaited<ReturnType<typeof countingWrites>>
export type HeldWrite = Awaited<ReturnType<CountedWrites['hold']>>

/** From now on the writes of resets are counted, and one of them can be held up inside the database, whatever becomes of who sent it. */
export async function countingWrites({ pool, url }: Pick<FreshPostgresql, 'pool' | 'url'>) {
  for (const definition of DEFINITIONS) await pool.query(definition)
  const startOver = () => pool.query(`SELECT setval('writes', 1, false)`)

  return {
    /** How many there are in this work. */
    async count(work: () => Promise<unknown>): Promise<number> {
      await startOver()
      await work()
      const { rows } = await pool.query<{ last: number }>(
        'SELECT last_value::int AS last FROM writes',
      )
      return rows[0]?.last ?? 0
    },

    /** The one of that number, from 1. */
    async hold(number: number) {
      const holder = new pg.Client({ connectionString: url })
      // Where the database goes away, the lock does too.
      holder.on('error', () => {})
      await holder.connect()
      await holder.query('SELECT pg_advisory_lock($1, $2)', [CLASS, number])
      await startOver()
      const ofOthers = async (what: string) => {
        const { rowCount } = await pool.query(
          `SELECT ${what} FROM pg_locks JOIN pg_database ON pg_database.oid = database
           WHERE datname = current_database() AND classid = $1 AND objid = $2 AND mode = 'ShareLock'`,
          [CLASS, number],
        )
        return (rowCount ?? 0) > 0
      }
      const waits = () => ofOthers('pid')
      const letGo = async () => {
        await holder.end()
        await eventually('the write is over', async () => !(await waits()))
      }
      return {
        /** Whether it has come, and is not done. */
        waits,
        /** Lets it be done; answers once it is. */
        letGo,
        /** It is never done. */
        async undo() {
          await ofOthers('pg_terminate_backend(pid)')
          await eventually('the write is undone', async () => !(await waits()))
          await letGo()
        },
      }
    },
  }
}
