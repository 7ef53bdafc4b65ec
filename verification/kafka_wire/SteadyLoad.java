import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;

/**
 * An idempotent producer with a steady rate, and a consumer of all records. The arguments are bootstrap servers, topic,
 * number of partitions, and records per second. Record n goes to partition n modulo their number. Each input line has a
 * reply line: for "count" and "stop" the number of sent, acknowledged and failed records, for "consume" the number of
 * consumed records. Files in the working folder: acknowledged.csv and consumed.csv (number,partition,offset), and
 * failed.csv (number,error).
 */
public final class SteadyLoad {
    private static final int TIMEOUT_MS = 240_000;

    private final String bootstrap;
    private final String topic;
    private final int partitions;
    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private volatile long sent;
    private volatile boolean stopped;

    private SteadyLoad(String bootstrap, String topic, int partitions) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.partitions = partitions;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        System.setOut(System.err);
        SteadyLoad load = new SteadyLoad(args[0], args[1], Integer.parseInt(args[2]));
        Thread producing = new Thread(() -> load.produce(Integer.parseInt(args[3])));
        producing.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            switch (line) {
                case "stop":
                    load.stopped = true;
                    producing.join();
                    out.println(load.count());
                    break;
                case "consume":
                    out.println(load.consume());
                    break;
                default:
                    out.println(load.count());
            }
        }
        System.exit(0);
    }

    private String count() {
        return sent + " " + acknowledged + " " + failed;
    }

    private void produce(int rate) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "acks", "all", "enable.idempotence", true, "linger.ms", 100,
            "request.timeout.ms", 10_000, "delivery.timeout.ms", TIMEOUT_MS, "max.block.ms", TIMEOUT_MS,
            "metadata.max.age.ms", 5_000);
        try (PrintWriter acknowledgements = new PrintWriter("acknowledged.csv");
             PrintWriter failures = new PrintWriter("failed.csv")) {
            try (KafkaProducer<Void, Long> producer =
                    new KafkaProducer<>(settings, (name, data) -> null, new LongSerializer())) {
                long start = System.nanoTime();
                while (!stopped) {
                    // After a pause, catch up in steps of the records of a tenth of a second.
                    long due = (System.nanoTime() - start) * rate / 1_000_000_000L;
                    for (long end = Math.min(due, sent + rate / 10); sent < end && !stopped; sent++) {
                        send(producer, sent, acknowledgements, failures);
                    }
                    Thread.sleep(20);
                }
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
            } // Closing the producer waits for records in flight. Their callbacks run in one thread.
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private void send(
            KafkaProducer<Void, Long> producer, long number, PrintWriter acknowledgements, PrintWriter failures) {
        producer.send(new ProducerRecord<>(topic, (int) (number % partitions), null, number), (metadata, error) -> {
            if (error == null) {
                acknowledgements.println(number + "," + metadata.partition() + "," + metadata.offset());
                acknowledged.incrementAndGet();
            } else {
                failures.println(number + "," + error);
                failed.incrementAndGet();
            }
        });
    }

    /** All records of the topic, from the first offset to the end of each partition. */
    private long consume() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        long count = 0;
        try (PrintWriter consumed = new PrintWriter("consumed.csv");
             KafkaConsumer<byte[], Long> consumer = new KafkaConsumer<>(
                 settings, new org.apache.kafka.common.serialization.ByteArrayDeserializer(), new LongDeserializer())) {
            List<TopicPartition> all = IntStream.range(0, partitions)
                .mapToObj(partition -> new TopicPartition(topic, partition)).toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Duration timeout = Duration.ofMillis(TIMEOUT_MS);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all, timeout);
            long deadline = System.nanoTime() + timeout.toNanos();
            while (System.nanoTime() < deadline && all.stream()
                    .anyMatch(partition -> consumer.position(partition, timeout) < ends.get(partition))) {
                for (ConsumerRecord<byte[], Long> record : consumer.poll(Duration.ofMillis(200))) {
                    consumed.println(record.value() + "," + record.partition() + "," + record.offset());
                    count++;
                }
            }
        }
        return count;
    }
}
