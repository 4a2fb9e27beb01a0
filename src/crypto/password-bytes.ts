/** bcrypt reads no further. */
export const MAX_PASSWORD_BYTES = 72
