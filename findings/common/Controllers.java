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
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.timeline.SnapshotRegistry;

/** Kafka's own managers of a KRaft controller, for a cluster with one topic and brokers 1 to N that are not fenced. */
final class Controllers {
    static final ConfigResource TOPIC = new ConfigResource(ConfigResource.Type.TOPIC, "orders");
    static final ConfigResource CLUSTER = new ConfigResource(ConfigResource.Type.BROKER, "");
    private static final Uuid TOPIC_ID = new Uuid(1, 1);
    private static final int CONTROLLER = 100;
    private final SnapshotRegistry snapshots = new SnapshotRegistry(new LogContext());
    private final FeatureControlManager features;
    private final ConfigurationControlManager configs;
    private final ClusterControlManager cluster;
    private ReplicationControlManager replication;

    Controllers(int brokers) {
        features = new FeatureControlManager.Builder()
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
        setFeature(MetadataVersion.FEATURE_NAME, MetadataVersion.latestProduction().featureLevel());
        cluster.activate();
        IntStream.rangeClosed(1, brokers).forEach(this::register);
        replication.replay(new TopicRecord().setName(TOPIC.name()).setTopicId(TOPIC_ID));
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
            .setDirectories(replicas.stream().map(Controllers::directory).toList()));
    }

    /** The records of a CreatePartitions request that leaves the assignment to the controller. */
    List<ApiMessageAndVersion> createPartitions(int count) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        replication.createPartitions(
            new ControllerRequestContext(new RequestHeaderData(), KafkaPrincipal.ANONYMOUS, OptionalLong.empty()),
            new CreatePartitionsTopic().setName(TOPIC.name()).setCount(count).setAssignments(null), records);
        return records;
    }

    /** Sets a config through an IncrementalAlterConfigs request. Returns the controller's error code. */
    String setConfig(ConfigResource resource, String name, String value) {
        var result = configs.incrementalAlterConfigs(
            Map.of(resource, Map.of(name, Map.entry(OpType.SET, value))), false, false);
        replay(result.records());
        return result.response().get(resource).error().name();
    }

    /** Fences a broker. */
    void fence(int broker) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        replication.handleBrokerFenced(broker, records);
        replay(records);
    }

    /** Registers a broker again, fenced, with two log directories: that of its replicas, and another. */
    void restart(int broker) {
        RegisterBrokerRecord registration = new RegisterBrokerRecord()
            .setBrokerId(broker).setBrokerEpoch(broker).setIncarnationId(new Uuid(5, broker)).setFenced(true)
            .setLogDirs(List.of(directory(broker), new Uuid(4, broker)));
        cluster.replay(registration, broker);
    }

    /** The log directory of all replicas of a broker. */
    static Uuid directory(int broker) {
        return new Uuid(3, broker);
    }

    /** A heartbeat of a broker that has the metadata up to its registration, with directories that have failed. */
    void heartbeat(int broker, Uuid... failed) {
        var result = replication.processBrokerHeartbeat(new BrokerHeartbeatRequestData()
            .setBrokerId(broker).setBrokerEpoch(broker).setCurrentMetadataOffset(broker)
            .setOfflineLogDirs(List.of(failed)), broker);
        replay(result.records());
    }

    /** The log directories in the registration of a broker. */
    List<Uuid> directories(int broker) {
        return cluster.registration(broker).directories();
    }

    /** Ends the fencing of a broker. */
    void unfence(int broker) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        replication.handleBrokerUnfenced(broker, broker, records);
        replay(records);
    }

    void setFeature(String name, int level) {
        features.replay(new FeatureLevelRecord().setName(name).setFeatureLevel((short) level));
    }

    PartitionRegistration partition(int partition) {
        return replication.getPartition(TOPIC_ID, partition);
    }

    private void replay(List<ApiMessageAndVersion> records) {
        for (ApiMessageAndVersion record : records) {
            if (record.message() instanceof ConfigRecord config) {
                configs.replay(config);
            } else if (record.message() instanceof ClearElrRecord clear) {
                replication.replay(clear);
            } else if (record.message() instanceof BrokerRegistrationChangeRecord change) {
                cluster.replay(change);
            } else if (record.message() instanceof PartitionChangeRecord change) {
                replication.replay(change);
            } else {
                throw new IllegalStateException("unexpected record " + record);
            }
        }
    }
}
