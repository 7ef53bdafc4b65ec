#!/usr/bin/env bash
# Kafka 4.4.0, KRaft controller: a broker is elected for a partition whose log directory it reports as failed.
#
# A log directory may fail while a broker starts, after its registration and before the heartbeat that unfences it. This
# heartbeat then does two things. The broker is unfenced, and elected for partitions without a leader, also for those in
# the failed directory. The failed directory then leaves the registration, and leaders in it are replaced: but by the
# state before the heartbeat, in which the broker led nothing. So the partition has a leader that cannot read its log,
# and further heartbeats do not change that, because the directory is no longer in the registration.
#
# A failure one heartbeat later takes the leadership away, as it should.
#
# Seen: leader of the only replica, and whether its directory is in the registration, after each of three heartbeats:
#   the failure is reported with the heartbeat that unfences    1 false  1 false  1 false
#   ... one heartbeat later                                    -1 false -1 false -1 false
source "$(dirname "$0")/common/setup.sh"
maven_packages org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-server:4.4.0 org.slf4j:slf4j-nop:1.7.36
cat >"$folder/FailedDirectory.java" <<'EOF'
package org.apache.kafka.controller;

import org.apache.kafka.common.Uuid;

public class FailedDirectory {
    public static void main(String[] arguments) {
        for (boolean together : new boolean[] {true, false}) {
            Controllers controllers = new Controllers(2);
            controllers.addPartition(0, 1, 1);
            controllers.fence(1);
            controllers.restart(1);
            if (!together) {
                controllers.heartbeat(1);
            }
            Uuid failed = Controllers.directory(1);
            String seen = "";
            for (int count = 0; count < 3; count++) {
                controllers.heartbeat(1, failed);
                seen += controllers.partition(0).leader + " " + controllers.directories(1).contains(failed) + " ";
            }
            System.out.println(seen.trim());
        }
    }
}
EOF
seen=$(run_java org.apache.kafka.controller.FailedDirectory "$(dirname "$0")/common/Controllers.java" "$folder/FailedDirectory.java")
check "leader and directory by heartbeat" $'1 false 1 false 1 false\n-1 false -1 false -1 false' "$seen"
