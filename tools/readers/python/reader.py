"""Reads partition 0 of a topic with one of Python's clients: CLIENT BROKER TOPIC ISOLATION.

It prints the client's version and then each value, up to END.
"""
import asyncio
import importlib.metadata
import json
import sys

SILENCE = 10  # seconds; what does not come within it never does


def show(value):
    """Reports whether it was the last one."""
    print(json.dumps((value or b"").decode("latin-1")), flush=True)
    return value == b"END"


def kafka_python(broker, topic, isolation):
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest",
                             consumer_timeout_ms=SILENCE * 1000, **isolation)
    consumer.assign([TopicPartition(topic, 0)])
    for record in consumer:
        if show(record.value):
            return
    sys.exit("nothing came for a while")


def aiokafka(broker, topic, isolation):
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def read():
        consumer = AIOKafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest",
                                    **isolation)
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.start()
        try:
            while not show((await asyncio.wait_for(consumer.getone(), SILENCE)).value):
                pass
        except asyncio.TimeoutError:
            sys.exit("nothing came for a while")
        finally:
            await consumer.stop()

    asyncio.run(read())


def confluent(broker, topic, isolation):
    from confluent_kafka import Consumer, TopicPartition, OFFSET_BEGINNING

    consumer = Consumer({"bootstrap.servers": broker, "group.id": "readers",
                         **{key.replace("_", "."): value for key, value in isolation.items()}})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while True:
        message = consumer.poll(SILENCE)
        if message is None:
            sys.exit("nothing came for a while")
        if message.error():
            sys.exit(str(message.error()))
        if show(message.value()):
            return


def main():
    client, broker, topic, isolation = sys.argv[1:5]
    read, package = {"kafka-python": (kafka_python, "kafka-python"),
                     "aiokafka": (aiokafka, "aiokafka"),
                     "librdkafka": (confluent, "confluent-kafka")}[client]
    version = importlib.metadata.version(package)
    if client == "librdkafka":
        import confluent_kafka
        version = confluent_kafka.libversion()[0]
    print(version, flush=True)
    read(broker, topic, {"isolation_level": "read_committed"} if isolation == "committed" else {})


main()
