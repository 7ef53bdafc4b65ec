import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import kafka.zk.ConfigEntityZNode;
import kafka.zk.ControllerZNode;
import kafka.zk.TopicPartitionStateZNode;
import kafka.zk.TopicZNode;
import kafka.zk.ZKControllerRegistration;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.zookeeper.data.Stat;

/**
 * Kafka's own clients, and its own encoders of znodes, asked through a pipe: one JSON document a line, {"do": verb, ...},
 * answered by one line {"answer": ...} or {"error": text}. Run from source; the arguments are the bootstrap address and
 * a file with properties of clients.
 */
public final class KafkaTool {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Far more than a busy machine needs: who waits in vain fails sooner by the patience of the test. */
    private static final Duration PATIENCE = Duration.ofSeconds(120);

    private final Admin admin;
    private final Map<String, Object> common = new HashMap<>();
    private KafkaProducer<String, String> producer;

    private KafkaTool(String bootstrap, Properties properties) {
        properties.forEach((key, value) -> common.put((String) key, value));
        common.put("bootstrap.servers", bootstrap);
        this.admin = Admin.create(with(Map.of("default.api.timeout.ms", millis())));
    }

    /** Settings of a client, with those that all of them have. */
    private Map<String, Object> with(Map<String, ?> settings) {
        Map<String, Object> all = new HashMap<>(common);
        all.putAll(settings);
        return all;
    }

    private static int millis() {
        return (int) PATIENCE.toMillis();
    }

