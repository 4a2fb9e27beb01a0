/** What everybody knows of each kind of mail. What it does is in `mail/kinds.ts`; its looks and words are in `views/`. */
export const MAIL_KINDS = {
  password_reset: {
    /** The name of its files in `views/mails/`, and of its words. */
    template: 'password-reset',
    /** What the types of its audit events begin with: those of `contract/audit.ts`. */
    flow: 'password_reset',
    /** It tells of what was done to an account. Nobody asks for it, a limit puts it off, and it leaves whatever became of the account since. */
    isNotice: false,
    /** What "This wasn't me" takes back, if the mail or its link did it. */
    takesBack: 'password',
    /** Only the newest request of an account gets a mail, however early the others are. Otherwise each does that can be sent at once. */
    newestOnly: true,
    /** Where its link leads, below the OAuth path. */
    page: '/reset-password',
    /** `undefined`: its link holds no secret, and leads to a page that anybody may open. */
    link: {
      /** The setting that says how long the link is good. */
      lifetime: 'passwordResetExpiration',
      /** The part of the store that its tokens are in. One kind for each part: a token does not tell its kind. */
      tokens: 'resetTokens',
      /** Whether `authorize_sig` covers what it carries. */
      isSigned: false,
      /** What support reads of it. */
      called: 'reset link',
      /** The command by which support sends another one. */
      command: 'user send-reset',
    },
  },
  email_verification: {
    template: 'email-verification',
    flow: 'email_verification',
    isNotice: false,
    takesBack: 'verification',
    newestOnly: false,
    page: '/verify-email',
    link: {
      lifetime: 'emailVerificationExpiration',
      tokens: 'verificationTokens',
      isSigned: true,
      called: 'verification link',
      command: 'user send-verification',
    },
  },
  invitation: {
    template: 'invitation',
    flow: 'invitation',
    isNotice: false,
    takesBack: 'password',
    newestOnly: true,
    page: '/accept-invitation',
    link: {
      lifetime: 'invitationExpiration',
      tokens: 'invitationTokens',
      isSigned: false,
      called: 'invitation',
      command: 'user invite',
    },
  },
  password_changed: {
    template: 'password-changed',
    flow: 'password_reset',
    isNotice: true,
    takesBack: 'password',
    newestOnly: false,
    page: '/forgot-password',
    link: undefined,
  },
} as const satisfies Record<string, { takesBack: TakenBack; [more: string]: unknown }>

/** A new kind of mail must say it: a wrong one would block a password. */
type TakenBack = 'password' | 'verification'

type Rows = typeof MAIL_KINDS

export type MailKind = keyof Rows
/** The kinds whose mails hold a link with a token. */
export type LinkKind = { [K in MailKind]: Rows[K]['link'] extends object ? K : never }[MailKind]
/** Those whose link leads to a form for a password. */
export type PasswordLinkKind = Exclude<LinkKind, 'email_verification'>
/** The parts of the store that tokens are in. */
export type TokenPart = Rows[LinkKind]['link']['tokens']
export type MailTemplate = Rows[MailKind]['template']

export const mailKinds: readonly MailKind[] = Object.keys(MAIL_KINDS).filter(isMailKind)
export const linkKinds: readonly LinkKind[] = mailKinds.filter(isLinkKind)
export const mailTemplates: readonly MailTemplate[] = mailKinds.map(
  (kind) => MAIL_KINDS[kind].template,
)

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
