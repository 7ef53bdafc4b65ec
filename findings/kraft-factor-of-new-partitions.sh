#!/usr/bin/env bash
# Kafka 4.4.0, KRaft controller: the replication factor of a new partition is not that of partition 0.
#
# Partitions of one topic may have different replication factors (a reassignment allows it). A CreatePartitions request
# without an assignment then takes the factor of the partition that comes first in the controller's hash table. The
# number of partitions decides which one that is: partition 0, 2, 5 or 13 below, not the first, the last or the largest
# by rule. The same request creates one replica for a topic of two partitions and six for a topic of six.
#
# Seen: a topic has N partitions, partition P has P + 1 replicas. A partition is added. Its replication factor:
#   N      1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
#   factor 1 1 3 3 3 6 6 6 6 6  1  1  1  14 14 14
source "$(dirname "$0")/common/setup.sh"
maven_packages org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-server:4.4.0 org.slf4j:slf4j-nop:1.7.36
cat >"$folder/NewPartitions.java" <<'EOF'
package org.apache.kafka.controller;

import org.apache.kafka.common.metadata.PartitionRecord;

public class NewPartitions {
    public static void main(String[] arguments) {
        for (int count = 1; count <= 16; count++) {
            Controllers controllers = new Controllers(count);
            for (int partition = 0; partition < count; partition++) {
                controllers.addPartition(partition, partition + 1, partition + 1);
            }
            var record = (PartitionRecord) controllers.createPartitions(count + 1).get(0).message();
            System.out.print(record.replicas().size() + " ");
        }
    }
}
EOF
factors=$(run_java org.apache.kafka.controller.NewPartitions "$(dirname "$0")/common/Controllers.java" "$folder/NewPartitions.java")
check "factors of a new partition by count" "1 1 3 3 3 6 6 6 6 6 1 1 1 14 14 14 " "$factors"
