#!/usr/bin/env bash
# Kafka 4.4.0, KRaft with eligible leader replicas: setting the cluster's min.insync.replicas to its present value
# clears the eligible leader replicas (ELR) of all topics.
#
# Kafka's documentation says that an update of min.insync.replicas clears ELRs. The repeated value of a topic is no
# update: the controller writes nothing. That of the cluster is one: the controller writes the record again, and with it
# ClearElr for all topics. A tool that applies the same configuration again at each run (config as code) thus takes the
# safe candidates from partitions without a leader: they stay offline after a broker with all data has returned.
#
# Seen: replicas 1 and 2 of a partition, min.insync.replicas 2, broker 2 then broker 1 are fenced: no leader, ELR 2 and 1.
#   repeated value   ELR     leader after broker 2 has returned
#   none             [1, 2]  2
#   of the topic     [1, 2]  2
#   of the cluster   []      -1
source "$(dirname "$0")/common/setup.sh"
maven_packages org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-server:4.4.0 org.slf4j:slf4j-nop:1.7.36
cat >"$folder/Repeat.java" <<'EOF'
package org.apache.kafka.controller;

import java.util.Arrays;

import org.apache.kafka.common.config.ConfigResource;

public class Repeat {
    private static final String KEY = "min.insync.replicas";

    private static void repeat(ConfigResource resource) {
        Controllers controllers = new Controllers(2);
        controllers.setFeature("eligible.leader.replicas.version", 1);
        controllers.setConfig(Controllers.CLUSTER, KEY, "2");
        controllers.setConfig(Controllers.TOPIC, KEY, "2");
        controllers.addPartition(0, 2, 2);
        controllers.fence(2);
        controllers.fence(1);
        if (resource != null) {
            controllers.setConfig(resource, KEY, "2");
        }
        int[] elr = controllers.partition(0).elr.clone();
        Arrays.sort(elr);
        controllers.unfence(2);
        System.out.println((resource == null ? "none" : resource.type()) + " " + Arrays.toString(elr) + " "
            + controllers.partition(0).leader);
    }

    public static void main(String[] arguments) {
        repeat(null);
        repeat(Controllers.TOPIC);
        repeat(Controllers.CLUSTER);
    }
}
EOF
results=$(run_java org.apache.kafka.controller.Repeat "$(dirname "$0")/common/Controllers.java" "$folder/Repeat.java")
check "repeated value, ELR, leader" "none [1, 2] 2
TOPIC [1, 2] 2
BROKER [] -1" "$results"
