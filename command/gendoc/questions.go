package main

// subject is a section of the document.
type subject struct {
	title, about string
	questions    []question
}

// question is what an operator asks, and the metric that answers.
type question struct{ metric, asks string }

var subjects = []subject{
	{"Records", "What comes in, what goes out, and whether kdedup keeps up.", []question{
		{"kdedup_records_total", "What became of the records?"},
		{"kdedup_verdicts_total", "What did the store say about them, whatever the mode and the " +
			"policies then made of it?"},
		{"kdedup_undeliverable_total", "Does the clean topic refuse records?"},
		{"kdedup_partition_held", "Does a partition wait at a record?"},
		{"kdedup_consumed_records_total", "Is every record that was consumed accounted for?"},
		{"kdedup_consumer_lag", "How much waits?"},
		{"kdedup_end_to_end_seconds", "How late are records on the clean topic?"},
		{"kdedup_batches_total", "Does work have to be done again?"},
		{"kdedup_records_in_flight", "What is in hand at this moment?"},
		{"kdedup_forward_duration_seconds", "Do the output topics slow it down?"},
		{"kdedup_commit_duration_seconds", "Do commits slow it down?"},
	}},
	{"Duplicates", "Where copies come from, and whether the TTL is right.\n\n" +
		"The age of a copy counts from the claim of the first one to the moment when the copy is " +
		"judged, as the TTL does. A lag makes copies older. A backlog makes them look younger " +
		"than in normal traffic: read the age of a day without one. Copies that come after the " +
		"TTL pass as new and are in no metric; the ages shortly before it tell how many there " +
		"may be.", []question{
		{"kdedup_duplicate_age_seconds", "Is the TTL right?"},
		{"kdedup_duplicates_near_ttl_total",
			"Do copies come so late that others may come too late?"},
		{"kdedup_forwards_late_total",
			"Did an outage use up claims, so that copies may pass after it?"},
		{"kdedup_ttl_seconds", "How long does a claim hold?"},
		{"kdedup_partition_duplicates_total", "Which partition do copies come from?"},
	}},
	{"Store", "Whether the store answers, and how fast.", []question{
		{"kdedup_store_up", "Does the store answer?"},
		{"kdedup_store_blocked", "Does a lane wait for the store at this moment?"},
		{"kdedup_claims_total", "How many IDs are claimed, and are they new?"},
		{"kdedup_claims_ambiguous_total", "How often does the store leave it open who owns an ID?"},
		{"kdedup_claim_retries_total", "How often has it to be asked again?"},
		{"kdedup_claim_duration_seconds", "How long does a lane wait for the claims of a batch?"},
		{"kdedup_store_call_duration_seconds", "How fast is the store itself?"},
		{"kdedup_store_claims_in_flight", "How much is it asked at a time?"},
		{"kdedup_store_errors_total", "Which calls fail?"},
		{"kdedup_embedded_disk_bytes", "Embedded store: how large is it?"},
		{"kdedup_embedded_read_amplification", "Embedded store: does the disk keep up?"},
		{"kdedup_claim_log_reading", "Claim log: can it be read?"},
		{"kdedup_claim_log_unread_blocks", "Claim log: how long until lanes claim?"},
		{"kdedup_claim_log_index_rebuilt_total", "Claim log: did the log lose something, or " +
			"the index?"},
		{"kdedup_claim_log_skewed_blocks_total", "Claim log: is a clock wrong?"},
		{"kdedup_claim_log_index_bytes", "Claim log: how large is the index?"},
		{"kdedup_claim_log_kept_shards", "Claim log: which part does this process keep?"},
		{"kdedup_claim_log_keeper_requests_total", "Claim log: do the other keepers answer?"},
		{"kdedup_claim_log_hedged_total", "Claim log: is a keeper slow?"},
		{"kdedup_claim_log_step_duration_seconds", "Claim log: which step of a claim takes the " +
			"time?"},
		{"kdedup_cassandra_requests_total", "Cassandra: how many statements do the claims take?"},
		{"kdedup_cassandra_request_duration_seconds", "Cassandra: how long does a statement take?"},
		{"kdedup_cassandra_requests_in_flight", "Cassandra: how many statements are under way?"},
		{"kdedup_cassandra_requests_limit", "Cassandra: how many may be?"},
		{"kdedup_cassandra_overloads_total", "Cassandra: is it overloaded?"},
		{"kdedup_redis_pipeline_duration_seconds",
			"Redis: how long does a pipeline of claims take?"},
		{"kdedup_redis_failures_total", "Redis: what leaves claims open?"},
		{"kdedup_postgres_statement_duration_seconds",
			"PostgreSQL: how long does a statement take?"},
		{"kdedup_postgres_connections_in_use", "PostgreSQL: how many connections are busy?"},
		{"kdedup_postgres_connections_limit", "PostgreSQL: how many may be?"},
		{"kdedup_postgres_retries_total",
			"PostgreSQL: does somebody else stand in the way of claims?"},
		{"kdedup_postgres_expired_deleted_total", "PostgreSQL: are expired claims deleted?"},
		{"kdedup_postgres_sweep_lag_seconds", "PostgreSQL: does that keep up?"},
		{"kdedup_postgres_sweep_errors_total", "PostgreSQL: does it fail?"},
	}},
	{"Lanes and the consumer group", "Whether everybody works, and what stands in the way.",
		[]question{
			{"kdedup_lane_ready", "Is every lane at work?"},
			{"kdedup_lane_up", "Does the lane have a session?"},
			{"kdedup_input_open_transaction_records",
				"Do records wait behind a producer's open transaction?"},
			{"kdedup_input_open_transaction_seconds", "For how long do they?"},
			{"kdedup_blocked_seconds_total", "What do lanes wait for?"},
			{"kdedup_lane_failures_total", "Why do sessions end?"},
			{"kdedup_rebalances_total", "Do partitions move?"},
			{"kdedup_rewinds_total", "Did somebody set offsets back?"},
			{"kdedup_batch_limit_bytes",
				"Are the brokers too slow for batches as large as configured?"},
			{"kdedup_input_data_loss_total", "Did the input lose records that were consumed?"},
			{"kdedup_input_skipped_offsets_total", "How much of the input is not read on purpose?"},
		}},
	{"Process", "What runs, and what it reaches.", []question{
		{"kdedup_build_info", "Which version runs?"},
		{"kdedup_started", "Does a start wait for Kafka or the store?"},
		{"kdedup_topics_waiting", "Do topics of a pattern have no pipeline?"},
		{"kdedup_kafka_cluster_up", "Which of two clusters is away?"},
		{"kdedup_kafka_cluster_answer_seconds", "Which of two clusters is slow?"},
		{"kdedup_config_info", "Do all processes have the same configuration?"},
		{"kdedup_config_last_reload_successful",
			"Is the last change of the configuration in force?"},
		{"kdedup_config_last_reload_success_timestamp_seconds",
			"Since when is the configuration in force?"},
		{"kdedup_trace_spans_total", "Does the collector get all spans?"},
		{"kdedup_metric_exports_total", "Does the collector get the metrics?"},
		{"kdedup_log_lines_dropped_total", "Does the log lack lines?"},
	}},
	{"API", "What programs in other languages ask, see [api.md](api.md): of `kdedup serve`, and of " +
		"`kdedup run` with `api.scopes`.",
		[]question{
			{"kdedup_api_up", "Does the API answer?"},
			{"kdedup_api_request_duration_seconds",
				"How many requests fail, and how slow are they?"},
			{"kdedup_api_verdicts_total", "How many messages are copies?"},
			{"kdedup_api_begins_total", "How many keys are new, repeated or held by others?"},
			{"kdedup_api_requests", "Do requests wait for the store?"},
			{"kdedup_api_refused_total", "Do callers lack credentials, or are there too many?"},
		}},
	{"Kafka client", "One client for each lane, `<consumer_group>-<instance>-<lane>`; `node_id` " +
		"is the broker, `seed_0` and so on an address of " +
		"`kafka.brokers` before the broker behind it is known. With `kafka.output` a lane has a " +
		"second client, `…-input` or `…-output`, and all series have the label `cluster`, " +
		"`input` or `output`.", []question{
		{"kdedup_kafka_client_request_duration_e2e_seconds", "How fast do the brokers answer?"},
		{"kdedup_kafka_client_request_throttled_seconds", "Do quotas slow it down?"},
		{"kdedup_kafka_client_fetch_records_total",
			"How many records are read, also those that are read again?"},
		{"kdedup_kafka_client_fetch_uncompressed_bytes_total", "How many bytes are read?"},
		{"kdedup_kafka_client_fetch_compressed_bytes_total",
			"How many bytes are read from the network?"},
		{"kdedup_kafka_client_produce_records_total",
			"How many records are written, also in transactions that are aborted?"},
		{"kdedup_kafka_client_produce_uncompressed_bytes_total", "How many bytes are written?"},
		{"kdedup_kafka_client_produce_compressed_bytes_total",
			"How many bytes do the topics grow by, with each replica?"},
		{"kdedup_kafka_client_buffered_fetch_bytes", "How much is fetched ahead?"},
		{"kdedup_kafka_client_buffered_produce_bytes", "How much waits to be produced?"},
		{"kdedup_kafka_client_connects_total", "How often are connections opened?"},
		{"kdedup_kafka_client_connect_errors_total", "Which broker cannot be reached?"},
		{"kdedup_kafka_client_disconnects_total", "How often are connections closed?"},
		{"kdedup_kafka_client_read_errors_total", "Which broker's answers fail?"},
		{"kdedup_kafka_client_write_errors_total", "Which broker's requests fail?"},
		{"kdedup_kafka_client_read_bytes_total", "How much comes from each broker?"},
		{"kdedup_kafka_client_write_bytes_total", "How much goes to each broker?"},
	}},
}

