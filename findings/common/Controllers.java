package org.apache.kafka.controller;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Random;
import java.util.stream.IntStream;

import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.timeline.SnapshotRegistry;

/** Kafka's own managers of a KRaft controller, for a cluster with one topic and brokers 1 to N that are not fenced. */
final class Controllers {
    static final String TOPIC = "orders";
    private static final Uuid TOPIC_ID = new Uuid(1, 1);
    private static final int CONTROLLER = 100;
    private final SnapshotRegistry snapshots = new SnapshotRegistry(new LogContext());
    final ConfigurationControlManager configs;
    private final ClusterControlManager cluster;
    private ReplicationControlManager replication;

    Controllers(int brokers) {
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setQuorumFeatures(new QuorumFeatures(CONTROLLER, QuorumFeatures.defaultSupportedFeatureMap(false),
                List.of(CONTROLLER)))
            .build();
        configs = new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setFeatureControl(features)
            .setNodeId(CONTROLLER)
            .setKafkaConfigSchema(new KafkaConfigSchema(
                Map.of(ConfigResource.Type.TOPIC, LogConfig.configDefCopy(),
                    ConfigResource.Type.BROKER, AbstractKafkaConfig.CONFIG_DEF),
                ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS))
            .setValidator(new ControllerConfigurationValidator(KafkaConfig.fromProps(properties(), false)))
            .build();
        cluster = new ClusterControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setClusterId("cluster")
            .setReplicaPlacer(new StripedReplicaPlacer(new Random()))
            .setFeatureControlManager(features)
            .setBrokerShutdownHandler((id, clean, records) -> replication.handleBrokerShutdown(id, clean, records))
            .build();
        replication = new ReplicationControlManager.Builder()
            .setSnapshotRegistry(snapshots)
            .setConfigurationControl(configs)
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .build();
        features.replay(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME)
            .setFeatureLevel(MetadataVersion.latestProduction().featureLevel()));
        cluster.activate();
        IntStream.rangeClosed(1, brokers).forEach(this::register);
        replication.replay(new TopicRecord().setName(TOPIC).setTopicId(TOPIC_ID));
    }

    private static Properties properties() {
        Properties properties = new Properties();
        properties.putAll(Map.of("process.roles", "controller", "node.id", "" + CONTROLLER,
            "controller.quorum.voters", CONTROLLER + "@localhost:9093", "listeners", "CONTROLLER://localhost:9093",
            "controller.listener.names", "CONTROLLER"));
        return properties;
    }

    private void register(int broker) {
        RegisterBrokerRecord registration = new RegisterBrokerRecord()
            .setBrokerId(broker).setBrokerEpoch(broker).setIncarnationId(new Uuid(2, broker)).setFenced(false);
        registration.endPoints().add(new RegisterBrokerRecord.BrokerEndpoint()
            .setName("PLAINTEXT").setHost("localhost").setPort(9092));
        cluster.replay(registration, broker);
    }

    /** Adds a partition of the topic with the replicas 1 to {@code factor}. Its ISR is 1 to {@code inSync}. */
    void addPartition(int partition, int factor, int inSync) {
        List<Integer> replicas = IntStream.rangeClosed(1, factor).boxed().toList();
        replication.replay(new PartitionRecord().setTopicId(TOPIC_ID).setPartitionId(partition).setLeader(1)
            .setReplicas(replicas).setIsr(replicas.subList(0, inSync))
            .setDirectories(replicas.stream().map(id -> new Uuid(3, id)).toList()));
    }

    /** The records of a CreatePartitions request that leaves the assignment to the controller. */
    List<ApiMessageAndVersion> createPartitions(int count) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        replication.createPartitions(
            new ControllerRequestContext(new RequestHeaderData(), KafkaPrincipal.ANONYMOUS, OptionalLong.empty()),
            new CreatePartitionsTopic().setName(TOPIC).setCount(count).setAssignments(null), records);
        return records;
    }

    /** Sets a config of the topic through an IncrementalAlterConfigs request and returns the controller's error code. */
    String setConfig(String name, String value) {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        var result = configs.incrementalAlterConfigs(
            Map.of(topic, Map.of(name, Map.entry(OpType.SET, value))), false, false);
        result.records().forEach(record -> configs.replay((ConfigRecord) record.message()));
        return result.response().get(topic).error().name();
    }

    /** The records of a broker's fencing. */
    List<ApiMessageAndVersion> fence(int broker) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        replication.handleBrokerFenced(broker, records);
        return records;
    }
}
