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
 * Runs Kafka's own clients and znode encoders for tests. Each input line is a request {"operation": name, ...}. The
 * reply is a line {"result": ...} or {"error": text}. The arguments are the bootstrap servers and a file with client
 * settings.
 */
public final class KafkaClients {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** Far more than a busy machine needs. A test that waits for nothing fails earlier, by its own timeout. */
    private static final Duration TIMEOUT = Duration.ofSeconds(120);

    private final Admin admin;
    private final Map<String, Object> common = new HashMap<>();
    private KafkaProducer<String, String> producer;

    private KafkaClients(String bootstrap, Properties properties) {
        properties.forEach((key, value) -> common.put((String) key, value));
        common.put("bootstrap.servers", bootstrap);
        this.admin = Admin.create(with(Map.of("default.api.timeout.ms", millis())));
    }

    /** The settings of a client, with those that all clients have. */
    private Map<String, Object> with(Map<String, ?> settings) {
        Map<String, Object> all = new HashMap<>(common);
        all.putAll(settings);
        return all;
    }

    private static int millis() {
        return (int) TIMEOUT.toMillis();
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
        KafkaClients clients = new KafkaClients(args[0], properties);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> reply = new HashMap<>();
            try {
                reply.put("result", clients.handle(JSON.readTree(line)));
            } catch (Exception error) {
                reply.put("error", String.valueOf(error.getCause() == null ? error : error.getCause()));
            }
            out.println(JSON.writeValueAsString(reply));
        }
        System.exit(0);
    }

    private Object handle(JsonNode request) throws Exception {
        switch (request.get("operation").asText()) {
            case "create": return create(request);
            case "grow": return admin.createPartitions(Map.of(name(request),
                NewPartitions.increaseTo(request.get("partitions").asInt()))).all().get();
            case "describe": return describe();
            case "configure": return configure(request);
            case "configs": return configs(name(request));
            case "elect": return elect(request);
            case "reassign": return admin.alterPartitionReassignments(Map.of(partition(request),
                Optional.of(new NewPartitionReassignment(ids(request.get("replicas")))))).all().get();
            case "reassignments": return reassignments();
            case "delete": return delete(name(request));
            case "produce": return produce(request);
            case "transact": return transact(request);
            case "consume": return consume(name(request));
            case "group": return group(request);
            case "encode": return encode(request);
            default: throw new IllegalArgumentException(request.toString());
        }
    }

    /** Creates a topic with the given replicas of each partition, or with replicas that the controller places. */
    private Object create(JsonNode request) throws Exception {
        String topic = name(request);
        if (request.has("partitions")) {
            short factor = (short) request.get("factor").asInt();
            int partitions = request.get("partitions").asInt();
            return admin.createTopics(Set.of(new NewTopic(topic, partitions, factor))).all().get();
        }
        Map<Integer, List<Integer>> assignment = new HashMap<>();
        for (JsonNode brokers : request.get("replicas")) {
            assignment.put(assignment.size(), ids(brokers));
        }
        return admin.createTopics(Set.of(new NewTopic(topic, assignment))).all().get();
    }

    /** Closes the producer first: it would request metadata of the topic, and brokers could create the topic again. */
    private Object delete(String topic) throws Exception {
        if (producer != null) {
            producer.close();
            producer = null;
        }
        return admin.deleteTopics(Set.of(topic)).all().get();
    }

    /**
     * Leader (-1 for none), replicas and ISR by topic and partition. Omits topics that the broker which describes them
     * does not know yet, or no longer, because another broker may have listed them.
     */
    private Object describe() throws Exception {
        Map<String, Map<Integer, Object>> topics = new TreeMap<>();
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
            for (TopicPartitionInfo partition : topic.partitions()) {
                int leader = partition.leader() == null ? -1 : partition.leader().id();
                partitions.put(partition.partition(),
                    Map.of("leader", leader, "replicas", ids(partition.replicas()), "isr", ids(partition.isr())));
            }
            topics.put(topic.name(), partitions);
        }
        return topics;
    }

    private static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private static List<Integer> ids(JsonNode brokers) {
        List<Integer> ids = new ArrayList<>();
        brokers.forEach(broker -> ids.add(broker.asInt()));
        return ids;
    }

    private static String name(JsonNode request) {
        return request.get("topic").asText();
    }

    private static TopicPartition partition(JsonNode request) {
        return new TopicPartition(name(request), request.get("partition").asInt());
    }

    private Object configure(JsonNode request) throws Exception {
        ConfigEntry entry = new ConfigEntry(request.get("key").asText(), request.get("value").asText());
        return admin.incrementalAlterConfigs(Map.of(
            topic(name(request)), Set.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all().get();
    }

    private static ConfigResource topic(String name) {
        return new ConfigResource(ConfigResource.Type.TOPIC, name);
    }

    /** The dynamic settings of the topic itself. */
    private Object configs(String name) throws Exception {
        Map<String, String> settings = new TreeMap<>();
        for (ConfigEntry entry : admin.describeConfigs(Set.of(topic(name))).values().get(topic(name)).get().entries()) {
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                settings.put(entry.name(), entry.value());
            }
        }
        return settings;
    }

    private Object elect(JsonNode request) throws Exception {
        return admin.electLeaders(ElectionType.PREFERRED, Set.of(partition(request))).all().get();
    }

    private Object reassignments() throws Exception {
        return admin.listPartitionReassignments().reassignments().get().keySet().stream()
            .map(TopicPartition::toString).sorted().toList();
    }

    /** Waits until all in-sync replicas have the values; without a partition the client chooses. */
    private Object produce(JsonNode request) throws Exception {
        List<Future<RecordMetadata>> sent = send(producer(), request, "values");
        for (Future<RecordMetadata> acknowledgement : sent) {
            acknowledgement.get();
        }
        return sent.size();
    }

    private static List<Future<RecordMetadata>> send(
            KafkaProducer<String, String> producer, JsonNode request, String field) {
        Integer partition = request.has("partition") ? request.get("partition").asInt() : null;
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : request.get(field)) {
            sent.add(producer.send(new ProducerRecord<>(name(request), partition, null, value.asText())));
        }
        return sent;
    }

    /** Aborts one transaction, and commits another. */
    private Object transact(JsonNode request) throws Exception {
        Map<String, Object> settings = with(Map.of("transactional.id", request.get("id").asText()));
        try (KafkaProducer<String, String> transactional = new KafkaProducer<>(
                settings, new StringSerializer(), new StringSerializer())) {
            transactional.initTransactions();
            transactional.beginTransaction();
            send(transactional, request, "aborted");
            transactional.flush();
            transactional.abortTransaction();
            transactional.beginTransaction();
            int sent = send(transactional, request, "values").size();
            transactional.commitTransaction();
            return sent;
        }
    }

    /**
     * Consumes the next {@code count} values of committed transactions, and commits the offsets of the group. A member
     * that joins again before its commit receives the same records again; each counts once.
     */
    private Object group(JsonNode request) {
        Map<String, Object> settings = with(Map.of(
            "group.id", request.get("group").asText(), "auto.offset.reset", "earliest",
            "isolation.level", "read_committed", "enable.auto.commit", false));
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(name(request)));
            Map<String, String> values = new LinkedHashMap<>();
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            long deadline = System.nanoTime() + TIMEOUT.toNanos();
            while (System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> {
                    values.put(record.partition() + "-" + record.offset(), record.value());
                    offsets.merge(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1),
                        (first, second) -> first.offset() > second.offset() ? first : second);
                });
                if (values.size() >= request.get("count").asInt() && commit(consumer, offsets)) {
                    break;
                }
            }
            return values.values();
        }
    }

    private static boolean commit(
            KafkaConsumer<String, String> consumer, Map<TopicPartition, OffsetAndMetadata> offsets) {
        try {
            consumer.commitSync(offsets);
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
                .map(partition -> new TopicPartition(topic, partition.partition())).toList();
            Map<TopicPartition, Long> ends = consumer.endOffsets(all, TIMEOUT);
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<Integer, List<String>> values = new TreeMap<>();
            all.forEach(partition -> values.put(partition.partition(), new ArrayList<>()));
            long deadline = System.nanoTime() + TIMEOUT.toNanos();
            while (System.nanoTime() < deadline && all.stream()
                    .anyMatch(partition -> consumer.position(partition, TIMEOUT) < ends.get(partition))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    values.get(record.partition()).add(record.value());
                }
            }
            return values;
        }
    }

    /** Decodes the bytes of a znode and encodes them again, by Kafka's own classes. */
    private static Object encode(JsonNode request) throws Exception {
        byte[] data = request.get("data").binaryValue();
        byte[] encoded;
        switch (request.get("kind").asText()) {
            case "state":
                encoded = TopicPartitionStateZNode.encode(TopicPartitionStateZNode.decode(data, new Stat()).get());
                break;
            case "topic":
                TopicZNode.TopicIdReplicaAssignment topic = TopicZNode.decode("any", data);
                encoded = TopicZNode.encode(topic.topicId(), topic.assignment());
                break;
            case "controller":
                long timestamp = JSON.readTree(data).get("timestamp").asLong();
                ZKControllerRegistration registration = ControllerZNode.decodeController(data, 0);
                encoded = ControllerZNode.encode(registration.broker(), timestamp, -1);
                break;
            default:
                encoded = ConfigEntityZNode.encode(ConfigEntityZNode.decode(data));
        }
        return Base64.getEncoder().encodeToString(encoded);
    }
}
