import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Kafka Streams with exactly_once_v2: copies of an ID meet in one partition of a repartition topic, where a
 * window store in RocksDB knows what was seen. The clean topic is not in the order of the input.
 *
 * <p>Arguments: brokers, application ID, input, output, directory of the state, threads, partitions.
 */
public final class Streams {
  private static final Duration TTL = Duration.ofDays(7);
  private static final String SEEN = "seen";

  public static void main(String[] args) throws Exception {
    var streams = new KafkaStreams(topology(args[2], args[3], Integer.parseInt(args[6])), configuration(args));
    var ended = new CountDownLatch(1);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      streams.close();
      ended.countDown();
    }));
    streams.start();
    ended.await();
  }

  private static Properties configuration(String[] args) {
    var p = new Properties();
    p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
    p.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
    p.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, args[5]);
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    p.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    p.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    p.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, 6_000);
    p.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, 2_000);
    return p;
  }

  private static Topology topology(String input, String output, int partitions) {
    var bytes = Serdes.ByteArray();
    var builder = new StreamsBuilder();
    builder.addStateStore(Stores.windowStoreBuilder(
        Stores.persistentWindowStore(SEEN, TTL, TTL, false), bytes, Serdes.Long()));
    builder.stream(input, Consumed.with(bytes, bytes))
        .process(KeyByID::new)
        .repartition(Repartitioned.with(bytes, bytes).withName("by-id").withNumberOfPartitions(partitions))
        .process(FirstOnly::new, SEEN)
        .to(output, Produced.with(bytes, bytes));
    return builder.build();
  }

  private static final class KeyByID extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    @Override
    public void process(Record<byte[], byte[]> record) {
      context().forward(record.withKey(record.headers().lastHeader("message-id").value()));
    }
  }

  private static final class FirstOnly extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    private WindowStore<byte[], Long> seen;

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
      super.init(context);
      seen = context.getStateStore(SEEN);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      long at = record.timestamp();
      try (var earlier = seen.fetch(record.key(), at - TTL.toMillis(), at + TTL.toMillis())) {
        if (earlier.hasNext()) {
          return;
        }
      }
      seen.put(record.key(), at, at);
      context().forward(record.withKey(null));
    }
  }
}
