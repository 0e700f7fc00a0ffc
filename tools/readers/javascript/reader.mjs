// Reads partition 0 of a topic with one of Node's clients: CLIENT BROKER TOPIC ISOLATION. It prints
// the client's version and then each value, up to END.
import { readFileSync } from 'node:fs'

const [client, broker, topic, isolation] = process.argv.slice(2)
const silence = 10_000 // milliseconds; what does not come within it never does
const committed = isolation === 'committed'

const name = client === 'platformatic' ? '@platformatic/kafka' : client
console.log(JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version)

let idle
function wait () {
  clearTimeout(idle)
  idle = setTimeout(() => { console.error('nothing came for a while'); process.exit(1) }, silence)
}

function show (value) {
  wait()
  console.log(JSON.stringify(value?.toString('latin1') ?? ''))
  if (value?.toString() === 'END') process.exit(0)
}

async function kafkajs () {
  const { Kafka, logLevel } = (await import('kafkajs')).default
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING })
  const settings = { groupId: `readers-${process.pid}` }
  if (isolation !== 'default') settings.readUncommitted = !committed
  const consumer = kafka.consumer(settings)
  consumer.on(consumer.events.CRASH, e => { console.error(e.payload.error.message); process.exit(1) })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => show(message.value) })
}

async function platformatic () {
  const { Consumer } = await import('@platformatic/kafka')
  const settings = { groupId: `readers-${process.pid}`, clientId: 'readers', bootstrapBrokers: [broker] }
  if (committed) settings.isolationLevel = 1
  const consumer = new Consumer(settings)
  const stream = await consumer.consume({ topics: [topic], mode: 'earliest', ...(committed && { isolationLevel: 1 }) })
  stream.on('error', e => { console.error(e.message); process.exit(1) })
  for await (const message of stream) show(message.value)
}

wait()
await { kafkajs, platformatic }[client]()