    private KafkaProducer<String, String> producer() {
        if (producer == null) {
            producer = new KafkaProducer<>(
                with(Map.of("acks", "all", "delivery.timeout.ms", millis(), "linger.ms", 0,
                            "max.block.ms", millis(), "request.timeout.ms", 10_000, "metadata.max.age.ms", 1_000)),
                new StringSerializer(), new StringSerializer());
        }
        return producer;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true);
        System.setOut(System.err);
        Properties properties = new Properties();
        try (FileReader reader = new FileReader(args[1])) {
            properties.load(reader);
        }
        KafkaTool tool = new KafkaTool(args[0], properties);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> reply = new HashMap<>();
            try {
                reply.put("answer", tool.answer(JSON.readTree(line)));
            } catch (Exception error) {
                reply.put("error", String.valueOf(error.getCause() == null ? error : error.getCause()));
            }
            out.println(JSON.writeValueAsString(reply));
        }
        System.exit(0);
    }

    private Object answer(JsonNode ask) throws Exception {
        switch (ask.get("do").asText()) {
            case "create": return create(ask);
            case "grow": return admin.createPartitions(Map.of(
                ask.get("topic").asText(), NewPartitions.increaseTo(ask.get("partitions").asInt()))).all().get();
            case "describe": return describe();
            case "configure": return configure(ask);
            case "configs": return configs(ask.get("topic").asText());
            case "elect": return elect(ask);
            case "reassign": return admin.alterPartitionReassignments(Map.of(
                partition(ask), Optional.of(new NewPartitionReassignment(ids(ask.get("replicas")))))).all().get();
            case "reassignments": return reassignments();
            case "delete": return delete(ask.get("topic").asText());
            case "produce": return produce(ask);
            case "transact": return transact(ask);
            case "consume": return consume(ask.get("topic").asText());
            case "group": return group(ask);
            case "encode": return encode(ask);
            default: throw new IllegalArgumentException(ask.toString());
        }
    }

    /** With the replicas of each partition, or so many partitions and replicas as the controller places them. */
    private Object create(JsonNode ask) throws Exception {
        String topic = ask.get("topic").asText();
        if (ask.has("partitions")) {
            short factor = (short) ask.get("factor").asInt();
            return admin.createTopics(Set.of(new NewTopic(topic, ask.get("partitions").asInt(), factor))).all().get();
        }
        Map<Integer, List<Integer>> assignment = new HashMap<>();
        for (JsonNode brokers : ask.get("replicas")) {
            assignment.put(assignment.size(), ids(brokers));
        }
        return admin.createTopics(Set.of(new NewTopic(topic, assignment))).all().get();
    }

    /** The producer would ask for the topic again and again, and a broker that creates topics would do so. */
    private Object delete(String topic) throws Exception {
        if (producer != null) {
            producer.close();
            producer = null;
        }
        return admin.deleteTopics(Set.of(topic)).all().get();
    }

    /** By topic and partition: leader (-1 for none), replicas and ISR. One broker lists topics, and others that describe
     *  them may not have heard of one yet, or may have heard that it is gone: those are left out. */
    private Object describe() throws Exception {
        Map<String, Map<Integer, Object>> found = new TreeMap<>();
        for (var described : admin.describeTopics(admin.listTopics().names().get()).topicNameValues().entrySet()) {
            TopicDescription topic;
            try {
                topic = described.getValue().get();
            } catch (ExecutionException error) {
                if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                    continue;
                }
                throw error;
            }
            Map<Integer, Object> partitions = new TreeMap<>();
            for (TopicPartitionInfo one : topic.partitions()) {
                int leader = one.leader() == null ? -1 : one.leader().id();
                partitions.put(one.partition(),
                    Map.of("leader", leader, "replicas", ids(one.replicas()), "isr", ids(one.isr())));
            }
            found.put(topic.name(), partitions);
        }
        return found;
    }

    private static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private static List<Integer> ids(JsonNode brokers) {
        List<Integer> found = new ArrayList<>();
        brokers.forEach(broker -> found.add(broker.asInt()));
        return found;
    }

    private static TopicPartition partition(JsonNode ask) {
        return new TopicPartition(ask.get("topic").asText(), ask.get("partition").asInt());
    }

    private Object configure(JsonNode ask) throws Exception {
        ConfigEntry entry = new ConfigEntry(ask.get("key").asText(), ask.get("value").asText());
        return admin.incrementalAlterConfigs(Map.of(
            topic(ask.get("topic").asText()), Set.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all().get();
    }

    private static ConfigResource topic(String name) {
        return new ConfigResource(ConfigResource.Type.TOPIC, name);
    }

    /** What is set for the topic itself. */
    private Object configs(String name) throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (ConfigEntry one : admin.describeConfigs(Set.of(topic(name))).values().get(topic(name)).get().entries()) {
            if (one.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                found.put(one.name(), one.value());
            }
        }
        return found;
    }

    private Object elect(JsonNode ask) throws Exception {
        return admin.electLeaders(ElectionType.PREFERRED, Set.of(partition(ask))).all().get();
    }

    private Object reassignments() throws Exception {
        return admin.listPartitionReassignments().reassignments().get().keySet().stream()
            .map(TopicPartition::toString).sorted().toList();
    }

    /** Waits until all in-sync replicas have the values; without a partition the client chooses. */
    private Object produce(JsonNode ask) throws Exception {
        List<Future<RecordMetadata>> sent = send(producer(), ask, "values");
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
        return sent.size();
    }

    private static List<Future<RecordMetadata>> send(
            KafkaProducer<String, String> producer, JsonNode ask, String which) {
        Integer partition = ask.has("partition") ? ask.get("partition").asInt() : null;
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : ask.get(which)) {
            sent.add(producer.send(new ProducerRecord<>(ask.get("topic").asText(), partition, null, value.asText())));
        }
        return sent;
    }

    /** One transaction that is aborted, and one that is committed. */
    private Object transact(JsonNode ask) throws Exception {
        Map<String, Object> settings = with(Map.of("transactional.id", ask.get("id").asText()));
        try (KafkaProducer<String, String> transactional = new KafkaProducer<>(
                settings, new StringSerializer(), new StringSerializer())) {
            transactional.initTransactions();
            transactional.beginTransaction();
            send(transactional, ask, "aborted");
            transactional.flush();
            transactional.abortTransaction();
            transactional.beginTransaction();
            int sent = send(transactional, ask, "values").size();
            transactional.commitTransaction();
            return sent;
        }
    }

    /** The next so many committed values of the topic for the group, whose place is committed behind them. A member that
     *  has to join again before it has committed is given the same records again: each counts once. */
    private Object group(JsonNode ask) {
        Map<String, Object> settings = with(Map.of(
            "group.id", ask.get("group").asText(), "auto.offset.reset", "earliest",
            "isolation.level", "read_committed", "enable.auto.commit", false));
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(ask.get("topic").asText()));
            Map<String, String> found = new LinkedHashMap<>();
            Map<TopicPartition, OffsetAndMetadata> place = new HashMap<>();
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> {
                    found.put(record.partition() + "-" + record.offset(), record.value());
                    place.merge(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1), (one, two) -> one.offset() > two.offset() ? one : two);
                });
                if (found.size() >= ask.get("count").asInt() && committed(consumer, place)) {
                    break;
                }
            }
            return found.values();
        }
    }

    private static boolean committed(
            KafkaConsumer<String, String> consumer, Map<TopicPartition, OffsetAndMetadata> place) {
        try {
            consumer.commitSync(place);
            return true;
        } catch (CommitFailedException | RebalanceInProgressException | TimeoutException again) {
            return false;
        }
    }

    /** All values of the topic, by partition, from the first offset to the end. */
    private Object consume(String topic) {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                with(Map.of()), new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> all = consumer.partitionsFor(topic).stream()
                .map(one -> new TopicPartition(topic, one.partition())).toList();
            Map<TopicPartition, Long> ends = consumer.endOffsets(all, PATIENCE);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<Integer, List<String>> found = new TreeMap<>();
            all.forEach(one -> found.put(one.partition(), new ArrayList<>()));
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (System.nanoTime() < deadline
                    && all.stream().anyMatch(one -> consumer.position(one, PATIENCE) < ends.get(one))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    found.get(record.partition()).add(record.value());
                }
            }
            return found;
        }
    }

    /** What Kafka writes for the values that it reads from these bytes of a znode. */
    private static Object encode(JsonNode ask) throws Exception {
        byte[] data = ask.get("data").binaryValue();
        byte[] again;
        switch (ask.get("kind").asText()) {
            case "state":
                again = TopicPartitionStateZNode.encode(TopicPartitionStateZNode.decode(data, new Stat()).get());
                break;
            case "topic":
                TopicZNode.TopicIdReplicaAssignment topic = TopicZNode.decode("any", data);
                again = TopicZNode.encode(topic.topicId(), topic.assignment());
                break;
            case "controller":
                long timestamp = JSON.readTree(data).get("timestamp").asLong();
                ZKControllerRegistration found = ControllerZNode.decodeController(data, 0);
                again = ControllerZNode.encode(found.broker(), timestamp, -1);
                break;
            default:
                again = ConfigEntityZNode.encode(ConfigEntityZNode.decode(data));
        }
        return Base64.getEncoder().encodeToString(again);
    }
}
