"""Writes records to a topic with the serializers of Confluent's Python client, under two versions of a schema.

usage: produce.py REGISTRY BROKERS TOPIC PARTITIONS FORMAT RECORDS [both]

Every tenth record is a copy of an earlier one, on any partition and under either version: as a producer writes it that
was upgraded between its tries. The second header tells the check which ID it is. With both, any record of Avro may have
the number of its schema before the value, or in the header of Apicurio's serializers, as while producers change.
"""

import random
import struct
import sys

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REGISTRY, BROKERS, TOPIC, PARTITIONS, FORMAT, RECORDS = sys.argv[1:7]
BOTH = sys.argv[7:] == ["both"]

AVRO = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
  %s
  {"name": "customer", "type": "string"},
  {"name": "order", "type": {"type": "record", "name": "Head", "fields": [
    {"name": "id", "type": ["null", {"type": "string", "logicalType": "uuid"}]},
    {"name": "lines", "type": {"type": "array", "items": "int"}}]}}]}"""

JSON = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Order", "type": "object", "properties": {
  %s
  "customer": {"type": "string"},
  "order": {"type": "object", "properties": {"id": {"type": "string"}, "lines": {"type": "array"}}}}}"""


def message(version):
    """The class of shop.Order, the second message of its file."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    head = file.message_type.add(name="Head")
    head.field.add(name="id", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    head.field.add(name="lines", number=2, type=field.TYPE_INT32, label=field.LABEL_REPEATED)
    order = file.message_type.add(name="Order")
    order.field.add(name="customer", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    order.field.add(name="order", number=4, type=field.TYPE_MESSAGE, type_name=".shop.Head", label=field.LABEL_OPTIONAL)
    if version == 2:
        order.field.add(name="channel", number=3, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def in_header(payload, context, schema):
    """Names the schema as Apicurio's serializers do: Confluent's header has a GUID, and Apicurio's registry none."""
    context.headers.append(("apicurio.value.contentId", struct.pack(">q", schema.id)))
    context.headers.append(("apicurio.value.encoding", b"BINARY"))
    return payload


def serializers():
    """For each version of the schema, and each framing, what makes bytes of an order and adds headers."""
    registry = SchemaRegistryClient({"url": REGISTRY})
    known_as = SerializationContext(TOPIC, MessageField.VALUE)
    if FORMAT == "avro":
        added = ['', '{"name": "channel", "type": "string", "default": "web"},']
        framings = [{}, {"schema.id.serializer": in_header}] if BOTH else [{}]
        all = [AvroSerializer(registry, AVRO % fields, conf=conf) for conf in framings for fields in added]
        return [lambda order, headers, s=s: s(order, SerializationContext(TOPIC, MessageField.VALUE, headers))
                for s in all]
    if FORMAT == "json_schema":
        added = ['', '"channel": {"type": "string"},']
        # It would check the schema again for each record, which takes longer than all the rest.
        unchecked = {"validate": False}
        all = [JSONSerializer(JSON % fields, registry, conf=unchecked) for fields in added]
        return [lambda order, _, s=s: s(order, known_as) for s in all]
    classes = [message(1), message(2)]
    all = [ProtobufSerializer(c, registry) for c in classes]
    return [lambda order, _, s=s, c=c: s(c(**order), known_as) for s, c in zip(all, classes)]


def main():
    chance = random.Random(7)
    versions = serializers()
    producer = Producer({"bootstrap.servers": BROKERS, "queue.buffering.max.messages": 200_000})
    failed = []
    orders = 0
    for record in range(int(RECORDS)):
        number = orders
        if record % 10 == 9:
            number = chance.randrange(orders)
        else:
            orders += 1
        uuid = f"0a12c11d-71fa-4a2d-a02e-{number:012x}"
        order = {"customer": f"customer-{number % 1000}", "order": {"id": uuid, "lines": [1, number]}}
        version = chance.randrange(len(versions))
        if version % 2 == 1:
            order["channel"] = "shop"
        headers = [("trace", str(record)), ("message-id", uuid)]
        producer.produce(
            TOPIC, value=versions[version](order, headers), key=order["customer"],
            partition=chance.randrange(int(PARTITIONS)), headers=headers,
            on_delivery=lambda error, _: error and failed.append(error))
        producer.poll(0)
    if producer.flush(60):
        sys.exit("some records are not written after a minute")
    if failed:
        sys.exit(f"{len(failed)} records were not written: {failed[0]}")


main()
