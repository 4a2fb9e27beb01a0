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

// What was wrong is being corrected. Its words stay, until there are others.
addEventListener('input', ({ target }) => calm(target))

// Out of the browser's memory, it is old.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())

all('[data-bytes]').forEach(validate)
all('[data-show]').forEach(letShow)
all('[data-seconds]').forEach(countDown)
// A reload sends no form.
all('[data-page-url]').forEach(({ dataset }) => history.replaceState(null, '', dataset.pageUrl))

function calm(field) {
  if (!field.matches('[aria-invalid=true]')) return
  field.setAttribute('aria-invalid', false)
  document.getElementById(`${field.name}-hint`)?.classList.remove('fault')
}

/** The rule for a new password: calmly while it is typed, as a fault once its field was left or the form sent. */
function validate(form) {
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
    left.delete(target)
    if (target === password) {
      // They are to be equal: with the one, the other is corrected.
      left.delete(confirmation)
      calm(confirmation)
    }
    later()
  })
  form.addEventListener('focusout', () => {
    for (const field of typed) left.add(field)
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
