import com.datastax.oss.driver.api.core.CqlSession;
import java.net.InetSocketAddress;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.kafka.KafkaConstants;
import org.apache.camel.main.Main;
import org.apache.camel.processor.idempotent.cassandra.CassandraIdempotentRepository;

/**
 * Apache Camel's idempotent consumer with its Cassandra repository: one conditional insert for each record, and
 * one record at a time for each consumer, so that partitions keep their order.
 *
 * <p>Arguments: brokers, group, input, output, host:port of Cassandra, keyspace, consumers.
 */
public final class Camel {
  private static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";

  public static void main(String[] args) throws Exception {
    String brokers = args[0], group = args[1], input = args[2], output = args[3], consumers = args[6];
    try (CqlSession session = connect(args[4], args[5])) {
      var repository = new CassandraIdempotentRepository(session);
      repository.setTtl(604_800);
      var main = new Main();
      main.configure().addRoutesBuilder(new RouteBuilder() {
        @Override
        public void configure() {
          from("kafka:" + input + "?brokers=" + brokers + "&groupId=" + group + "&autoOffsetReset=earliest"
              + "&consumersCount=" + consumers + "&isolationLevel=read_committed"
              + "&sessionTimeoutMs=6000&heartbeatIntervalMs=2000"
              + "&valueDeserializer=" + BYTES + "Deserializer")
              .idempotentConsumer(header("message-id").convertToString(), repository)
              .setHeader(KafkaConstants.PARTITION_KEY, header(KafkaConstants.PARTITION))
              .to("kafka:" + output + "?brokers=" + brokers + "&valueSerializer=" + BYTES + "Serializer");
        }
      });
      main.run();
    }
  }

  private static CqlSession connect(String address, String keyspace) {
    int colon = address.lastIndexOf(':');
    var session = CqlSession.builder()
        .addContactPoint(new InetSocketAddress(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1))))
        .withLocalDatacenter("datacenter1")
        .withKeyspace(keyspace)
        .build();
    // As Camel's manual has it.
    session.execute("CREATE TABLE IF NOT EXISTS CAMEL_IDEMPOTENT (KEY varchar, PRIMARY KEY (KEY))"
        + " WITH compaction = {'class': 'LeveledCompactionStrategy'} AND gc_grace_seconds = 86400");
    return session;
  }
}
