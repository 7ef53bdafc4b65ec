"""Every rule of the rule books has a test that names it.

A test in any folder names a rule in a line of its docstring: book, section, then the rule. ``RULES`` has the first
words of each rule; the rest is free. Rules in ``UNTESTED`` have a reason instead of a test.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

NAMED: Final = re.compile(
    r"^\s*(?P<section>(?:state-machines|elections|controller) \d+(?:\.\d+)?): (?P<rule>.+?)\s*$", re.MULTILINE
)

#: Section of a rule book to the first words of its rules.
RULES: Final = {
    "state-machines 1": ("NoLeader", "derived state"),
    "state-machines 2": ("legal moves", "New, Offline and NonExistent", "Offline writes and sends nothing"),
    "state-machines 2.1": (
        "empty input", "unknown is NonExistent", "invalid ones", "one send at the end", "only elections are reported",
        "failure of the whole call",
    ),
    "state-machines 2.2": (
        "live replicas in assignment order", "no online replica", "existing state", "recipients",
        "initialisation comes before election",
    ),
    "state-machines 2.3": (
        "missing state", "a later controller's state", "no leader is final", "conditional set", "stale version",
        "attempts are bounded", "the rule is applied to what storage has", "lookup of unclean election",
    ),
    "state-machines 2.4": (
        "startup states", "trigger online", "trigger online elects cleanly", "startup comes after", "no poisoned batch",
        "OfflinePartitionsCount, which ignores topics whose deletion has started",
    ),
    "state-machines 3": ("legal moves",),
    "state-machines 3.1": ("empty input", "invalid ones", "one send at the end", "grouped by broker id"),
    "state-machines 3.2": (
        "New with leadership", "New without leadership", "New where it leads already", "Online from New",
        "Online from others", "ReplicaDeletionStarted", "ReplicaDeletionSuccessful and ReplicaDeletionIneligible",
        "NonExistent takes the replica out of the assignment", "NonExistent drops its state",
    ),
    "state-machines 3.3": (
        "StopReplica without delete", "StopReplica to a dead broker",
        "LeaderAndIsr to all assigned replicas but this one",
        "topic queued for deletion", "failures are logged", "partition without leadership",
    ),
    "state-machines 3.4": (
        "a later controller's state", "no state in storage", "no state in storage, topic queued for deletion",
        "replica in the ISR", "last member stays", "stale version", "attempts are bounded",
        "replica not in the ISR, no write", "replica not in the ISR, cached", "worked example",
    ),
    "state-machines 3.5": (
        "startup", "initial states", "online replicas receive all states", "offline replicas leave their ISRs",
    ),
    "state-machines 4": (
        "LeaderAndIsr, UpdateMetadata, StopReplica", "storage before brokers", "memory is updated only after",
        "nothing is sent that storage has not accepted",
    ),
    "state-machines 5": (
        "Offline to ReplicaDeletionIneligible", "the last ISR member", "offline replicas at startup", "recovery state",
    ),
    "elections 1": ("online is registered", "shutting-down brokers count only", "target is replicas minus removing"),
    "elections 2": ("a shutting-down broker is not eligible", "retried whenever trigger-online runs"),
    "elections 3": (
        "leader_epoch plus one", "unclean only if no ISR member is online", "allowUnclean of the strategy",
        "the topic's setting decides", "the meter is marked before", "leader not in the old ISR",
        "a clean election keeps RECOVERING", "RECOVERING from inter-broker protocol",
        "preferred and reassign do not check",
        "controlled shutdown of a follower",
    ),
    "elections 3.1": ("controlled shutdown by the head",),
    "elections 4": (
        "no leader found", "no eligible replica", "already valid", "topic being deleted", "unknown partition",
        "not controller", "event preempted", "partition without leadership", "foreign controller epoch",
        "election of all partitions", "leaders that remain",
    ),
    "elections 5": ("truth table", "row 27"),
    "elections 6": (
        "callers", "only the operator", "topic not being deleted", "reassignment calls Reassign",
        "unclean election enabled", "preferred elections left in storage", "new topics call the initial rule",
    ),
    "controller 1": (
        "preempt responses", "requests with a token", "pending requests at resignation", "NOT_CONTROLLER at the top",
        "single consumer", "enqueue", "clearAndPut", "process/preempt exclusive", "queue time", "rate timer", "errors",
        "close",
    ),
    "controller 2": (
        "state codes",
        "each request gets one response", "an event without token", "TopicUncleanLeaderElectionEnable",
        "only a setting that allows it now", "a topic that the controller has not met",
        "UpdateMetadataResponseReceived",
    ),
    "controller 3.1": (
        "who finds a controller stops", "controller epoch and role are claimed in one", "ControllerMoved",
        "any other error",
    ),
    "controller 3.2": (
        "step 0", "step 3", "step 5", "step 8, resume", "step 8, the stored", "step 10", "step 11",
    ),
    "controller 3.3": ("the set of brokers that shut down",),
    "controller 3.4": ("maybeResign", "an expired session", "triggerControllerMove"),
    "controller 3.5": (
        "any failure of a whole write", "controller epoch zk version", "the broker epoch of an AlterPartition",
        "the broker epoch of an AllocateProducerIds", "the broker epoch of a ControlledShutdown",
    ),
    "controller 4": (
        "origin is replicas minus adding", "reassignTo puts the target first", "reassignTo of many",
        "reassignTo makes distinct", "the origin outlives overriding", "removeTopic",
    ),
    "controller 5": ("num.partitions and default.replication.factor", "defaults"),
    "controller 6.1": ("new brokers come first", "bounced is in both"),
    "controller 6.2": ("only reassignments whose target", "the others learn that it is there"),
    "controller 6.3": ("step 4", "all partitions without an online leader", "if nothing else was sent"),
    "controller 6.4": ("other endpoints", "known and present"),
    "controller 7.1": (
        "phase 0", "U1 and U2", "U1 comes before", "U3", "complete if the target", "A1, retry", "B1 to B8",
        "B3, a leader", "B3 finds no leader", "B7, removed", "B7, a record",
    ),
    "controller 7.2": ("Offline, DeletionStarted, DeletionSuccessful, NonExistent",),
    "controller 7.3": ("order-only change runs phase B",),
    "controller 7.4": ("broker startup",),
    "controller 7.5": (
        "empty, duplicate ids", "only added replicas", "topic queued for deletion", "null replicas cancel",
        "one request may succeed partially", "entries of accepted partitions", "one target a partition",
        "an error of the reassignment itself",
    ),
    "controller 7.6": (
        "reassignTo(target) without validating", "unknown, being deleted", "if that empties it",
        "a submission through storage",
    ),
    "controller 7.7": ("given partitions or all",),
    "controller 7.8": (
        "submission refuses", "steps 1 to 12", "no cancel, no override", "storage alone says where",
    ),
    "controller 8": (
        "an epoch that is shown", "led partitions are elected", "StopReplica is queued twice", "it stays shutting down",
    ),
    "controller 9.1": (
        "new = topics minus allTopics", "a topic deleted by hand", "names alone", "the watch is armed again",
        "assignments come with",
    ),
    "controller 9.2": (
        "four bulk calls", "offline replicas also end", "it stays New. It comes", "it stays New, without",
    ),
    "controller 9.3": (
        "added = partitions", "shrinking or editing", "topic queued for deletion", "unknown to storage",
        "CreatePartitions writes the whole topic",
    ),
    "controller 9.4": ("from inter-broker protocol 2.8", "only topics lacking one"),
    "controller 10.1": (
        "names that no topic has", "delete.topic.enable=false, the marks", "delete.topic.enable=false, at failover",
        "ineligible only affects",
    ),
    "controller 10.2": ("batched", "all (that is, none)"),
    "controller 10.3": (
        "partitions Offline", "StopReplica without delete", "retry list", "offline replicas DeletionIneligible",
        "error or top-level error", "entries whose topic", "responses to requests of another controller epoch",
    ),
    "controller 10.4": ("completion",),
    "controller 10.5": (
        "broker start with a replica", "no other event resumes it", "isTopicQueuedUpForDeletion gates",
        "trigger-online and LeaderAndIsr", "nothing but the shrinking",
    ),
    "controller 11.1": ("the record of a zk election", "mapping of elections.md"),
    "controller 11.2": ("PREFERRED and UNCLEAN",),
    "controller 11.3": ("failover resume",),
    "controller 11.4": (
        "PreferredReplicaImbalanceCount",
        "ratio = imbalanced / total", "candidates need", "online is live", "one bulk preferred election",
        "a preferred election", "since 2.6", "as in any election", "every interval",
    ),
    "controller 12": (
        "all replicas of those brokers", "KAFKA_STORAGE_ERROR is offline", "newly offline", "no election is triggered",
        "each response without", "unknown partitions are ignored", "the whole way",
    ),
    "controller 13.1": (
        "not active 41", "requester not registered", "v >= 2", "per partition, the first match", "success with the",
        "conditional set", "the proposed leader", "UpdateMetadata for every partition", "then, per success",
        "row 8, members whose", "kframe may add checks", "the last proposal",
    ),
    "controller 13.2": ("refresh leadership", "the notifications that were read", "only the read notifications"),
    "controller 14": ("zk brokers support no features", "at failover the feature record"),
    "controller 15": ("41", "unknown broker 102", "block 0..999", "the broker is not left waiting"),
    "controller 16": (
        "timers", "gauges", "EventQueueSize", "all 0 when not active", "UncleanLeaderElectionsPerSec",
    ),
}  # fmt: skip

#: Rules without a test, and the reason.
UNTESTED: Final = {
    "state-machines 3.2: Online from New of a replica that is not assigned adds it":
        "kframe's columns hold assigned replicas only, so that such a replica cannot be named.",
    "state-machines 5: columns of Kafka 0.8 to 2.4": "kframe does what 3.9 does.",
    "elections 3.1: selectors of 0.8 other than controlled shutdown":
        "they differ from today's in nothing that the truth table does not hold.",
    "controller 1: a handle with awaitProcessing": "a caller gets a future that is done once the event is handled.",
    "controller 1: AlterPartition, AllocateProducerIds, UpdateFeatures get no response when preempted":
        "kframe sends each response exactly once (R18).",
    "controller 2: RegisterBrokerAndReelect": "kframe is no broker, so that a new session only stands for election.",
    "controller 2: PartitionReassignmentIsrChange":
        "Kafka before 2.7 watches each state; kframe hears of ISRs by notification, as the same brokers leave them.",
    "controller 3.1: 0.8 creates the role and the epoch in two writes": "kframe does what 3.9 does.",
    "controller 3.2: step 1 and step 2, watches":
        "a store arms its watches as it reads, which kframe.testing's contract suites hold every store to.",
    "controller 3.2: step 12, delegation tokens": "kframe keeps no tokens: no message of the controller carries one.",
    "controller 3.4: the order in which handlers and machines are shut down":
        "a resigned controller drops its context as a whole, so that no order can be seen.",
    "controller 3.5: what brokers refuse by their own epochs": "it is the brokers' rule; kframe only sends the epochs.",
    "controller 4: addTopicId refuses a second id":
        "topic ids are given once by the store and read with the topic: no caller can name a second one.",
    "controller 5: keys of connections, ZooKeeper and brokers": "kframe reads none of them while it has no network.",
    "controller 6.2: step 8 and 6.3, modification handlers": "a store notifies of every registration that changes.",
    "controller 11.1: the response waits for the metadata cache of the responding broker":
        "it is the API layer of a broker that waits; kframe responds once the election is stored and sent.",
    "controller 14: a feature record that differs is rewritten":
        "kframe keeps what stands there, and no level can be finalised in a ZooKeeper-mode cluster of 3.9.",
    "controller 14: brokers that are incompatible with finalised features":
        "no feature can be finalised in a ZooKeeper-mode cluster of 3.9, so that every broker is compatible.",
    "controller 16: ControllerChannelManager and ZooKeeper metrics":
        "they belong to a network transport and a ZooKeeper store, which plugins bring.",
}  # fmt: skip


@cache
def named() -> tuple[tuple[str, str], ...]:
    """Return (section, rule) of every docstring line of a test that names a rule."""
    return tuple(
        (match["section"], match["rule"])
        for path in sorted(Path(__file__).parents[1].rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for match in NAMED.finditer(ast.get_docstring(node) or "")
    )


@pytest.mark.parametrize("section, rules", RULES.items(), ids=RULES)
def test_every_rule_is_named_by_test(section: str, rules: tuple[str, ...]) -> None:
    named_rules = [rule for rule_section, rule in named() if rule_section == section]
    assert [rule for rule in rules if not any(name.startswith(rule) for name in named_rules)] == []


def test_named_rules_exist() -> None:
    unknown = [
        f"{section}: {rule}"
        for section, rule in named()
        if not any(rule.startswith(prefix) for prefix in RULES.get(section, ()))
    ]
    assert unknown == []


def test_untested_rules_are_in_known_sections_and_have_a_reason() -> None:
    for line, reason in UNTESTED.items():
        section, _, rule = line.partition(": ")
        assert section in RULES
        assert (section, rule) not in named()
        assert reason.endswith(".")
