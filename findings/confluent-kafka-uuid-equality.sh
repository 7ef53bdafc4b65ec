#!/usr/bin/env bash
# confluent-kafka 2.16.1: two Uuid objects of the same bits have the same hash but are not equal.
#
# Uuid defines __hash__ over its bits, but no comparison, so == compares identities. Topic ids of two describe_topics
# calls always differ, and a dictionary keyed by one does not find the other. The pair of 64-bit halves compares.
#
# Seen: "equal False", "same hash True", "found in a dictionary False", "equal bits True".
source "$(dirname "$0")/common/setup.sh"
python_packages confluent-kafka==2.16.1
result=$(python - <<'EOF'
from confluent_kafka import Uuid

first, second = Uuid(1, 2), Uuid(1, 2)
bits = [(u.get_most_significant_bits(), u.get_least_significant_bits()) for u in (first, second)]
print(first == second, hash(first) == hash(second), second in {first: "orders"}, bits[0] == bits[1])
EOF
)
check "equal, same hash, found in a dictionary, equal bits" "False True False True" "$result"
