// Puts new mails on top as they arrive. What somebody has opened of the others stays as it is.
const EVERY_MS = 1000
const mailsIn = (page) => [...page.querySelectorAll('article')]

async function look() {
  const [newest] = mailsIn(document)
  const response = await fetch(`?after=${newest?.id ?? ''}`)
  if (response.status !== 200) return
  const page = new DOMParser().parseFromString(await response.text(), 'text/html')
  const mails = mailsIn(page)
  const known = mails.findIndex(({ id }) => id === newest?.id)
  if (known < 0) document.querySelector('main').replaceWith(page.querySelector('main'))
  else newest.before(...mails.slice(0, known))
}

async function keepLooking() {
  for (;;) {
    // While the server starts again, nothing can be read.
    await look().catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
}

void keepLooking()