// told are families of which the question and the label values tell enough, as those of the Kafka
// client: their help is in /metrics.
var told = []string{
	"kdedup_ttl_seconds", "kdedup_records_in_flight", "kdedup_store_blocked",
	"kdedup_claim_retries_total", "kdedup_store_claims_in_flight", "kdedup_embedded_disk_bytes",
	"kdedup_claim_log_unread_blocks", "kdedup_claim_log_index_bytes",
	"kdedup_cassandra_request_duration_seconds", "kdedup_cassandra_requests_in_flight",
	"kdedup_cassandra_requests_limit", "kdedup_redis_pipeline_duration_seconds",
	"kdedup_postgres_connections_in_use", "kdedup_postgres_connections_limit",
	"kdedup_build_info", "kdedup_api_verdicts_total", "kdedup_api_requests",
	"kdedup_claims_ambiguous_total", "kdedup_rebalances_total", "kdedup_log_lines_dropped_total",
	"kdedup_verdicts_total", "kdedup_undeliverable_total", "kdedup_batches_total",
	"kdedup_claims_total", "kdedup_claim_duration_seconds", "kdedup_cassandra_requests_total",
	"kdedup_postgres_expired_deleted_total", "kdedup_postgres_sweep_errors_total",
	"kdedup_lane_up", "kdedup_lane_failures_total", "kdedup_trace_spans_total",
	"kdedup_metric_exports_total", "kdedup_api_up",
	"kdedup_records_total", "kdedup_forward_duration_seconds", "kdedup_commit_duration_seconds",
	"kdedup_store_call_duration_seconds", "kdedup_store_errors_total", "kdedup_claim_log_reading",
	"kdedup_claim_log_kept_shards", "kdedup_claim_log_hedged_total",
	"kdedup_postgres_statement_duration_seconds", "kdedup_rewinds_total",
	"kdedup_input_data_loss_total", "kdedup_started", "kdedup_topics_waiting",
	"kdedup_kafka_cluster_answer_seconds", "kdedup_config_last_reload_successful",
	"kdedup_config_last_reload_success_timestamp_seconds",
}

// neverFilled are families that the client's plug-in registers in any case; with our options it
// observes nothing for them, so they are in no scrape.
var neverFilled = []string{
	"kdedup_kafka_client_fetch_batches_total", "kdedup_kafka_client_produce_batches_total",
	"kdedup_kafka_client_read_wait_seconds", "kdedup_kafka_client_read_time_seconds",
	"kdedup_kafka_client_write_wait_seconds", "kdedup_kafka_client_write_time_seconds",
}
