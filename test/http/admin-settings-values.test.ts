import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { adminSettingsSuite, bearer } from '../support/admin-settings-suite.ts'

const JSON_TYPE = 'application/json'

onBothStores('PUT {base_url}/admin/api/settings checks every value (2.5, 4.5)', (technology) => {
  const { url, itRefuses } = adminSettingsSuite(technology)
  const put = (body: string) =>
    fetch(url(), { method: 'PUT', headers: { ...bearer, 'content-type': JSON_TYPE }, body })

  /** RFC 9457, with no secret in it. */
  async function problemOf(response: Response): Promise<Record<string, unknown>> {
    expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
    expect(response.headers.get('cache-control')).to.equal('no-store')
    const text = await response.text()
    expect(text).not.to.include('canary').and.not.to.include(ADMIN_TOKEN)
    const problem = JSON.parse(text)
    expect(problem).to.include({ status: response.status })
    expect(problem.title).to.be.a('string').and.not.equal('')
    return problem
  }

  describe('a body with one bad setting: 400 that names it, and applies none (D27)', () => {
    const host = 'smtp.example'
    const durations = [
      '',
      '0',
      '0s',
      '-1h',
      '1',
      '1.5h',
      '1e3h',
      ' 1h',
      '1h ',
      '1h\n',
      '١h',
      '1h30m?',
      'Infinity',
      'NaN',
      '99999999999h',
      '1H',
      'PT1H',
      '30m1h',
      '1h1h',
      '01h',
      '1h 30m',
      '500ms',
      '+1h',
    ]
    const lengths = [
      '',
      '0',
      '-1',
      '8.0',
      '1e1',
      ' 8',
      '8 ',
      '08',
      '٨',
      '73',
      '1000000000',
      'eight',
      'NaN',
      'Infinity',
      '0x8',
    ]
    const limits = [
      '',
      '-1',
      '00',
      '01',
      '1.0',
      '1e3',
      ' 5',
      '5 ',
      '٥',
      '10001',
      'none',
      'NaN',
      '0x8',
    ]
    const lines = ['a\r\nb', 'a\nb', 'a\0b', 'a\tb', 'x'.repeat(256), '\u202Ea', '\uD800']
    const bad: Record<string, string[]> = {
      password_reset_expiration: [...durations, '8d', '604801s'],
      email_verification_expiration: [...durations, '31d'],
      resend_cooldown: [
        ...durations.filter((value) => value !== '0s'),
        '0m',
        '00s',
        '25h',
        '86401s',
      ],
      requests_per_ip_per_minute: limits,
      mails_per_account_per_hour: limits,
      mails_per_minute: limits,
      reset_requires_verified_email: ['', 'TRUE', '1', 'false '],
      require_email_verification: [
        '',
        'TRUE',
        'True',
        '1',
        '0',
        'yes',
        'on',
        'false ',
        ' true',
        'null',
      ],
      smtp_port: [
        '',
        '0',
        '-1',
        '65536',
        '587.5',
        '5e2',
        '0x19',
        '587abc',
        ' 587',
        '587 ',
        '0587',
        '+25',
        '٢٥',
        '[25]',
        'smtp',
        'NaN',
      ],
      smtp_host: [
        'a b',
        ' ',
        `${host}\r\nX: y`,
        `${host}\n`,
        `${host}:25`,
        '127.0.0.1:25',
        `smtp://${host}`,
        `user@${host}`,
        `${host}/x`,
        `[::1]`,
        'bücher.example',
        'x'.repeat(300),
        'a\0b',
        '..',
        `.${host}`,
        `-`,
        ':::',
      ],
      smtp_tls: [
        '',
        'AUTO',
        'Auto',
        ' auto',
        'auto ',
        'tls',
        'true',
        'false',
        'required',
        'auto\n',
      ],
      smtp_username: lines,
      smtp_password: lines,
      smtp_from: [
        'a',
        '@b.example',
        'a@',
        'a@b@c.example',
        'a@b.example, c@d.example',
        'A <a@b.example>',
        '<a@b.example>',
        'a@b.example\r\nBcc: c@d.example',
        'a @b.example',
        'ä@b.example',
        'a@bücher.example',
        `${'a'.repeat(65)}@b.example`,
        `a@${'b.'.repeat(130)}example`,
        'a..b@c.example',
        '.a@b.example',
        'a@b..example',
        'a@-b.example',
        'a@.',
      ],
      validation_min_password_length: [...lengths, '65'],
      validation_max_password_length: lengths,
    }
    const innocent = { password_reset_expiration: '4h', email_verification_expiration: '5h' }

    async function isRefused(body: string, keys: string[]) {
      const response = await put(body)
      expect(response.status, body).to.equal(400)
      const { errors } = await problemOf(response)
      if (!Array.isArray(errors)) throw new TypeError(`no errors for ${body}`)
      expect(
        errors.map(({ key }) => key),
        body,
      ).to.have.members(keys)
      for (const { expected } of errors) expect(expected).to.be.a('string').and.not.equal('')
    }

    for (const [key, values] of Object.entries(bad)) {
      for (const value of values) {
        itRefuses(`${key}: ${JSON.stringify(value).slice(0, 60)}`, () =>
          isRefused(JSON.stringify({ ...innocent, [key]: value }), [key]),
        )
      }
    }

    for (const value of [26, 0, null, true, [], ['26'], { $gt: '' }, { smtp_port: '26' }, 1e400]) {
      itRefuses(`a value that is no string: ${JSON.stringify(value)}`, async () => {
        for (const key of ['smtp_port', 'require_email_verification', 'smtp_password']) {
          await isRefused(JSON.stringify({ ...innocent, [key]: value }), [key])
        }
      })
    }

    for (const key of [
      '',
      'unknown',
      'SMTP_PORT',
      'smtpPort',
      ' smtp_port',
      'smtp_port ',
      '_id',
      'version',
      'values',
      '$set',
      'values.smtp_port',
      'settings.smtp_port',
      'constructor',
      'prototype',
      'toString',
      'hasOwnProperty',
      'warnings',
    ]) {
      itRefuses(`a name that is none: ${JSON.stringify(key)}`, () =>
        isRefused(JSON.stringify({ ...innocent, [key]: '26' }), [key]),
      )
    }

    itRefuses('__proto__, as text or as an object with settings in it', async () => {
      for (const value of ['"x"', '{"smtp_port":"26"}', '{"isAdmin":"true"}']) {
        const response = await put(`{"smtp_from":"b@idp.example","__proto__":${value}}`)
        expect(response.status).to.equal(400)
        await problemOf(response)
      }
      expect(Reflect.get({}, 'smtp_port')).to.equal(undefined)
      expect(Reflect.get({}, 'isAdmin')).to.equal(undefined)
    })

    itRefuses('lists every bad key of one body', () =>
      isRefused(
        JSON.stringify({
          ...innocent,
          smtp_port: '0',
          nonsense: 'x',
          smtp_host: 25,
          smtp_from: '@',
        }),
        ['smtp_port', 'nonsense', 'smtp_host', 'smtp_from'],
      ),
    )

    itRefuses('a minimum above the maximum, of the same body or of the one in force', async () => {
      for (const body of [
        { validation_min_password_length: '20', validation_max_password_length: '19' },
        { validation_min_password_length: '65' },
        { validation_max_password_length: '7' },
      ]) {
        const response = await put(JSON.stringify({ ...innocent, ...body }))
        expect(response.status).to.equal(400)
        expect(JSON.stringify(await problemOf(response))).to.include('validation_m')
      }
    })
  })
})
