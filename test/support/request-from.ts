import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

/** What a host hands on, as it came from an address. */
export function requestFrom(address: string): IncomingMessage {
  const req = new IncomingMessage(new Socket())
  Object.defineProperty(req.socket, 'remoteAddress', { value: address })
  return req
}
