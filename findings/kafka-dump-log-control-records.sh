#!/usr/bin/env bash
# Kafka 4.4.0: kafka-dump-log --skip-record-metadata leaves out control records, not only their metadata.
#
# The option's help says that it skips the metadata when printing records. With --cluster-metadata-decoder it also drops
# what the control records hold: the voter set, kraft.version, the snapshot's header and the elected leader. An empty line
# is left of each, and the exit code is 0. Data records keep their payload.
#
# Seen: a snapshot from kafka-storage format --standalone. The dump has SnapshotHeader, KRaftVersion, KRaftVoters and
# SnapshotFooter once each. With the option it has none of them, 4 empty lines, and as many payloads as before.
source "$(dirname "$0")/common/setup.sh"
maven_packages org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-server:4.4.0 org.apache.kafka:kafka-tools:4.4.0 \
    org.slf4j:slf4j-nop:1.7.36
cat >"$folder/node.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs=$folder/data
EOF
java -cp "$folder/jars/*" kafka.tools.StorageTool format --standalone --cluster-id 4L6g3nShT-eMCtK--X86sw \
    --config "$folder/node.properties" >"$folder/format.log" 2>&1

dump() {
    java -cp "$folder/jars/*" org.apache.kafka.tools.DumpLogSegments --cluster-metadata-decoder "$@" \
        --files "$folder/data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint" 2>"$folder/dump.log"
}

control_records() { { grep -oE "SnapshotHeader|KRaftVersion|KRaftVoters|SnapshotFooter" "$1" || true; } | sort | xargs; }

dump >"$folder/whole"
dump --skip-record-metadata >"$folder/skipped"
check "control records" "KRaftVersion KRaftVoters SnapshotFooter SnapshotHeader" "$(control_records "$folder/whole")"
check "control records with the option" "" "$(control_records "$folder/skipped")"
check "empty lines" "0 4" "$(grep -c '^$' "$folder/whole" || true) $(grep -c '^$' "$folder/skipped")"
check "payloads with the option" "$(grep -o 'payload: .*' "$folder/whole")" "$(grep -o 'payload: .*' "$folder/skipped")"
