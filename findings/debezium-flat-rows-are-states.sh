#!/usr/bin/env bash
# Debezium 3.6.1 (embedded, JSON) with ExtractNewRecordState as it comes, on PostgreSQL 15. A row goes b, bb, b, bb, and
# another row is deleted.
#
# One would guess: records of different changes differ somewhere, so that a hash of the record tells a change from its
# copy, and a deletion is a record without a value.
# Seen: of a change only the row is left. The first and the third update are the same key and the same value, byte for
# byte, and nothing but the order tells them apart; headers name the connector and its run, not the change. The value of
# the deletion is the text null, four bytes. Where an ID is to tell a copy from a state that came back, the transform
# must add the place of the change: add.fields=op,lsn.
#
# Needs bash, Java 17, Maven and the programs of PostgreSQL 15 (Debian: postgresql); as root, and a user postgres, or as
# any other user. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

port=39432
source "$(dirname "$0")/debezium-postgres.inc"
begin_database "CREATE TABLE orders (id int PRIMARY KEY, state text)" \
	"ALTER TABLE orders REPLICA IDENTITY FULL" "INSERT INTO orders VALUES (1, 'b'), (2, 'n')"

got=$(changes 2 6 "transforms=flat
transforms.flat.type=io.debezium.transforms.ExtractNewRecordState" \
	"UPDATE orders SET state = 'bb' WHERE id = 1" "UPDATE orders SET state = 'b' WHERE id = 1" \
	"UPDATE orders SET state = 'bb' WHERE id = 1" "DELETE FROM orders WHERE id = 2")
want='{"id":1} {"id":1,"state":"b"}
{"id":2} {"id":2,"state":"n"}
{"id":1} {"id":1,"state":"bb"}
{"id":1} {"id":1,"state":"b"}
{"id":1} {"id":1,"state":"bb"}
{"id":2} null'
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was: $want" >&2
	exit 1
fi
