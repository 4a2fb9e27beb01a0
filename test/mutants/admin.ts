import type { Mutant } from './mutant.ts'

/** What admins may do, and what they are told. */
export const adminMutants: Mutant[] = [
  {
    name: 'If-Match is not looked at',
    breaks: 'Settings that somebody else changed are not overwritten.',
    edits: { "etag === '*'": "etag !== ''" },
    caughtBy: 'with what was right before',
  },
  {
    name: 'a dry run changes settings',
    breaks: 'A dry run applies nothing.',
    edits: { 'changed.length === 0 || isDryRun': 'changed.length === 0' },
    caughtBy: '--dry-run checks',
  },
  {
    name: 'secrets are in the history of settings',
    breaks: 'No secret is in the history, not even encrypted.',
    edits: { '([name]) => settingNamed(name)?.secret === false': '() => true' },
    caughtBy: 'of a secret only that it was',
  },
  {
    name: 'a rollback takes back what was not shown',
    breaks: 'A rollback is refused where somebody changed the settings since it was shown.',
    edits: { '{ unset, ifMatch: etag, dryRun': '{ unset, dryRun' },
    caughtBy: 'takes back nothing that was not shown',
  },
  {
    name: 'an id_token is an admin token',
    breaks: 'A JWT of an admin has the type that was agreed on (ADM-08).',
    edits: { "typ: options.type ?? 'at+jwt',": '' },
    caughtBy: 'ADM-08',
  },
  {
    name: 'a token for another audience is an admin token',
    breaks: 'A JWT of an admin is for this API (ADM-08).',
    edits: { 'audience, algorithms: [...algorithms], typ': 'algorithms: [...algorithms], typ' },
    caughtBy: 'ADM-08',
  },
  {
    name: 'a JWT without the scope is an admin token',
    breaks: 'A JWT of an admin has a scope of ours (ADM-09).',
    edits: { 'names.includes(all)': '(names.includes(all) || all !== undefined)' },
    caughtBy: '403, and nothing changes',
  },
  {
    name: 'whoever may look may change settings',
    breaks: 'Each operation takes its own scope alone (ADM-15).',
    edits: {
      'scope !== undefined && !verdict.scopes.includes(scope)': 'verdict.scopes.length === 0',
    },
    caughtBy: 'ADM-15',
  },
  {
    name: 'support sends test mails to whomever it likes',
    breaks: 'No mail goes to an address that support chose (ADM-15).',
    edits: {
      "path: '/mail/test', scope: 'account-flows:settings'":
        "path: '/mail/test', scope: 'account-flows:support'",
    },
    caughtBy: 'ADM-15',
  },
  {
    name: 'failures at the admin API are not limited',
    breaks: 'Failures are limited by network (ADM-11).',
    edits: { 'count <= FAILURES_PER_MINUTE': 'count > 0' },
    caughtBy: 'ADM-11',
  },
  {
    name: 'a security setting that is not valid is its default',
    breaks: 'A damaged security setting is as it was, or the strictest (SET-18).',
    edits: { 'before[name] ?? byDefault ?? strictest': 'byDefault ?? strictest' },
    caughtBy: 'SET-18',
  },
  {
    name: 'a settings record that cannot be read is written over',
    breaks: 'An unreadable record is kept until an admin decides (SET-18).',
    edits: { "if (held.isUnreadable) return 'unreadable'": '' },
    caughtBy: 'SET-18',
  },
  {
    name: 'an event is kept for ever',
    breaks: 'Events are kept for audit_retention (LOG-11).',
    edits: { '() => settings().auditRetention': '() => Infinity' },
    caughtBy: 'LOG-11',
  },
  {
    name: 'a setting removes the next events at once',
    breaks: 'Nobody removes traces by a setting (LOG-11).',
    edits: { 'ms < minDays * DAY ||': '' },
    caughtBy: 'LOG-11',
  },
  {
    name: 'the events of a forgotten account stay',
    breaks: 'All that is recorded of an account is erased (LOG-12).',
    edits: { "const events = await forget('audit')": 'const events = { erased: 0, left: 0 }' },
    caughtBy: 'LOG-12',
  },
  {
    name: 'the event of forgetting names the account',
    breaks: 'What is left after forgetting is no personal data (LOG-12).',
    edits: { 'const accountHash = parts.keyedHash(id)': 'const accountHash = id' },
    caughtBy: 'LOG-12',
  },
  {
    name: 'support erases its own traces',
    breaks: 'What admins did to an account stays when it is forgotten (LOG-12).',
    edits: { "event.accountId !== accountId || event.type !== 'admin_action'": 'event' },
    caughtBy: 'LOG-12',
  },
  {
    name: 'forgetting breaks off a reset',
    breaks: 'A reset that was begun is finished (3.3).',
    edits: { '({ token }) => isClaimed(token)': '() => false' },
    caughtBy: 'leaves a reset that is being finished',
  },
  {
    name: 'the command line takes a secret as an argument',
    breaks: 'A secret is never an argument (CLI-01).',
    edits: { 'meansSecret(key) && !isTold': 'meansSecret(key) && !isTold && args.length === 0' },
    caughtBy: 'CLI-01',
  },
  {
    name: 'a process verifies with the key that it signs with alone',
    breaks: 'Every process takes the links of any other one while keys are rotated (SIG-17).',
    edits: { "keys('authorize_sig').some(": "keys('authorize_sig').slice(0, 1).some(" },
    caughtBy: 'SIG-17',
  },
  {
    name: 'a process opens what its first key sealed alone',
    breaks: 'Every process opens the secrets of any other one while keys are rotated (SIG-17).',
    edits: { "keys('jwe').find(": "keys('jwe').slice(0, 1).find(" },
    caughtBy: 'SIG-17',
  },
  {
    name: 'doctor does not mind a key that signs and that a process does not have',
    breaks: 'doctor fails where a process refuses what another one signs (SIG-17).',
    edits: { '(key) => partly.includes(key)': '(key) => partly.includes(key) && !all' },
    caughtBy: 'SIG-17',
  },
  {
    name: 'the mail check logs in whatever the certificate',
    breaks: 'No login goes over a connection that sending would refuse.',
    edits: { "yield tls\n  if (tls.status === 'failed') return": 'yield tls' },
    caughtBy: 'it tells the reason, and nobody logs in',
  },
]
