import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Reads partition 0 of a topic: CLIENT BROKER TOPIC ISOLATION. Prints the version and each value. */
public class Reader {
  public static void main(String[] args) {
    System.out.println(AppInfoParser.getVersion());
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[1]);
    settings.put("auto.offset.reset", "earliest");
    if (args[3].equals("committed")) {
      settings.put("isolation.level", "read_committed");
    }
    TopicPartition partition = new TopicPartition(args[2], 0);
    try (var consumer =
        new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
      consumer.assign(List.of(partition));
      long until = System.nanoTime() + 10_000_000_000L; // what does not come by then never does
      while (System.nanoTime() < until) {
        for (var record : consumer.poll(Duration.ofSeconds(1))) {
          System.out.println('"' + String.valueOf(record.value()) + '"');
          if ("END".equals(record.value())) {
            return;
          }
        }
      }
    }
    System.err.println("nothing came for a while");
    System.exit(1);
  }
}
