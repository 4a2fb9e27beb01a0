import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { errorCode, type Found } from './found.ts'

const MAX_SHOWN = 4

const FAILURES: Record<string, { message: string; advice: string }> = {
  ENOTFOUND: {
    message: 'no address is known for it',
    advice:
      'Look for a typing error in smtp_host. A name of a container or of a private network is known only inside of it.',
  },
  EAI_AGAIN: {
    message: 'the name server did not answer',
    advice: 'See whether this machine reaches its name server (/etc/resolv.conf), and try again.',
  },
}

/** Looks the host up the way a connection does. */
export async function checkDns(host: string): Promise<Found<LookupAddress[]>> {
  const family = isIP(host)
  if (family !== 0) {
    const message = `${host} is an address and needs no look-up.`
    return { status: 'ok', message, next: [{ address: host, family }] }
  }
  try {
    const addresses = await lookup(host, { all: true })
    return { status: 'ok', message: `${host} is ${listed(addresses)}.`, next: addresses }
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    const { message, advice } = FAILURES[code] ?? {
      message: 'the look-up failed',
      advice: 'See whether other programs of this machine can look up the name.',
    }
    return { status: 'failed', message: `${host} cannot be found: ${message} (${code}).`, advice }
  }
}

function listed(addresses: LookupAddress[]): string {
  const shown = addresses.slice(0, MAX_SHOWN).map(({ address }) => address)
  const more = addresses.length - shown.length
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
