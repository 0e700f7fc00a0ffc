// Answers POST /payments once per Idempotency-Key, with Express: a middleware asks kdedup before the handler runs.
import { createHash } from 'node:crypto'
import express from 'express'

const { API, EFFECT: bank, PORT, HOLD = '30' } = process.env

const post = async (url, body, headers = {}) => {
  const answer = await fetch(url, {
    method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(30_000),
    headers: { 'Content-Type': 'application/json', ...headers },
  })
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}

const ask = (method, key, more) =>
  post(`${API}/kdedup.v1.IdempotencyService/${method}`, { scope: 'payments', key, ...more })

const once = async (req, res, next) => {
  if (req.method !== 'POST') return next()
  const key = req.get('Idempotency-Key')
  if (!key) return res.status(400).send('Idempotency-Key is missing')
  const requestHash = createHash('sha256').update(`${req.method} ${req.path}\n`).update(req.body).digest('base64')
  const begun = await ask('Begin', key, { requestHash, hold: `${HOLD}s` })
  if (begun.conflict) return res.status(422).send('the key was used with another request')
  if (begun.completed) {
    const kept = JSON.parse(Buffer.from(begun.completed.response, 'base64'))
    return res.status(kept.status).type(kept.type).send(kept.body)
  }
  if (!begun.acquired) return res.status(409).set('Retry-After', '1').send('a request with this key is under way')

  let { lease } = begun.acquired
  // Without this, work that takes longer than HOLD would run twice.
  const extending = setInterval(() => {
    ask('Extend', key, { lease }).then(held => { lease = held.lease }, error => console.error(error.message))
  }, Number(HOLD) * 1000 / 3)
  const send = res.send.bind(res)
  res.send = body => { // what the handler answers; nobody hears of it before it is kept
    if (typeof body === 'object' && !Buffer.isBuffer(body)) return res.json(body)
    res.send = send
    clearInterval(extending)
    const kept = { status: res.statusCode, type: res.get('Content-Type') ?? 'text/plain', body: String(body) }
    const outcome = res.statusCode < 500
      ? ask('Complete', key, { lease, response: Buffer.from(JSON.stringify(kept)).toString('base64') })
      : ask('Fail', key, { lease, message: kept.body }) // the key is free for the next attempt
    outcome.then(() => send(body), () => res.status(409).set('Retry-After', '1').end())
    return res
  }
  next()
}

const app = express()
app.use(express.raw({ type: '*/*' }), once)
app.post('/payments', async (req, res) => {
  try { // the key is handed on: after a crash the payment may come again
    const paid = await post(bank, JSON.parse(req.body), { 'Idempotency-Key': req.get('Idempotency-Key') })
    res.status(201).json(paid)
  } catch (error) {
    res.status(502).send(error.message)
  }
})
app.listen(Number(PORT), '127.0.0.1')
