import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.api.LeaderAndIsr;
import kafka.cluster.Broker;
import kafka.cluster.EndPoint;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.controller.ReplicaAssignment;
import kafka.zk.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.feature.Features;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.ProducerIdsBlock;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Prints a path per line and the bytes that Kafka 3.9.1's own ZkData writes there.
 * java -cp 'LIBS/*' Vectors.java > zkdata.tsv, where LIBS holds kafka_2.13 3.9.1 and what it needs.
 */
public final class Vectors {
    static void print(String path, byte[] data) {
        System.out.println(path + "\t" + new String(data, java.nio.charset.StandardCharsets.UTF_8));
    }

    static scala.collection.immutable.List<Object> list(Integer... ids) {
        return CollectionConverters.asScala(List.<Object>of((Object[]) ids)).toList();
    }

    static void state(String topic, int leader, int epoch, LeaderRecoveryState recovery, int controller, int... isr) {
        List<BrokerState> states = new ArrayList<>();
        for (int id : isr) states.add(new BrokerState().setBrokerId(id));
        LeaderAndIsr leaderAndIsr =
            new LeaderAndIsr(leader, epoch, recovery, CollectionConverters.asScala(states).toList(), 0);
        print("/brokers/topics/" + topic + "/partitions/0/state",
            TopicPartitionStateZNode$.MODULE$.encode(new LeaderIsrAndControllerEpoch(leaderAndIsr, controller)));
    }

    static void topic(String name, Option<Uuid> id, int partitions, boolean moving) {
        Map<TopicPartition, ReplicaAssignment> assignment = new LinkedHashMap<>();
        for (int p = 0; p < partitions; p++)
            assignment.put(new TopicPartition(name, p), moving && p % 3 != 1
                ? new ReplicaAssignment(list(p + 1, p + 2, p), list(p + 1), list(p))
                : new ReplicaAssignment(list(1, 2, 3), list(), list()));
        print("/brokers/topics/" + name, TopicZNode$.MODULE$.encode(id, CollectionConverters.asScala(assignment)));
    }

    static void broker(int id, Option<String> rack, MetadataVersion version, Map<String, SupportedVersionRange> features,
            EndPoint... endpoints) {
        Broker broker = Broker.apply(id, CollectionConverters.asScala(List.of(endpoints)).toSeq(), rack,
            Features.supportedFeatures(features));
        // The timestamp is the only thing here that changes from run to run.
        String json = new String(BrokerInfo.apply(broker, version, 9999).toJsonBytes());
        System.out.println("/brokers/ids/" + id + "\t"
            + json.replaceAll("\"timestamp\":\"[0-9]+\"", "\"timestamp\":\"1700000000000\""));
    }

    static EndPoint endpoint(String host, int port, String listener, SecurityProtocol protocol) {
        return new EndPoint(host, port, new ListenerName(listener), protocol);
    }

    static void features(MetadataVersion version, Map<String, Object> features) {
        print("/feature", FeatureZNode.encode(FeatureZNode.apply(
            version, FeatureZNodeStatus$.MODULE$.withNameOpt(1).get(), CollectionConverters.asScala(features))));
    }

    static void config(String path, String... pairs) {
        Properties config = new Properties();
        for (int i = 0; i < pairs.length; i += 2) config.put(pairs[i], pairs[i + 1]);
        print(path, ConfigEntityZNode$.MODULE$.encode(config));
    }

    public static void main(String[] arguments) {
        state("plain", 1, 0, LeaderRecoveryState.RECOVERED, 1, 1, 2, 3);
        state("recovering", 2147483647, 7, LeaderRecoveryState.RECOVERING, 12, 2147483647);
        state("leaderless", -1, 3, LeaderRecoveryState.RECOVERED, 2);
        Option<Uuid> id = Option.apply(Uuid.fromString("mA8vAkY2Ssm6tZkQZf3h0A"));
        for (int count : new int[] {0, 1, 3, 11, 12, 13, 24, 95, 130}) {
            topic("still-" + count, id, count, false);
            topic("moving-" + count, id, count, true);
            topic("without-id-" + count, Option.empty(), count, true);
        }
        EndPoint plain = endpoint("127.0.0.1", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT);
        EndPoint internal = endpoint("::1", 9093, "INTERNAL", SecurityProtocol.SASL_SSL);
        EndPoint any = endpoint(null, 9094, "EXTERNAL", SecurityProtocol.SSL);
        broker(1, Option.apply("r1"), MetadataVersion.IBP_3_9_IV0, Map.of(), plain);
        broker(2, Option.empty(), MetadataVersion.IBP_3_9_IV0,
            Map.of("f", new SupportedVersionRange((short) 1, (short) 3)), internal, plain, any);
        broker(3, Option.empty(), MetadataVersion.IBP_2_6_IV0, Map.of(), internal, any);
        broker(4, Option.apply("a \"rack\"/\u00e9\u2028"), MetadataVersion.IBP_2_6_IV0, Map.of(), plain);
        broker(5, Option.empty(), MetadataVersion.IBP_0_9_0, Map.of(), plain);
        features(MetadataVersion.IBP_3_9_IV0, Map.of());
        features(MetadataVersion.IBP_3_9_IV0, Map.of("f", (short) 3));
        features(MetadataVersion.IBP_3_0_IV0, Map.of());
        config("/config/topics/none");
        config("/config/topics/some", "min.insync.replicas", "2", "unclean.leader.election.enable", "true",
            "cleanup.policy", "compact,delete", "retention.ms", "-1");
        config("/config/brokers/<default>", "unclean.leader.election.enable", "true", "note", "tab\there, \u00fc");
        print("/config/changes/config_change_0000000000",
            ConfigEntityChangeNotificationSequenceZNode$.MODULE$.encode("topics/t"));
        print("/config/changes/config_change_0000000001",
            ConfigEntityChangeNotificationSequenceZNode$.MODULE$.encode("brokers/<default>"));
        TopicPartition one = new TopicPartition("t", 0), two = new TopicPartition("u.v_w-x", 11);
        print("/isr_change_notification/isr_change_0000000000", IsrChangeNotificationSequenceZNode$.MODULE$.encode(
            CollectionConverters.asScala(java.util.Set.of(one))));
        print("/log_dir_event_notification/log_dir_event_0000000000",
            LogDirEventNotificationSequenceZNode$.MODULE$.encode(3));
        Map<TopicPartition, scala.collection.Seq<Object>> targets = new LinkedHashMap<>();
        targets.put(one, list(4, 5, 6));
        targets.put(two, list(1));
        print("/admin/reassign_partitions", ReassignPartitionsZNode$.MODULE$.encode(CollectionConverters.asScala(targets)));
        print("/admin/preferred_replica_election", PreferredReplicaElectionZNode$.MODULE$.encode(
            CollectionConverters.asScala(java.util.Set.of(one)).toSet()));
        print("/controller", ControllerZNode$.MODULE$.encode(1, 1700000000000L, -1));
        print("/controller_epoch", ControllerEpochZNode$.MODULE$.encode(7));
        print("/cluster/id", ClusterIdZNode.toJson("4L6g3nShT-eMCtK--X86sw"));
        print("/latest_producer_id_block",
            ProducerIdBlockZNode$.MODULE$.generateProducerIdBlockJson(new ProducerIdsBlock(1, 2000, 1000)));
    }
}
