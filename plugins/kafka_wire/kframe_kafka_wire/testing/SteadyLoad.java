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
 * One idempotent producer at a steady rate, then one consumer of all there is. Arguments: bootstrap addresses, topic,
 * number of partitions, records a second. Record n goes to partition n modulo their number. Each line of input is
 * answered by one line: "count" and "stop" by how many are sent, acknowledged and failed, "consume" by how many there
 * are. Files in the working folder: acknowledged.csv and consumed.csv (number,partition,offset), failed.csv (number,error).
 */
public final class SteadyLoad {
    private static final int PATIENCE_MS = 240_000;

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
            "request.timeout.ms", 10_000, "delivery.timeout.ms", PATIENCE_MS, "max.block.ms", PATIENCE_MS,
            "metadata.max.age.ms", 5_000);
        try (PrintWriter good = new PrintWriter("acknowledged.csv"); PrintWriter bad = new PrintWriter("failed.csv")) {
            try (KafkaProducer<Void, Long> producer =
                    new KafkaProducer<>(settings, (name, nothing) -> null, new LongSerializer())) {
                long begun = System.nanoTime();
                while (!stopped) {
                    // After a pause, catch up by the records of a tenth of a second at a time.
                    long due = (System.nanoTime() - begun) * rate / 1_000_000_000L;
                    for (long most = Math.min(due, sent + rate / 10); sent < most && !stopped; sent++) {
                        send(producer, sent, good, bad);
                    }
                    Thread.sleep(20);
                }
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
            } // closing the producer waits for what is under way; its callbacks run in one thread
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private void send(KafkaProducer<Void, Long> producer, long number, PrintWriter good, PrintWriter bad) {
        producer.send(new ProducerRecord<>(topic, (int) (number % partitions), null, number), (found, error) -> {
            if (error == null) {
                good.println(number + "," + found.partition() + "," + found.offset());
                acknowledged.incrementAndGet();
            } else {
                bad.println(number + "," + error);
                failed.incrementAndGet();
            }
        });
    }

    /** All records of the topic, from the first offset to the end of each partition. */
    private long consume() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        long count = 0;
        try (PrintWriter found = new PrintWriter("consumed.csv");
             KafkaConsumer<byte[], Long> consumer = new KafkaConsumer<>(
                 settings, new org.apache.kafka.common.serialization.ByteArrayDeserializer(), new LongDeserializer())) {
            List<TopicPartition> all = IntStream.range(0, partitions)
                .mapToObj(partition -> new TopicPartition(topic, partition)).toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Duration patience = Duration.ofMillis(PATIENCE_MS);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all, patience);
            long deadline = System.nanoTime() + patience.toNanos();
            while (System.nanoTime() < deadline
                    && all.stream().anyMatch(one -> consumer.position(one, patience) < ends.get(one))) {
                for (ConsumerRecord<byte[], Long> record : consumer.poll(Duration.ofMillis(200))) {
                    found.println(record.value() + "," + record.partition() + "," + record.offset());
                    count++;
                }
            }
        }
        return count;
    }
}
