const byStatus: { [status: number]: string } = {
  401: 'Is it the admin token of this server, and not one that has expired?',
  429: 'Wait a minute, and try again.',
}

/** What to do about a refusal; `undefined`: what the server said is all. */
export function adviceOn(status: number | undefined): string | undefined {
  return status === undefined ? undefined : byStatus[status]
}
