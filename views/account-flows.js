const SECOND = 1000
const all = (selector) => document.querySelectorAll(selector)

// Once each: the second would find the link, or the turn, used.
const sentAt = new WeakMap()
addEventListener('submit', (event) => {
  const now = performance.now()
  if (now - sentAt.get(event.target) < 15 * SECOND) event.preventDefault()
  else sentAt.set(event.target, now)
})

// Out of the browser's memory, it is old.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())

all('[data-show]').forEach(letShow)
all('[data-seconds]').forEach(countDown)
all('[data-status-url]').forEach(waitFor)

function letShow(input) {
  const { show, showLabel } = input.dataset
  const button = document.createElement('button')
  const set = (isShown) => {
    input.type = isShown ? 'text' : 'password'
    button.setAttribute('aria-pressed', isShown)
  }
  Object.assign(button, { type: 'button', className: 'show', textContent: show })
  button.setAttribute('aria-label', showLabel)
  button.addEventListener('click', () => set(input.type === 'password'))
  // Browsers keep what is in fields of text.
  input.form.addEventListener('submit', () => set(false))
  set(false)
  input.after(button)
}

/** As the server words it. */
function countDown(time) {
  const until = performance.now() + time.dataset.seconds * SECOND
  const button = time.closest('form')?.querySelector('button')
  const tick = () => {
    const left = until - performance.now()
    const seconds = Math.ceil(left / SECOND)
    if (button) button.disabled = left > 0
    if (left <= 0) return (time.parentElement.style.visibility = 'hidden')
    time.textContent =
      seconds > 90 ? text(Math.ceil(seconds / 60), 'minute') : text(seconds, 'second')
    return setTimeout(tick, left % SECOND || SECOND)
  }
  tick()
}

function text(amount, unit) {
  const style = { style: 'unit', unit, unitDisplay: 'long' }
  return new Intl.NumberFormat(document.documentElement.lang, style).format(amount)
}

/** A login that cannot go on is not tried for ever. */
function mayTry(login) {
  const tries = Number(sessionStorage[login] ?? 0)
  sessionStorage[login] = tries + 1
  return tries < 3
}

/** Asks, while somebody looks, what became of the login, and goes on. */
function waitFor(form) {
  const { statusUrl, pageUrl, forMs, verified, stopped } = form.dataset
  const beganAt = performance.now()
  let answeredAt = -Infinity
  let timer
  let failures = 0
  let isOver = false

  const age = () => performance.now() - beganAt
  const say = (words) => (form.querySelector('[role=status]').textContent = words)

  function later() {
    const minutes = age() / (60 * SECOND)
    const rest = minutes < 10 ? 2 : minutes < 60 ? 10 : 60
    const backOff = failures && Math.min(60, 2 ** (failures + 1))
    clearTimeout(timer)
    timer = setTimeout(ask, Math.max(rest, backOff) * SECOND)
  }

  function ask() {
    if (isOver || document.hidden) return
    // However often it is shown.
    if (performance.now() - answeredAt < 1.5 * SECOND) later()
    else if (age() < forMs) {
      answeredAt = Infinity
      read().then(hear, () => hear())
    } else {
      isOver = true
      say(stopped)
    }
  }

  function hear(status) {
    answeredAt = performance.now()
    failures = status ? 0 : failures + 1
    if (isOver) return
    isOver = !failures && status !== 'waiting'
    if (!isOver) later()
    else if (status !== 'verified') location.replace(pageUrl)
    else if (mayTry(pageUrl)) {
      say(verified)
      form.requestSubmit()
    } else say(stopped)
  }

  function again() {
    isOver = false
    ask()
  }

  async function read() {
    const signal = AbortSignal.timeout?.(10 * SECOND)
    const answer = await fetch(statusUrl, { cache: 'no-store', signal })
    return answer.ok ? (await answer.json()).status : undefined
  }

  // A reload sends no form.
  history.replaceState(null, '', pageUrl)
  // Still here by then: nothing came of it.
  form.addEventListener('submit', () => {
    isOver = true
    setTimeout(again, 60 * SECOND)
  })
  document.addEventListener('visibilitychange', ask)
  later()
}
