/** Numbers that are random enough for sampling, and the same for the same seed (mulberry32). */
export interface Random {
  /** 0 or more, less than 1. */
  next(): number
  /** A whole number of 32 bits. */
  bits(): number
  /** 0 or more, less than `below`. */
  below(below: number): number
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0

  function bits(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  const next = () => bits() / 2 ** 32
  return { bits, next, below: (below) => Math.floor(next() * below) }
}
