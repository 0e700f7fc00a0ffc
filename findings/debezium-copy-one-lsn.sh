#!/usr/bin/env bash
# Debezium 3.6.1 (embedded, JSON) on PostgreSQL 15. Two equal rows are written into a table without a primary key, by one
# INSERT, and then two by one COPY.
#
# One would guess: each row has a place of its own in the log, source.lsn, and so it is with INSERT.
# Seen: COPY writes many rows into one record of the log. All of them have the same lsn, and two equal ones are the same
# change in all that a restart leaves as it was; only transaction.total_order counts them, and begins with 1 again where
# the connector goes on within a transaction.
#
# Needs bash, Java 17, Maven and the programs of PostgreSQL 15 (Debian: postgresql); as root, and a user postgres, or as
# any other user. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

port=39442
source "$(dirname "$0")/debezium-postgres.inc"
begin_database "CREATE TABLE twins (a int, b text)" "INSERT INTO twins VALUES (0, 'first')"

got=$(changes 1 5 "" "INSERT INTO twins VALUES (1, 'x'), (1, 'x')" "COPY twins FROM STDIN;
1	x
1	x
\\." | sed -E 's/^null .*"after":(\{[^}]*\}).*"lsn":([0-9]+).*"op":"(.)".*/\3 \1 \2/' |
	awk '{ if ($3 == last) place = "the place of the last one"; else place = "a place of its own"; last = $3; print $1, $2, place }')
want='r {"a":0,"b":"first"} a place of its own
c {"a":1,"b":"x"} a place of its own
c {"a":1,"b":"x"} a place of its own
c {"a":1,"b":"x"} a place of its own
c {"a":1,"b":"x"} the place of the last one'
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was: $want" >&2
	exit 1
fi
