/** A client that a page names: registered, and genuine for the request that the page is part of. */
export interface ShownClient {
  clientName: string
  /** An image that the client registered, on our own origin; of any other nothing is loaded. `undefined`: none. */
  logo?: string | undefined
}

/** `href` is left out of the page unless it is http, https, or a private-use scheme such as `com.example.app:`. */
export interface ClientLink extends ShownClient {
  href: string
}
