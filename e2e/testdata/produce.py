"""Writes records to a topic with serializers of Python, under two versions of a schema.

usage: produce.py REGISTRY BROKERS TOPIC PARTITIONS FORMAT RECORDS FRAMING,... PART

Every tenth record is a copy of an earlier one, on any partition, under either version and in any of the framings: as a
producer writes it that was changed between its tries. The second header tells the check which ID it is. PART has the
order: the value, or the key; then the value is one order for all, under the other version. REGISTRY is the address of
a registry that speaks Confluent's API, or for azure a folder, into which the schemas go.
"""

import os
import random
import struct
import sys
import uuid

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REGISTRY, BROKERS, TOPIC, PARTITIONS, FORMAT, RECORDS, FRAMINGS, PART = sys.argv[1:9]

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


def apicurio_header(payload, context, schema):
    """Names the schema as Apicurio's serializers do: Confluent's header has a GUID, and Apicurio's registry none."""
    context.headers.append(("apicurio.value.contentId", struct.pack(">q", schema.id)))
    context.headers.append(("apicurio.value.encoding", b"BINARY"))
    return payload


PLACES = {"number": {}, "guid": {"schema.id.serializer": header_schema_id_serializer},
          "apicurio_header": {"schema.id.serializer": apicurio_header}}

ADDED = {"avro": '{"name": "channel", "type": "string", "default": "web"},',
         "json_schema": '"channel": {"type": "string"},'}


class Folder:
    """In the place of a client of Azure's service: the encoder registers schemas with it."""

    class Registered:
        def __init__(self, id):
            self.id = id

    def register_schema(self, group_name, name, definition, format, **_):
        id = uuid.uuid5(uuid.NAMESPACE_OID, definition).hex
        with open(os.path.join(REGISTRY, id), "w") as file:
            file.write(definition)
        return self.Registered(id)


def azure():
    from azure.schemaregistry.encoder.avroencoder import AvroEncoder

    encoder = AvroEncoder(client=Folder(), group_name=TOPIC, auto_register=True)

    def write(schema):
        def one(order, headers):
            message = encoder.encode(order, schema=schema)
            headers.append(("content-type", message["content_type"]))
            return message["content"]
        return one
    return [write(AVRO % fields) for fields in ("", ADDED["avro"])]


def serializers(framing, part):
    """For each version of the schema, what makes bytes of an order and adds headers."""
    if framing == "azure":
        return azure()
    registry = SchemaRegistryClient({"url": REGISTRY})
    place = PLACES[framing]
    classes = [dict, dict]
    if FORMAT == "avro":
        all = [AvroSerializer(registry, AVRO % fields, conf=place) for fields in ("", ADDED[FORMAT])]
    elif FORMAT == "json_schema":
        # It would check the schema again for each record, which takes longer than all the rest.
        place = place | {"validate": False}
        all = [JSONSerializer(JSON % fields, registry, conf=place) for fields in ("", ADDED[FORMAT])]
    else:
        classes = [message(1), message(2)]
        all = [ProtobufSerializer(c, registry, conf=place) for c in classes]
    return [lambda order, headers, s=s, c=c: s(c(**order), SerializationContext(TOPIC, part, headers))
            for s, c in zip(all, classes)]


def order_of(number, id, version):
    order = {"customer": f"customer-{number % 1000}", "order": {"id": id, "lines": [1, number]}}
    return order | {"channel": "shop"} if version == 1 else order


def main():
    chance = random.Random(7)
    values = [serializers(framing, MessageField.VALUE) for framing in FRAMINGS.split(",")]
    keys = [serializers(framing, MessageField.KEY) for framing in FRAMINGS.split(",")] if PART == "key" else []
    producer = Producer({"bootstrap.servers": BROKERS, "queue.buffering.max.messages": 200_000})
    failed = []
    orders = 0
    for record in range(int(RECORDS)):
        number = orders
        if record % 10 == 9:
            number = chance.randrange(orders)
        else:
            orders += 1
        id = f"0a12c11d-71fa-4a2d-a02e-{number:012x}"
        version, framing = chance.randrange(2), chance.randrange(len(values))
        order = order_of(number, id, version)
        headers = [("trace", str(record)), ("message-id", id)]
        key = order["customer"]
        if PART == "key":
            key = keys[framing][version](order, headers)
            version = 1 - version
            order = order_of(0, str(uuid.UUID(int=0)), version)
        producer.produce(
            TOPIC, value=values[framing][version](order, headers), key=key,
            partition=chance.randrange(int(PARTITIONS)), headers=headers,
            on_delivery=lambda error, _: error and failed.append(error))
        producer.poll(0)
    if producer.flush(60):
        sys.exit("some records are not written after a minute")
    if failed:
        sys.exit(f"{len(failed)} records were not written: {failed[0]}")


main()
