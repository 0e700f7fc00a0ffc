import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.Optional;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.CheckpointingMode;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.config.ExecutionConfigOptions;

/**
 * Flink SQL in one JVM: the deduplication of its manual, which keeps the first row of each ID by
 * {@code ROW_NUMBER()} over the processing time, with a sink that is exactly once. Copies of an ID meet in
 * one of two tasks, so the clean topic is not in the order of the input. A start goes on at the newest
 * checkpoint that it finds.
 *
 * <p>Arguments: brokers, group, input, output, directory of the state, state backend (hashmap or rocksdb).
 */
public final class Flink {
  private static final Duration TTL = Duration.ofDays(7);
  private static final int TASKS = 2;

  public static void main(String[] args) throws Exception {
    var state = Path.of(args[4]);
    Files.createDirectories(state.resolve("tmp"));
    var settings = EnvironmentSettings.newInstance()
        .inStreamingMode()
        .withConfiguration(configuration(state, args[5]))
        .build();
    var tables = TableEnvironment.create(settings);
    tables.executeSql(table("input", args[0], args[2], "arrived AS PROCTIME(),", """
          'properties.group.id' = '%s',
          'scan.startup.mode' = 'earliest-offset'
        """.formatted(args[1])));
    tables.executeSql(table("output", args[0], args[3], "", """
          'sink.delivery-guarantee' = 'exactly-once',
          'sink.transactional-id-prefix' = '%s',
          'properties.transaction.timeout.ms' = '600000'
        """.formatted(args[1])));
    tables.executeSql("""
        INSERT INTO output SELECT content, headers FROM (
          SELECT content, headers,
            ROW_NUMBER() OVER (PARTITION BY headers['message-id'] ORDER BY arrived ASC) AS n
          FROM input)
        WHERE n = 1
        """).await();
  }

  private static String table(String name, String brokers, String topic, String columns, String options) {
    return """
        CREATE TABLE %s (%s content BYTES, headers MAP<STRING, BYTES> METADATA) WITH (
          'connector' = 'kafka', 'format' = 'raw',
          'properties.bootstrap.servers' = '%s', 'topic' = '%s',
          %s)
        """.formatted(name, columns, brokers, topic, options);
  }

  private static Configuration configuration(Path state, String backend) throws IOException {
    var c = new Configuration();
    c.set(CoreOptions.DEFAULT_PARALLELISM, TASKS);
    c.set(CoreOptions.TMP_DIRS, state.resolve("tmp").toString());
    c.set(PipelineOptions.OBJECT_REUSE, true);
    c.set(ExecutionConfigOptions.IDLE_STATE_RETENTION, TTL);
    c.set(StateBackendOptions.STATE_BACKEND, backend);
    c.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(512));
    c.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofSeconds(1));
    c.set(CheckpointingOptions.CHECKPOINTING_CONSISTENCY_MODE, CheckpointingMode.EXACTLY_ONCE);
    c.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
    c.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
    c.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, state.toUri().toString());
    c.set(CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
        ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
    newest(state).ifPresent(found -> c.set(StateRecoveryOptions.SAVEPOINT_PATH, found.toUri().toString()));
    return c;
  }

  /** The newest checkpoint that is whole: its file of metadata is written last. */
  private static Optional<Path> newest(Path state) throws IOException {
    if (!Files.isDirectory(state)) {
      return Optional.empty();
    }
    try (var files = Files.walk(state, 3)) {
      return files.filter(file -> file.endsWith("_metadata"))
          .max(Comparator.comparingLong(file -> file.toFile().lastModified()))
          .map(Path::getParent);
    }
  }
}
