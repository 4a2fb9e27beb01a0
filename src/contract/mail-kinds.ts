/** The facts about each kind of mail that all folders share. Its behaviour is in `mail/make-mail.ts`, its words are in `views/`. */
export const MAIL_KINDS = {
  password_reset: {
    /** The name of its file in `views/mails/`, and of its words. */
    template: 'password-reset',
    /** The beginning of its types of audit events. */
    flow: 'password_reset',
    /** What "This wasn't me" undoes, if the mail or its link caused it. `undefined`: the mail has no such link. */
    takesBack: 'password',
    /** Where its link leads, below the OAuth path. `undefined`: the mail leads nowhere. */
    page: '/reset-password',
    /** `undefined`: a notice of a change, which holds no secret. A limit only delays it, and it leaves whatever the account's state is then. */
    link: {
      /** Only the newest request of an account gets a mail, and a working link. Otherwise each that can be sent at once gets one. */
      newestOnly: true,
      /** The setting for the lifetime of the link. */
      lifetime: 'passwordResetExpiration',
      /** The part of the store that holds its tokens, and those of no other kind: a token does not say its kind. */
      tokens: 'resetTokens',
      /** The name of the link for support. */
      called: 'reset link',
      /** The command that sends another one. */
      command: 'user send-reset',
    },
  },
  email_verification: {
    template: 'email-verification',
    flow: 'email_verification',
    takesBack: 'verification',
    page: '/verify-email',
    link: {
      newestOnly: false,
      lifetime: 'emailVerificationExpiration',
      tokens: 'verificationTokens',
      called: 'verification link',
      command: 'user send-verification',
    },
  },
  invitation: {
    template: 'invitation',
    flow: 'invitation',
    takesBack: 'password',
    page: '/accept-invitation',
    link: {
      newestOnly: true,
      lifetime: 'invitationExpiration',
      tokens: 'invitationTokens',
      called: 'invitation',
      command: 'user invite',
    },
  },
  password_changed: {
    template: 'password-changed',
    flow: 'password_reset',
    takesBack: 'password',
    page: '/forgot-password',
    link: undefined,
  },
  email_changed: {
    template: 'email-changed',
    flow: 'email_verification',
    // The owner left this mailbox, mostly by choice. Its reader must not lock the account.
    takesBack: undefined,
    // A reset link would go to the new address.
    page: undefined,
    link: undefined,
  },
} as const satisfies Record<string, WithPage | WithoutPage>

interface WithoutPage {
  takesBack: undefined
  page: undefined
  [more: string]: unknown
}

/** Such a mail has "This wasn't me". Its row must say what a press undoes: a wrong value would block a password. */
interface WithPage {
  takesBack: 'password' | 'verification'
  page: string
  [more: string]: unknown
}

type Rows = typeof MAIL_KINDS
export type MailKind = keyof Rows
type KindWith<Facts> = { [K in MailKind]: Rows[K] extends Facts ? K : never }[MailKind]
/** The kinds whose mails hold a link with a token. */
export type LinkKind = KindWith<{ link: object }>
/** The kinds whose link leads to a password form. */
export type PasswordLinkKind = KindWith<{ link: object; takesBack: 'password' }>
/** The kinds of which only the newest link works. */
export type NewestLinkKind = KindWith<{ link: { newestOnly: true } }>
/** The parts of the store that hold tokens of these kinds. */
export type TokenPart = Rows[LinkKind]['link']['tokens']
/** A `password_reset` without a link has a template of its own. */
export type MailTemplate = Rows[MailKind]['template'] | 'signs-in-elsewhere'

export const linkKinds: readonly LinkKind[] = Object.keys(MAIL_KINDS).filter(isLinkKind)
export const mailTemplates: readonly MailTemplate[] = [
  ...Object.values(MAIL_KINDS).map(({ template }) => template),
  'signs-in-elsewhere',
]

export function isMailKind(kind: string): kind is MailKind {
  return Object.hasOwn(MAIL_KINDS, kind)
}

export function isLinkKind(kind: string): kind is LinkKind {
  return isMailKind(kind) && MAIL_KINDS[kind].link !== undefined
}

type Tokens = Record<TokenPart, unknown>

/** The tokens of a kind of mail. `undefined`: its link holds none. */
export function tokensOf<S extends Tokens>(store: S, kind: LinkKind): S[TokenPart]
export function tokensOf<S extends Tokens>(store: S, kind: MailKind): S[TokenPart] | undefined
export function tokensOf<S extends Tokens>(store: S, kind: MailKind) {
  const { link } = MAIL_KINDS[kind]
  return link && store[link.tokens]
}
