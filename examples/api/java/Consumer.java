import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.listener.CommonErrorHandler;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Sends one mail for each order of a topic, with Spring Kafka. The claim comes before the effect,
 * and the commit of the offsets after it: Spring commits when the listener has returned.
 */
@SpringBootConfiguration
@EnableAutoConfiguration
public class Consumer {
  @KafkaListener(topics = "${TOPIC}", groupId = "${GROUP}", batch = "true")
  void mails(List<ConsumerRecord<String, String>> records) throws IOException {
    var verdicts = verdicts(records);
    for (int i = 0; i < records.size(); i++) {
      if (verdicts.get(i).equals("VERDICT_FIRST") || verdicts.get(i).equals("VERDICT_MINE")) {
        sendMail(records.get(i));
      }
    }
  }

  /** Asks which records are the first of their ID. An error tells nothing: ask the same again. */
  static List<String> verdicts(List<ConsumerRecord<String, String>> records) throws IOException {
    var messages = records.stream().map(r -> Map.of("id", r.key(), "place", Map.of("record",
        Map.of("topic", r.topic(), "partition", r.partition(), "offset", r.offset())))).toList();
    var answer = Kdedup.ask("ClaimService/Judge", Map.of("scope", "orders", "messages", messages));
    return answer.get("judgements").findValuesAsText("verdict");
  }

  /** The effect. After a crash it may come again, so whoever sends the mail is told the ID, too. */
  static void sendMail(ConsumerRecord<String, String> record) throws IOException {
    Kdedup.post(System.getenv("EFFECT"), Map.of("offset", record.offset()), record.key());
  }

  /** The default gives a batch up after ten attempts, and its messages would be lost. */
  @Bean
  CommonErrorHandler again() {
    return new DefaultErrorHandler(new FixedBackOff(1000, FixedBackOff.UNLIMITED_ATTEMPTS));
  }

  public static void main(String[] args) {
    var app = new SpringApplication(Consumer.class);
    app.setDefaultProperties(Map.of("spring.main.web-application-type", "none",
        "spring.kafka.bootstrap-servers", System.getenv("KAFKA"),
        "spring.kafka.consumer.auto-offset-reset", "earliest",
        "spring.kafka.consumer.properties.session.timeout.ms", "6000"));
    app.run(args);
  }
}
