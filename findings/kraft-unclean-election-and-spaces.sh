#!/usr/bin/env bash
# Kafka 4.4.0, KRaft: a space in unclean.leader.election.enable lets controller and broker read different values.
#
# The controller accepts the topic config " true" and writes it to the log unchanged. Kafka's config parser removes the
# space, so a broker's LogConfig means true, and DescribeConfigs (seen with a broker of 4.4.0) answers "true". The
# controller parses the stored text with the space: false. The partition stays without a leader although tools show that
# unclean election is enabled. "TRUE" and "true" elect.
#
# Seen: replicas 1 and 2, ISR 1, broker 1 is fenced:
#   value    accepted  LogConfig  leader
#   "true"   NONE      true       2
#   "TRUE"   NONE      true       2
#   " true"  NONE      true       -1
#   "true "  NONE      true       -1
source "$(dirname "$0")/common/setup.sh"
maven_packages org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-server:4.4.0 org.slf4j:slf4j-nop:1.7.36
cat >"$folder/Spaces.java" <<'EOF'
package org.apache.kafka.controller;

import java.util.List;
import java.util.Map;

import org.apache.kafka.storage.internals.log.LogConfig;

public class Spaces {
    private static final String KEY = "unclean.leader.election.enable";

    public static void main(String[] arguments) {
        for (String value : List.of("true", "TRUE", " true", "true ")) {
            Controllers controllers = new Controllers(2);
            controllers.addPartition(0, 2, 1);
            String error = controllers.setConfig(Controllers.TOPIC, KEY, value);
            boolean parsed = new LogConfig(Map.of(KEY, value)).uncleanLeaderElectionEnable;
            controllers.fence(1);
            System.out.println("[" + value + "] " + error + " " + parsed + " " + controllers.partition(0).leader);
        }
    }
}
EOF
results=$(run_java org.apache.kafka.controller.Spaces "$(dirname "$0")/common/Controllers.java" "$folder/Spaces.java")
check "value, error code, LogConfig, leader" "[true] NONE true 2
[TRUE] NONE true 2
[ true] NONE true -1
[true ] NONE true -1" "$results"
