#!/usr/bin/env bash
# Kafka 4.4.0, KRaft: after an upgrade of kraft.version from 0 to 1, quorum-state still has the form of version 0.
#
# The upgrade is finalized and the controller answers with dynamic voters and their directory ids. Its file quorum-state
# keeps "data_version":0 and the static "currentVoters" until the next election, so a program that reads the form of the
# quorum from this file is wrong for as long as the leader stays. The clean stop does not write the file either.
# The next start writes "data_version":1, without voters.
#
# Seen: data_version 0 and 1 voter after the upgrade and after the stop, data_version 1 and no voters after the restart.
source "$(dirname "$0")/common/setup.sh"
maven_packages org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-server:4.4.0 org.slf4j:slf4j-nop:1.7.36
port=$((20000 + RANDOM % 10000))
cat >"$folder/node.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
log.dirs=$folder/data
EOF
java -cp "$folder/jars/*" kafka.tools.StorageTool format --cluster-id 4L6g3nShT-eMCtK--X86sw \
    --config "$folder/node.properties" >"$folder/format.log" 2>&1
cat >"$folder/Upgrade.java" <<'EOF'
import java.util.Map;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.Uuid;

public class Upgrade {
    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", System.getenv("SERVER")))) {
            admin.updateFeatures(Map.of("kraft.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions()).all().get(60, TimeUnit.SECONDS);
            var voter = admin.describeMetadataQuorum().quorumInfo().get(60, TimeUnit.SECONDS).voters().get(0);
            var features = admin.describeFeatures().featureMetadata().get(60, TimeUnit.SECONDS).finalizedFeatures();
            System.out.print(features.get("kraft.version").maxVersionLevel() + " "
                + !voter.replicaDirectoryId().equals(Uuid.ZERO_UUID));
        }
    }
}
EOF

start() {
    java -XX:TieredStopAtLevel=1 -cp "$folder/jars/*" kafka.Kafka "$folder/node.properties" >>"$folder/node.log" 2>&1 &
    server=$!
    until (: </dev/tcp/127.0.0.1/$port) 2>/dev/null; do
        kill -0 "$server" || { tail -n 20 "$folder/node.log" >&2; exit 1; }
        sleep 0.5
    done
}

# The form of the file and the number of voters in it.
quorum_state() {
    python3 -c 'import json, sys
state = json.load(open(sys.argv[1]))
print(state["data_version"], len(state.get("currentVoters", [])))' "$folder/data/__cluster_metadata-0/quorum-state"
}

start
check "form and voters before" "0 1" "$(quorum_state)"
result=$(SERVER=127.0.0.1:$port run_java Upgrade "$folder/Upgrade.java")
check "kraft.version and a voter's directory id after" "1 true" "$result"
check "form and voters after" "0 1" "$(quorum_state)"
kill "$server"
wait "$server" || true
check "form and voters after the stop" "0 1" "$(quorum_state)"
start
check "form and voters after the restart" "1 0" "$(quorum_state)"
