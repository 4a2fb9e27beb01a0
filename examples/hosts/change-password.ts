import bcrypt from 'bcrypt'
import type { RefusedNewPassword, UserStore } from '../../src/index.ts'
import type { HostParts } from './host-parts.ts'
import { readForm, show, showTooMany, askingToComeBack, type Page } from './page.ts'

export interface ChangePasswordParts extends Pick<HostParts, 'provider' | 'flows'> {
  users: UserStore
  /** As for `createAccountFlows`. */
  bcryptCost?: number
}

/**
 * Your page on which a person who is signed in changes the password. Another site can do nothing here: it does not know the present
 * password.
 */
export function createChangePassword(parts: ChangePasswordParts): Page {
  const { provider, flows, users, bcryptCost = 12 } = parts
  return askingToComeBack(async (req, res) => {
    const { accountId } = await provider.Session.get(provider.createContext(req, res))
    const user = accountId === undefined ? undefined : await users.findById(accountId)
    if (user?.passwordHash === undefined || user.disabled)
      return show(res, 403, 'Sign in first, and then open this page again.')
    if (req.method !== 'POST') return show(res, 200, FORM)
    const form = await readForm(req)
    if (!form) return show(res, 413, FORM)
    const password = form.get('password') ?? ''
    const waitSeconds = await flows.limitLogin(req, user.username)
    if (waitSeconds !== undefined) return showTooMany(res, waitSeconds)
    if (!(await flows.verifyPassword(user, form.get('current_password') ?? '', req)))
      return show(res, 400, `That is not your present password.${FORM}`)
    if (password !== form.get('confirm_password'))
      return show(res, 400, `The new passwords are not the same.${FORM}`)
    const refused = await flows.validatePassword(password, user)
    if (refused) return show(res, 400, `${REFUSALS[refused.refusal]}${FORM}`)
    const hash = await bcrypt.hash(password, bcryptCost)
    if (!(await users.replacePasswordHash(user.id, user.passwordHash, hash)))
      return show(
        res,
        409,
        'Your password was just changed elsewhere, for example by a mailed link.',
      )
    // All other browsers and apps are signed out, and a mail tells the owner.
    await flows.passwordChanged(user.id, { req, res })
    show(res, 200, 'Your password is changed. You are still signed in here, and nowhere else.')
  })
}

const REFUSALS: Record<RefusedNewPassword['refusal'], string> = {
  password_too_short: 'The new password is too short.',
  password_too_long: 'The new password is too long.',
  password_invalid: 'The new password has characters that we cannot read.',
  password_common: 'The new password is one that many people use.',
  password_personal: 'The new password is made of your names, or of ours.',
  password_current: 'That is your password already.',
  password_host: 'The new password is not allowed here.',
}

const FORM = `
<form method="post">
  <label>Present password <input type="password" name="current_password" autocomplete="current-password"></label>
  <label>New password <input type="password" name="password" autocomplete="new-password"></label>
  <label>Once more <input type="password" name="confirm_password" autocomplete="new-password"></label>
  <button>Change password</button>
</form>`
