import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;

import com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistryKafkaSerializer;
import io.apicurio.registry.serde.avro.AvroKafkaSerializer;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Writes orders to a topic with serializers of Java, under two versions of their schema.
 *
 * <p>usage: Produce.java REGISTRY BROKERS TOPIC PARTITIONS avro RECORDS FRAMING,... PART
 *
 * <p>Every tenth record is a copy of an earlier one, on any partition, under either version and in any of the
 * framings: as a producer writes it that was changed between its tries. The second header tells the check which ID it
 * is. PART has the order: the value, or the key; then the value is one order for all, under the other version.
 * REGISTRY is the address of an Apicurio Registry, of an AWS Glue, or for single_object a folder, into which the
 * schemas go.
 */
public class Produce {
	static final String AVRO = """
		{"type": "record", "name": "Order", "namespace": "shop", "fields": [
		  %s
		  {"name": "customer", "type": "string"},
		  {"name": "order", "type": {"type": "record", "name": "Head", "fields": [
		    {"name": "id", "type": ["null", {"type": "string", "logicalType": "uuid"}]},
		    {"name": "lines", "type": {"type": "array", "items": "int"}}]}}]}""";

	interface Writer {
		byte[] write(RecordHeaders headers, GenericRecord order) throws Exception;
	}

	public static void main(String[] args) throws Exception {
		String registry = args[0], brokers = args[1], topic = args[2];
		int partitions = Integer.parseInt(args[3]), records = Integer.parseInt(args[5]);
		List<Schema> versions = List.of(new Schema.Parser().parse(AVRO.formatted("")), new Schema.Parser().parse(
			AVRO.formatted("{\"name\": \"channel\", \"type\": \"string\", \"default\": \"web\"},")));
		boolean ofKey = args[7].equals("key");
		List<List<Writer>> values = new ArrayList<>(), keys = new ArrayList<>(); // of each version
		for (String framing : args[6].split(",")) {
			values.add(writers(framing, registry, topic, versions, false));
			keys.add(ofKey ? writers(framing, registry, topic, versions, true) : null);
		}
		Random chance = new Random(7);
		AtomicReference<Exception> failed = new AtomicReference<>();
		Map<String, Object> conf = Map.of("bootstrap.servers", brokers, "linger.ms", 5);
		try (var producer = new KafkaProducer<>(conf, new ByteArraySerializer(), new ByteArraySerializer())) {
			int orders = 0;
			for (int record = 0; record < records; record++) {
				int number = record % 10 == 9 ? chance.nextInt(orders) : orders++;
				String id = "0a12c11d-71fa-4a2d-a02e-%012x".formatted(number);
				int version = chance.nextInt(2), framing = chance.nextInt(values.size());
				RecordHeaders headers = new RecordHeaders();
				headers.add("trace", Integer.toString(record).getBytes());
				headers.add("message-id", id.getBytes());
				GenericRecord order = order(versions.get(version), id, number);
				byte[] key = "customer-%d".formatted(number % 1000).getBytes();
				if (ofKey) {
					key = keys.get(framing).get(version).write(headers, order);
					version = 1 - version;
					order = order(versions.get(version), new UUID(0, 0).toString(), 0);
				}
				byte[] value = values.get(framing).get(version).write(headers, order);
				producer.send(
					new ProducerRecord<>(topic, chance.nextInt(partitions), null, key, value, headers), (__, problem) -> {
						if (problem != null) {
							failed.set(problem);
						}
					});
			}
		}
		if (failed.get() != null) {
			throw failed.get();
		}
		System.exit(0); // serializers leave threads behind
	}

	static GenericRecord order(Schema schema, String id, int number) {
		GenericRecord head = new GenericData.Record(schema.getField("order").schema());
		head.put("id", id);
		head.put("lines", List.of(1, number));
		GenericRecord order = new GenericData.Record(schema);
		order.put("customer", "customer-%d".formatted(number % 1000));
		order.put("order", head);
		if (schema.getField("channel") != null) {
			order.put("channel", "shop");
		}
		return order;
	}

	/** For each version of the schema, what makes bytes of an order. */
	static List<Writer> writers(String framing, String registry, String topic, List<Schema> versions, boolean ofKey)
			throws Exception {
		List<Writer> writers = new ArrayList<>();
		for (int version = 0; version < versions.size(); version++) {
			Schema schema = versions.get(version);
			if (framing.equals("single_object")) {
				Files.writeString(Path.of(registry, "order-" + version + ".avsc"), schema.toString());
				var encoder = new BinaryMessageEncoder<GenericRecord>(GenericData.get(), schema);
				writers.add((headers, order) -> bytes(encoder.encode(order)));
				continue;
			}
			Serializer<Object> serializer = framing.startsWith("glue") ? glue(framing, registry, topic, ofKey)
				: apicurio(framing, registry, topic, schema, Integer.toString(version + 1), ofKey);
			writers.add((headers, order) -> serializer.serialize(topic, headers, order));
		}
		return writers;
	}

	static byte[] bytes(ByteBuffer of) {
		byte[] all = new byte[of.remaining()];
		of.get(all);
		return all;
	}

	static Serializer<Object> glue(String framing, String registry, String topic, boolean ofKey) {
		return configured(new GlueSchemaRegistryKafkaSerializer(), Map.of("endpoint", registry,
			"region", "eu-central-1", "dataFormat", "AVRO", "schemaAutoRegistrationEnabled", true,
			"schemaName", ofKey ? topic + "-key" : topic, "avroRecordType", "GENERIC_RECORD", "compatibility", "NONE",
			"compression", framing.equals("glue_zlib") ? "ZLIB" : "NONE"), ofKey);
	}

	/**
	 * Registers the schema by one record, and goes on with the version that came of it: where the schema refers to
	 * another, as it makes one of the record in the record, the serializer would register it with every record.
	 */
	static Serializer<Object> apicurio(
			String framing, String registry, String topic, Schema schema, String version, boolean ofKey) {
		Map<String, Object> conf = new HashMap<>(Map.of("apicurio.registry.url", registry));
		switch (framing) {
			case "content_id" -> { } // as it comes
			case "global_id" -> conf.put("apicurio.registry.use-id", "globalId");
			case "global_id_8" -> {
				conf.put("apicurio.registry.use-id", "globalId");
				conf.put("apicurio.registry.id-handler", "io.apicurio.registry.serde.Legacy8ByteIdHandler");
			}
			case "headers" -> conf.put("apicurio.registry.headers.enabled", true);
			default -> throw new IllegalArgumentException("no framing " + framing);
		}
		Map<String, Object> first = new HashMap<>(conf);
		first.putAll(Map.of("apicurio.registry.auto-register", true,
			"apicurio.registry.auto-register.if-exists", "FIND_OR_CREATE_VERSION"));
		configured(new AvroKafkaSerializer<>(), first, ofKey).serialize(topic, new RecordHeaders(), order(schema, "", 0));
		conf.put("apicurio.registry.artifact.version", version);
		return configured(new AvroKafkaSerializer<>(), conf, ofKey);
	}

	@SuppressWarnings({"unchecked", "rawtypes"})
	static Serializer<Object> configured(Serializer serializer, Map<String, Object> conf, boolean ofKey) {
		serializer.configure(conf, ofKey);
		return serializer;
	}
}
