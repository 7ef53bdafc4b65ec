#!/usr/bin/env bash
# confluent-kafka 2.16.1 (librdkafka 2.16.0): the text of a topic id is not the text that Kafka uses.
#
# Kafka writes ids in the URL-safe alphabet of base64 (- and _). Uuid's text has + and / instead, also without padding.
# Half of all random ids have neither character, and both texts are equal. The others match no line of kafka-topics or
# of a log, and Kafka's own parser refuses them.
#
# Seen: ids with the characters 62 and 63: "++++++++++++++++++++vg" and "//////////////////7/Pw" in place of "-" and "_".
source "$(dirname "$0")/common/setup.sh"
python_packages confluent-kafka==2.16.1
result=$(python - <<'EOF'
import base64
import struct

from confluent_kafka import Uuid

for text in ("--------------------vg", "__________________7_Pw"):
    raw = base64.urlsafe_b64decode(text + "==")
    print(text, Uuid(*struct.unpack(">qq", raw)))
EOF
)
check "Kafka's text, confluent-kafka's text" "--------------------vg ++++++++++++++++++++vg
__________________7_Pw //////////////////7/Pw" "$result"
