import { expect } from 'chai'
import { deviceOf } from '../../src/views/device.ts'

const MAC = 'Macintosh; Intel Mac OS X 10_15_7'
const WINDOWS = 'Windows NT 10.0; Win64; x64'
const ANDROID = 'Linux; Android 10; K'
const IPHONE = 'iPhone; CPU iPhone OS 18_6 like Mac OS X'
const IPAD = 'iPad; CPU OS 18_6 like Mac OS X'
const BLINK = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0'
const WEBKIT = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'

const of = (system: string, rest: string) => `Mozilla/5.0 (${system}) ${rest}`

const KNOWN: [string, string][] = [
  ['Chrome on Windows', of(WINDOWS, `${BLINK} Safari/537.36`)],
  ['Chrome on macOS or iPadOS', of(MAC, `${BLINK} Safari/537.36`)],
  ['Chrome on Linux', of('X11; Linux x86_64', `${BLINK} Safari/537.36`)],
  ['Chrome on ChromeOS', of('X11; CrOS x86_64 14541.0.0', `${BLINK} Safari/537.36`)],
  ['Chrome on Android', of(ANDROID, `${BLINK} Mobile Safari/537.36`)],
  ['Chrome on iOS', of(IPHONE, `${WEBKIT} CriOS/143.0.7499.92 Mobile/15E148 Safari/604.1`)],
  ['Edge on Windows', of(WINDOWS, `${BLINK} Safari/537.36 Edg/143.0.0.0`)],
  ['Edge on Android', of(ANDROID, `${BLINK} Mobile Safari/537.36 EdgA/143.0.0.0`)],
  [
    'Edge on iOS',
    of(IPHONE, `${WEBKIT} Version/18.0 EdgiOS/143.0.3650.65 Mobile/15E148 Safari/604.1`),
  ],
  ['Firefox on Windows', of(`${WINDOWS}; rv:146.0`, 'Gecko/20100101 Firefox/146.0')],
  ['Firefox on Linux', of('X11; Ubuntu; Linux x86_64; rv:146.0', 'Gecko/20100101 Firefox/146.0')],
  ['Firefox on Android', of('Android 15; Mobile; rv:146.0', 'Gecko/146.0 Firefox/146.0')],
  ['Firefox on iOS', of(IPHONE, `${WEBKIT} FxiOS/146.0 Mobile/15E148 Safari/605.1.15`)],
  ['Opera on Windows', of(WINDOWS, `${BLINK} Safari/537.36 OPR/125.0.0.0`)],
  ['Safari on macOS or iPadOS', of(MAC, `${WEBKIT} Version/26.1 Safari/605.1.15`)],
  ['Safari on iOS', of(IPHONE, `${WEBKIT} Version/18.6 Mobile/15E148 Safari/604.1`)],
  ['Safari on iPadOS', of(IPAD, `${WEBKIT} Version/18.6 Mobile/15E148 Safari/604.1`)],
  [
    'Samsung Internet on Android',
    of(
      ANDROID,
      'AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36',
    ),
  ],
]

const CHROME = of(WINDOWS, `${BLINK} Safari/537.36`)

const UNSURE: Record<string, string> = {
  nothing: '',
  'a browser without a system': `Mozilla/5.0 ${BLINK} Safari/537.36`,
  'a system without a browser': of(WINDOWS, ''),
  'a program': 'curl/8.5.0',
  'a robot': 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
  'a browser that nobody looks at': CHROME.replace('Chrome/', 'HeadlessChrome/'),
  'a browser inside another program': of(WINDOWS, `${BLINK} Electron/38.0.0 Safari/537.36`),
  'an app that shows a page': of('Linux; Android 15; K; wv', `${BLINK} Mobile Safari/537.36`),
  'an app on a phone': of(IPHONE, `${WEBKIT} Mobile/15E148 [FBAN/FBIOS;FBAV/500]`),
  'a system that we do not know': of('SMART-TV; Tizen 8.0', `${BLINK} Safari/537.36`),
  'a browser that we do not know': of(WINDOWS, `${BLINK} Safari/537.36 Evil/1.0`),
  'a browser with a message': of(WINDOWS, `${BLINK} Safari/537.36 call +49 800 1234567`),
  'a system with a message': of(
    'Your account is locked. Windows NT 10.0',
    `${BLINK} Safari/537.36`,
  ),
  'an address': 'https://evil.example/login',
  markup: of(WINDOWS, `${BLINK} Safari/537.36<a href="https://evil.example">x</a>`),
  'a line break and a header': `${CHROME}\r\nBcc: attacker@evil.example`,
  'a line break': `${CHROME}\n`,
  'an override of the direction': `\u202e${CHROME}`,
  NUL: `${CHROME}\0`,
  'two systems': of(WINDOWS, `(${IPHONE}) ${BLINK} Safari/537.36`),
  'a version that is a message': CHROME.replace('143.0.0.0', '0800123456789'),
  'something cut off': CHROME.slice(0, 60),
  'very much of it': of(WINDOWS, `${BLINK} Safari/537.36 `.repeat(50_000)),
  'very many brackets': '('.repeat(100_000),
}

describe('browser and system, in words of ours', () => {
  it('are told for each browser that is known', () => {
    for (const [expected, userAgent] of KNOWN) {
      const { browser, systems } = deviceOf(userAgent) ?? { browser: '', systems: [] }
      expect(`${browser} on ${systems.join(' or ')}`, userAgent).to.equal(expected)
    }
  })

  it('are not told where there is any doubt', () => {
    for (const [what, userAgent] of Object.entries(UNSURE)) {
      expect(deviceOf(userAgent), what).to.equal(undefined)
    }
  })
})
