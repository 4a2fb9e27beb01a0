const SECOND = 1000
const all = (selector) => document.querySelectorAll(selector)

// Once each: the second would find the link, or the turn, used.
addEventListener('submit', (event) => {
  const { target: form, submitter, defaultPrevented } = event
  if (defaultPrevented) return
  if ([...form.elements].some((one) => one.hasAttribute('aria-busy'))) return event.preventDefault()
  const button = submitter ?? form.querySelector('[type=submit]')
  button.setAttribute('aria-busy', true)
  setTimeout(() => button.removeAttribute('aria-busy'), 15 * SECOND)
})

// Out of the browser's memory, it is old.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())

all('[data-bytes]').forEach(judge)
all('[data-show]').forEach(letShow)
all('[data-seconds]').forEach(countDown)
all('[data-status-url]').forEach(waitFor)

/** The rule for a new password: calmly while it is typed, as a fault once its field was left or the form sent. */
function judge(form) {
  const { min, max, bytes, atLeast, match, tooShort, tooLong, mismatch } = form.dataset
  const { password, confirm_password: confirmation } = form.elements
  const typed = new Set()
  const left = new Set()
  let timer

  function tell(field, calm, fault) {
    if (!typed.has(field)) return
    const isFault = Boolean(fault) && left.has(field)
    const hint = document.getElementById(`${field.name}-hint`)
    field.setAttribute('aria-invalid', isFault)
    hint.classList.toggle('fault', isFault)
    const words = isFault ? fault : calm
    // Words that stay are not read out again.
    if (hint.textContent !== words) hint.textContent = words
  }

  /** Answers the mode that the server would answer with, and nothing where it has nothing to object to. */
  function tellAll() {
    const characters = [...password.value]
    const size = (count) => new TextEncoder().encode(characters.slice(0, count).join('')).length
    let fitting = Math.min(characters.length, max)
    while (size(fitting) > bytes) fitting--
    const excess = characters.length - fitting
    const long = tooLong.replace('{excess}', numberText(excess))
    const isShort = characters.length < min
    if (excess) tell(password, long, long)
    else if (isShort) tell(password, atLeast, tooShort)
    else tell(password, `✓ ${atLeast}`)

    const isSame = confirmation.value === password.value
    if (isSame) tell(confirmation, password.value && `✓ ${match}`)
    else tell(confirmation, '', mismatch)

    if (!isSame) return 'password_mismatch'
    return excess ? 'password_too_long' : isShort && 'password_too_short'
  }

  const setMode = (mode) => (form.closest('main').dataset.mode = mode)

  // Not at every key.
  function later() {
    clearTimeout(timer)
    timer = setTimeout(() => tellAll() || setMode('form'), SECOND / 2)
  }

  form.noValidate = true
  form.addEventListener('input', ({ target }) => {
    typed.add(target)
    later()
  })
  form.addEventListener('focusout', ({ target }) => {
    if (typed.has(target)) left.add(target)
    later()
  })
  form.addEventListener('submit', (event) => {
    for (const field of [password, confirmation]) {
      typed.add(field)
      left.add(field)
    }
    const mode = tellAll()
    if (!mode) return
    event.preventDefault()
    setMode(mode)
    form.querySelector('[aria-invalid=true]').focus()
  })
}

/** One button for both fields. */
function letShow(place) {
  const { show, hide } = place.dataset
  const form = place.closest('form')
  const button = document.createElement('button')
  const set = (isShown) => {
    for (const field of form.querySelectorAll('[autocomplete=new-password]')) {
      field.type = isShown ? 'text' : 'password'
    }
    button.textContent = isShown ? hide : show
  }
  Object.assign(button, { type: 'button', className: 'plain show' })
  button.addEventListener('click', () => set(button.textContent === show))
  // Browsers keep what is in fields of text.
  form.addEventListener('submit', (event) => event.defaultPrevented || set(false))
  set(false)
  place.append(button)
}

/** As the server words it. */
function countDown(time) {
  const until = performance.now() + time.dataset.seconds * SECOND
  const button = time.closest('form')?.querySelector('[type=submit]')
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
  return numberText(amount, { style: 'unit', unit, unitDisplay: 'long' })
}

function numberText(number, style) {
  return new Intl.NumberFormat(document.documentElement.lang, style).format(number)
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
