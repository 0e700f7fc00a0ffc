import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

import com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter;
import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;

/**
 * Writes the changes of a database to a topic, as an embedded Debezium reads them and AWS's converter for Kafka Connect
 * writes keys and values.
 *
 * <p>usage: Changes.java REGISTRY BROKERS TOPIC PARTITIONS POSTGRES FOLDER ROWS COMPRESSION begin|again
 *
 * <p>begin takes a snapshot, and then sends what is done to the tables. again goes on where the connector was before
 * that, and sends it once more. The header change says which change a record is, by the place that the database gave
 * it, and tells a tombstone.
 */
public class Changes {
	final String topic, registry, compression;
	final int partitions;
	final Converter keys, values;
	final Properties connector = new Properties();
	final KafkaProducer<byte[], byte[]> producer;
	final Path offsets;

	Changes(String[] args) {
		registry = args[0];
		topic = args[2];
		partitions = Integer.parseInt(args[3]);
		compression = args[7];
		offsets = Path.of(args[5], "offsets");
		keys = converter(true);
		values = converter(false);
		producer = new KafkaProducer<>(Map.of("bootstrap.servers", args[1], "linger.ms", 5, "acks", "all"),
			new ByteArraySerializer(), new ByteArraySerializer());
		String[] at = args[4].split(":");
		connector.putAll(Map.ofEntries(Map.entry("name", "shop"),
			Map.entry("connector.class", "io.debezium.connector.postgresql.PostgresConnector"),
			Map.entry("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore"),
			Map.entry("offset.storage.file.filename", offsets.toString()), Map.entry("offset.flush.interval.ms", "100"),
			Map.entry("flush.lsn.source", "false"), // the database keeps what an older offset asks for
			Map.entry("database.hostname", at[0]), Map.entry("database.port", at[1]), Map.entry("database.user", "postgres"),
			Map.entry("database.password", "none"), Map.entry("database.dbname", "postgres"),
			Map.entry("topic.prefix", "shop"), Map.entry("plugin.name", "pgoutput"),
			Map.entry("provide.transaction.metadata", "true"), Map.entry("table.include.list", "public.orders,public.twins")));
	}

	Converter converter(boolean ofKeys) {
		Converter converter = new AWSKafkaAvroConverter();
		converter.configure(Map.of("endpoint", registry, "region", "eu-central-1", "schemaAutoRegistrationEnabled", "true",
			"avroRecordType", "GENERIC_RECORD", "compatibility", "NONE", "compression", compression), ofKeys);
		return converter;
	}

	public static void main(String[] args) throws Exception {
		Changes changes = new Changes(args);
		int rows = Integer.parseInt(args[6]);
		int all = 12 + 3 * rows;
		Path before = Path.of(args[5], "before");
		try (Connection database = DriverManager.getConnection("jdbc:postgresql://" + args[4] + "/postgres", "postgres", "");
				Statement sql = database.createStatement()) {
			if (args[8].equals("begin")) {
				for (String statement : List.of("CREATE TABLE orders (id bigint PRIMARY KEY, state text, total numeric(9,2))",
						"ALTER TABLE orders REPLICA IDENTITY FULL", "CREATE TABLE twins (a int, b text)",
						"ALTER TABLE twins REPLICA IDENTITY FULL",
						"INSERT INTO orders VALUES (1, 'new', 12.30), (2, 'new', 0.10), (3, 'new', 5)")) {
					sql.execute(statement);
				}
				changes.send(3, () -> { });
				Files.copy(changes.offsets, before);
			} else {
				Files.copy(before, changes.offsets, StandardCopyOption.REPLACE_EXISTING);
			}
			List<String> statements = new ArrayList<>();
			if (args[8].equals("begin")) {
				for (String state : List.of("paid", "new", "paid")) { // 3
					statements.add("UPDATE orders SET state = '" + state + "' WHERE id = 1");
				}
				statements.add("UPDATE orders SET id = 20 WHERE id = 2"); // 3: a deletion, a tombstone, a creation
				statements.add("DELETE FROM orders WHERE id = 3"); // 2
				statements.add("INSERT INTO twins VALUES (1, 'x'), (1, 'x')"); // 2
				statements.add("UPDATE twins SET b = 'y'"); // 2
				String of = "generate_series(100, " + (99 + rows) + ") i";
				statements.add("INSERT INTO orders SELECT i, 'new', i / 7.0 FROM " + of);
				statements.add("UPDATE orders SET state = 'paid' WHERE id >= 100");
				statements.add("UPDATE orders SET state = 'new' WHERE id >= 100");
			}
			changes.send(all, () -> {
				for (String statement : statements) {
					sql.execute(statement);
				}
			});
		}
		changes.producer.close();
		System.exit(0);
	}

	interface Task {
		void run() throws Exception;
	}

	/** Runs the connector until it has sent so many records. */
	void send(int records, Task meanwhile) throws Exception {
		CountDownLatch all = new CountDownLatch(records);
		var engine = DebeziumEngine.create(Connect.class).using(connector).notifying(
			(ChangeEvent<SourceRecord, SourceRecord> change) -> {
				if (write(change.value())) {
					all.countDown();
				}
			}).using((success, message, problem) -> {
				if (!success) {
					System.err.println(message + ": " + problem);
					Runtime.getRuntime().halt(1);
				}
			}).build();
		var thread = Executors.newSingleThreadExecutor();
		thread.execute(engine);
		meanwhile.run();
		if (!all.await(2, TimeUnit.MINUTES)) {
			throw new IllegalStateException(all.getCount() + " of " + records + " records did not come");
		}
		producer.flush();
		engine.close();
		thread.shutdown();
	}

	boolean write(SourceRecord record) {
		boolean change = record.value() == null
			|| record.valueSchema().name().endsWith(".Envelope");
		if (!change) {
			return false; // of a transaction
		}
		byte[] key = record.key() == null ? null : keys.fromConnectData(topic, record.keySchema(), record.key());
		byte[] value = record.value() == null ? null : values.fromConnectData(topic, record.valueSchema(), record.value());
		String is = "tombstone " + record.key();
		if (record.value() != null) {
			Struct of = (Struct) record.value(), source = of.getStruct("source");
			is = source.getInt64("lsn") + " " + of.getString("op") + " " + source.getString("table") + " " + record.key();
		}
		int partition = record.key() == null ? 0 : Math.floorMod(record.key().hashCode(), partitions);
		var out = new ProducerRecord<>(topic, partition, key, value);
		out.headers().add("change", is.getBytes(StandardCharsets.UTF_8));
		producer.send(out);
		return true;
	}
}
