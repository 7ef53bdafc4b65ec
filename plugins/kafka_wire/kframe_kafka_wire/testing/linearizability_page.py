"""The evidence page of checked histories, written from its record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from kframe_kafka_wire.testing.evidence import facts_lines

_TEXT: Final = """\
# Linearizability of a live controller

Clients sent admin requests to two instances of `kframe controller run` with three Kafka 3.9.1 brokers and ZooKeeper
3.8.4, while faults happened to the active instance. [Porcupine](https://github.com/anishathalye/porcupine) 1.3.1, the
checker of etcd's robustness tests, searched for an order of all requests that explains all answers.

- Four clients send random requests, each to the instance that serves it. Four clients only read, two at each instance,
  also when it has lost its role.
- A request without an answer within 4 s, with a lost connection, NOT_CONTROLLER, REQUEST_TIMED_OUT or
  UNKNOWN_SERVER_ERROR may take effect at any later time or never.
- Three topics are used at a time, and others after 8 s. Each topic has a history of its own, because a history is
  linearizable if and only if those of all objects are.

## What the model permits

The model is `plugins/kafka_wire/kframe_kafka_wire/testing/histories/model.go`. The state of a topic is its id, its
partition count, and replicas, reassignment and leader of partition 0.

- A successful deletion makes the topic invisible at once: Metadata does not have it, and another deletion gets
  UNKNOWN_TOPIC_OR_PARTITION. The deletion completes later. Until then CreateTopics gets TOPIC_ALREADY_EXISTS, and
  CreatePartitions and ElectLeaders get INVALID_TOPIC_EXCEPTION. Deletions at the same time all succeed.
- A reassignment completes at any time after its request. A cancellation before that restores the replicas.
- The leader changes by an election, or by a reassignment that removes it. Brokers do not fail in these histories.
- A change or cancellation of a running reassignment may drop the leader. Then the partition has none until an election,
  as in Kafka. The check has found this in a history, too; `kframe.reassignment.strict` elects one at once.
- Metadata and ListPartitionReassignments of the controller are reads like any other. Metadata of *brokers* is not
  checked: Kafka promises only that it follows."""
_FINDINGS: Final = """\
## Defects that the check has found

1. Stale reads. ZooKeeper did not reach the active instance, and only clients that read did. Its session expired, and
   another instance changed topics. The first one still answered Metadata and ListPartitionReassignments from memory:
   violations in 5 of 27 topics. Refusals such as TOPIC_ALREADY_EXISTS had the same gap. Now `ControllerLoop` answers
   no client from memory while the role is uncertain (`test_uncertain_controller_answers_no_read`).
2. A wrong topic id. The response to CreateTopics described the topic that had the name when the response was sent.
   After a deletion and another creation at the same time, two clients received the same id. Now it describes the topic
   at its creation (`test_response_describes_topic_as_created`)."""


def page(record: Mapping[str, Any]) -> str:
    """The page in Markdown."""
    result = record["result"]
    lines = [
        _TEXT, "", "## Result", "",
        f"- Violations: {len(result['violations'])}. Undecided: {len(result['undecided'])}.",
        f"- Operations: {result['operations']:,} on {result['topics']:,} topics, at most {result['longest']:,} on one.",
        f"- Duration: {record['seconds'] / 60:.0f} minutes.",
        f"- Control: after a change of one answer in one history, the checker reports {record['control']} violation.",
        *facts_lines(record), "",
        "| fault of the active instance | times |", "|---|---|",
        *(f"| {name} | {count} |" for name, count in sorted(record["faults"].items())), "",
        "| request | count | answers |", "|---|---|---|", *_requests(record), "", _FINDINGS,
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _requests(record: Mapping[str, Any]) -> list[str]:
    responses: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for kind, code, count in record["requests"]:
        responses[kind].append((count, code or "unknown outcome"))
    return [
        f"| {kind} | {sum(count for count, _ in rows):,} |"
        f" {', '.join(f'{code} {count:,}' for count, code in sorted(rows, reverse=True))} |"
        for kind, rows in sorted(responses.items())
    ]
