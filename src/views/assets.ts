import { createHash } from 'node:crypto'

/** A file that our pages load. */
export interface Asset {
  text: string
  /** Another one for another text: a browser may keep what it got under it for ever. */
  version: string
}

export interface Assets {
  stylesheet: Asset
  script: Asset
}

/** Where a page finds what belongs to it. */
export interface PageAddresses {
  oauthPath: string
  stylesheet: string
  script: string
}

export function assetOf(text: string): Asset {
  return { text, version: createHash('sha256').update(text).digest('base64url').slice(0, 12) }
}

export function addressesOf(oauthPath: string, { stylesheet, script }: Assets): PageAddresses {
  return {
    oauthPath,
    stylesheet: `${oauthPath}/account-flows.css?v=${stylesheet.version}`,
    script: `${oauthPath}/account-flows.js?v=${script.version}`,
  }
}
