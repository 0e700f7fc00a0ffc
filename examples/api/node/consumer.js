// Sends one mail for each order of a topic, with KafkaJS. The claim comes before the effect, and the commit of the
// offsets after it.
import { Kafka, logLevel } from 'kafkajs'

const { API, EFFECT: mails, KAFKA, TOPIC, GROUP } = process.env

const post = async (url, body, headers = {}) => {
  const answer = await fetch(url, {
    method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(30_000),
    headers: { 'Content-Type': 'application/json', ...headers },
  })
  if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status })
  return answer.json()
}

// verdicts asks which records are the first of their ID. No answer tells nothing: the same question may be repeated.
const verdicts = async (topic, partition, records) => {
  const messages = records.map(r => ({
    id: r.key.toString(), place: { record: { topic, partition, offset: r.offset } },
  }))
  for (;;) {
    try {
      const answer = await post(`${API}/kdedup.v1.ClaimService/Judge`, { scope: 'orders', messages })
      return answer.judgements.map(j => j.verdict)
    } catch (error) {
      if ([400, 401, 403].includes(error.status)) throw error // no repetition mends these
      await new Promise(resume => setTimeout(resume, 1000))
    }
  }
}

// sendMail is the effect. After a crash it may come again, so whoever sends the mail is told the ID, too.
const sendMail = record => post(mails, { offset: Number(record.offset) }, { 'Idempotency-Key': record.key.toString() })

const kafka = new Kafka({ brokers: [KAFKA], logLevel: logLevel.WARN })
const consumer = kafka.consumer({ groupId: GROUP, sessionTimeout: 6000, retry: { restartOnFailure: async () => true } })
await consumer.connect()
await consumer.subscribe({ topics: [TOPIC], fromBeginning: true })
await consumer.run({
  // The offsets are committed when this has returned. If it throws, the batch comes again.
  eachBatch: async ({ batch, heartbeat }) => {
    const all = await verdicts(batch.topic, batch.partition, batch.messages)
    for (const [i, record] of batch.messages.entries()) {
      if (all[i] === 'VERDICT_FIRST' || all[i] === 'VERDICT_MINE') await sendMail(record)
      await heartbeat()
    }
  },
})
