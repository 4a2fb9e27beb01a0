/** A reset that failed between two effects is repeated within seconds. No account is reset so often meanwhile. */
export const ENDS_KEPT = 20
