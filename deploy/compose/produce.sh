#!/bin/sh
# Produces orders, about ten a second. Every tenth is sent twice, as by a producer that repeats after
# a timeout. Every hundredth is sent again with another amount: a conflict.
set -eu

run=$(date +%s) # so that a restart does not repeat the numbers of the last run

orders() {
	n=0
	while :; do
		n=$((n + 1))
		order "$n" "$((n % 90 + 10))"
		if [ $((n % 10)) -eq 0 ]; then order "$n" "$((n % 90 + 10))"; fi
		if [ $((n % 100)) -eq 0 ]; then order "$n" 0; fi
		sleep 0.1
	done
}

# order NUMBER AMOUNT prints headers, key and value, with tabs between them.
order() {
	printf 'message-id:%s-%s\tcustomer-%s\t{"order":"%s-%s","amount":%s}\n' \
		"$run" "$1" "$(($1 % 50))" "$run" "$1" "$2"
}

orders | /opt/kafka/bin/kafka-console-producer.sh --bootstrap-server kafka:9092 --topic orders \
	--reader-property parse.headers=true --reader-property parse.key=true
