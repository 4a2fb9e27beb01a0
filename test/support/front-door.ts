import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import { serve } from './serve.ts'

/** Whether it has seen to the request; otherwise that goes on to the service. */
export type Doorkeeper = (request: IncomingMessage, response: ServerResponse) => boolean

export interface FrontDoor {
  url: string
  /** Method and path of each request so far. */
  requests: string[]
  close(): Promise<void>
}

/** A server in front of a service, that may answer in its place. */
export async function openFrontDoor(service: string, keeper: Doorkeeper): Promise<FrontDoor> {
  const requests: string[] = []
  const { url, close } = await serve((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (keeper(request, response)) return
    const { method = '', headers, url = '' } = request
    const onward = forward(new URL(url, service), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    request.pipe(onward)
  })
  return { url, requests, close }
}

export function answerJson(response: ServerResponse, status: number, body: unknown): true {
  const type = status < 400 ? 'application/json' : 'application/problem+json'
  response.writeHead(status, { 'content-type': type }).end(JSON.stringify(body))
  return true
}
