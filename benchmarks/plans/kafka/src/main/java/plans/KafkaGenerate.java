package plans;

import java.io.BufferedWriter;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/**
 * Writes what {@code kafka-reassign-partitions --generate} proposes for a cluster, by Kafka's own method.
 *
 * <p>Arguments: a folder with brokers.tsv and partitions.tsv, and the file for the proposed replicas. Prints the
 * processor time of the method in seconds.
 */
public final class KafkaGenerate {
  private KafkaGenerate() {}

  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    List<UsableBroker> brokers = new ArrayList<>();
    for (String line : Files.readAllLines(folder.resolve("brokers.tsv"))) {
      String[] fields = line.split("\t", -1);
      Optional<String> rack = fields[1].isEmpty() ? Optional.empty() : Optional.of(fields[1]);
      brokers.add(new UsableBroker(Integer.parseInt(fields[0]), rack, false));
    }
    Map<TopicPartition, List<Integer>> current = new HashMap<>();
    for (String line : Files.readAllLines(folder.resolve("partitions.tsv"))) {
      String[] fields = line.split("\t", -1);
      List<Integer> replicas = Arrays.stream(fields[2].split(",")).map(Integer::valueOf).toList();
      current.put(new TopicPartition(fields[0], Integer.parseInt(fields[1])), replicas);
    }
    Method calculate =
        ReassignPartitionsCommand.class.getDeclaredMethod("calculateAssignment", Map.class, List.class);
    calculate.setAccessible(true);
    var threads = ManagementFactory.getThreadMXBean();
    long start = threads.getCurrentThreadCpuTime();
    @SuppressWarnings("unchecked")
    var proposed = (Map<TopicPartition, List<Integer>>) calculate.invoke(null, current, brokers);
    double seconds = (threads.getCurrentThreadCpuTime() - start) / 1e9;
    try (BufferedWriter out = Files.newBufferedWriter(Path.of(args[1]))) {
      for (var entry : proposed.entrySet()) {
        String replicas = String.join(",", entry.getValue().stream().map(String::valueOf).toList());
        out.write(entry.getKey().topic() + "\t" + entry.getKey().partition() + "\t" + replicas + "\n");
      }
    }
    System.out.println(seconds);
  }
}
