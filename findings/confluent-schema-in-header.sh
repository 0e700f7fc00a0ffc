#!/usr/bin/env bash
# confluent-kafka 2.16.1 for Python, AvroSerializer with schema.id.serializer=header_schema_id_serializer, and as it comes.
#
# One would guess: a schema has one ID, four bytes that stand before the value, and a program that wants the schema of a
# record reads them there.
# Seen: with the header serializer nothing stands before the value, which is bare Avro. The header __value_schema_id has
# a 1 and the 16 bytes of another name of the schema, its GUID. No four bytes of the record lead to the schema, and the
# value may begin with a zero by chance.
#
# Needs bash and Python 3 with pip. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages \
	'confluent-kafka[avro,schemaregistry]==2.16.1' >/dev/null 2>&1
cat >write.py <<'PYTHON'
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

client = SchemaRegistryClient.new_client({"url": "mock://"})
schema = '{"type":"record","name":"Order","fields":[{"name":"note","type":"string"},{"name":"id","type":"string"}]}'
for conf in {}, {"schema.id.serializer": header_schema_id_serializer}:
    headers = []
    value = AvroSerializer(client, schema, conf=conf)(
        {"note": "", "id": "a-1"}, SerializationContext("orders", MessageField.VALUE, headers))
    print(value.hex(), *(f"{name} {len(text)} bytes, the first {text[0]}" for name, text in headers))
PYTHON
got=$(PYTHONPATH=packages python3 write.py)
want='00000000010006612d31
0006612d31 __value_schema_id 17 bytes, the first 1'
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was: $want" >&2
	exit 1
fi
