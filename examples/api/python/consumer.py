"""Sends one mail for each order of a topic, with confluent-kafka. The claim comes before the effect, and the commit of
the offsets after it."""

import json
import os
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer

API, MAILS, TOPIC = os.environ["API"], os.environ["EFFECT"], os.environ["TOPIC"]


def post(url, body, headers={}):
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def verdicts(records):
    """Asks which records are the first of their ID. No answer tells nothing: the same question may be repeated."""
    question = {"scope": "orders", "messages": [
        {"id": r.key().decode(), "place": {"record": {"topic": r.topic(), "partition": r.partition(), "offset": r.offset()}}}
        for r in records]}
    while True:
        try:
            answer = post(f"{API}/kdedup.v1.ClaimService/Judge", question)
            return [judgement["verdict"] for judgement in answer["judgements"]]
        except OSError as error:
            if getattr(error, "code", 503) in (400, 401, 403):  # no repetition mends these
                raise
            time.sleep(1)


def send_mail(record):
    """The effect. After a crash it may come again, so whoever sends the mail is told the ID, too."""
    post(MAILS, {"offset": record.offset()}, {"Idempotency-Key": record.key().decode()})


consumer = Consumer({"bootstrap.servers": os.environ["KAFKA"], "group.id": os.environ["GROUP"], "session.timeout.ms": 6000,
                     "enable.auto.commit": False, "auto.offset.reset": "earliest"})
consumer.subscribe([TOPIC])
while True:
    records = [r for r in consumer.consume(500, timeout=0.5) if not r.error()]
    if not records:
        continue
    for record, verdict in zip(records, verdicts(records)):
        if verdict in ("VERDICT_FIRST", "VERDICT_MINE"):
            send_mail(record)
    consumer.commit(asynchronous=False)
