/** bcrypt reads no further (D8). */
export const MAX_PASSWORD_BYTES = 72
