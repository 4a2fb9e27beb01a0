/** One mail, as a transport receives it. `sendMail` of nodemailer accepts it as it is. */
export interface TransportMail {
  /** The settings `smtp_from` and `smtp_from_name`; the name may be empty. Left out: `smtp_from` is not set. */
  from?: { name: string; address: string }
  /** The setting `mail_reply_to`. Left out: it is not set. */
  replyTo?: string
  /** One plain address. */
  to: string
  /** One line. */
  subject: string
  text: string
  html: string
  /** With its angle brackets. Left out: `smtp_from` is not set. */
  messageId?: string
  /** Further headers, by name. */
  headers: Record<string, string>
}

/** The outcome of a mail. `id` is its name at the mail service; `reason` is kept for admins, without addresses. */
export type TransportAnswer =
  { accepted: true; id?: string } | { accepted: false; isForGood: boolean; reason: string }

/** Sends mails in place of SMTP. */
export interface MailTransport {
  /**
   * Hands one mail over. An error means: try again. The signal aborts after 30 seconds, or when the process stops; a later answer does not
   * count. At most five calls run at the same time.
   */
  send(mail: TransportMail, signal: AbortSignal): Promise<TransportAnswer>
  /** It delivers nothing, such as a development mailbox. It gets mails only while SMTP is not configured; production refuses it. */
  isStandIn?: boolean
}
