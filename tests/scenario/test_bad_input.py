"""Errors in a scenario are reported with their location, and the scenario does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kframe.errors import ConfigError, InputError, ScenarioError
from kframe.model.cluster import ClusterState
from kframe.scenario.format import FILE_BYTES_MAX, parse_scenario, read_scenario
from kframe.scenario.runner import ScenarioRunner
from tests.scenario.samples import GOOD

#: (case, text in GOOD, its replacement, part of the error message).
DAMAGE = [
    ("no-schema", "schema: kframe.scenario/v1\n", "", "schema: found None, expected schema: kframe.scenario/v1"),
    ("later-schema", "scenario/v1", "scenario/v2", "schema: found 'kframe.scenario/v2'"),
    ("no-name", "name: sample\n", "", "name: found None, expected a text"),
    ("unknown-field", "name: sample", "name: sample\nbroker: []", "s.yaml: broker: found an unknown field"),
    ("not-a-mapping", GOOD, "[1, 2]", "s.yaml: found [1, 2], expected a mapping"),
    ("not-yaml", "brokers:", "brokers: [", "s.yaml:"),
    ("key-twice", "name: sample\n", "name: sample\nname: other\n", "s.yaml:3: found key name again, expected each"),
    ("nested-key-twice", "leader: 1, isr", "leader: 1, leader: 2, isr", "found key leader again"),
    ("yaml-1.1-octal", "leader_epoch: 4", "leader_epoch: 010", "found 010, whose meaning depends"),
    ("yaml-1.1-boolean", "name: sample", "name: sample\nbrokers_replicate: yes", "found yes, whose meaning depends"),
    ("yaml-1.1-sexagesimal", "leader_epoch: 4", "leader_epoch: 1:30", "found 1:30, whose meaning depends"),
    ("yaml-1.1-underscore", "leader_epoch: 4", "leader_epoch: 1_000", "found 1_000, whose meaning depends"),
    ("yaml-1.1-date", "name: sample", "name: 2026-11-24", "found 2026-11-24, whose meaning depends"),
    ("duplicate-broker", "{id: 2, rack: b}", "{id: 1}", "brokers[1]: found 1 again, expected each one once"),
    ("negative-broker", "{id: 2, rack: b}", "-2", "brokers[1]: found -2"),
    ("overflowing-broker", "{id: 2, rack: b}", "{id: 2147483648}", "brokers[1].id: found 2147483648"),
    ("nan-broker", "{id: 2, rack: b}", "{id: .nan}", "brokers[1].id: found nan"),
    ("boolean-broker", "{id: 2, rack: b}", "{id: true}", "brokers[1].id: found True"),
    ("rack-number", "rack: b", "rack: 3", "brokers[1].rack: found 3, expected a text"),
    ("topic-name", "name: t", "name: 'a/b'", "topics[0].name: found 'a/b', expected a topic name"),
    ("gap-in-partitions", "{partition: 1,", "{partition: 2,", "topics[0].partitions: found"),
    ("partition-twice", "{partition: 1,", "{partition: 0,", "expected partitions 0 to n - 1, each once"),
    ("no-replicas", "replicas: [2, 1]", "replicas: []", "partitions[1].replicas: found [], expected at least one"),
    ("replica-twice", "replicas: [2, 1]", "replicas: [2, 2]", "partitions[1].replicas: found [2, 2], expected each"),
    ("isr-outside", "isr: [1, 2]", "isr: [1, 3]", "partitions[0].isr: found [1, 3], expected only ids of replicas"),
    ("leader-outside", "leader: 1, isr", "leader: 3, isr", "partitions[0].leader: found 3"),
    ("isr-without-leader", "replicas: [2, 1]", "replicas: [2, 1], isr: [2]", "expected no ISR without a leader"),
    ("negative-epoch", "leader_epoch: 4", "leader_epoch: -1", "leader_epoch: found -1"),
    ("epoch-text", "leader_epoch: 4", "leader_epoch: four", "leader_epoch: found 'four'"),
    ("topic-config", 'enable: "false"', 'enable: "maybe"', "topics[0].config: found Invalid value maybe"),
    ("topic-config-key", "unclean.leader.election.enable", "unclean.election", "Unknown topic config name: unclean"),
    ("no-steps", "steps:\n  - elect: {}\n  - broker_failure: [1]\n", "", "expected a list that begins with elect: {}"),
    ("elect-not-first", "  - elect: {}\n", "", "expected a list that begins with elect: {}"),
    (
        "unknown-step",
        "broker_failure: [1]",
        "broker_failed: [1]",
        "s.yaml: steps[1]: found unknown step 'broker_failed', expected one of advance, ",
    ),
    ("step-of-two", "- broker_failure: [1]", "- {broker_failure: [1], advance: 1}", "steps[1]: found"),
    ("broker-text", "broker_failure: [1]", "broker_failure: [one]", "steps[1].broker_failure[0]: found 'one'"),
    ("endless-advance", "broker_failure: [1]", "advance: .inf", "steps[1].advance: found inf"),
    ("election-type", "broker_failure: [1]", "elect_leaders: {type: best}", "type: found 'best'"),
    ("partition-name", "broker_failure: [1]", "elect_leaders: {type: unclean, partitions: [t]}", "found 't', expected"),
    ("answer-error", "broker_failure: [1]", "answer: {broker: 1, error: OOPS}", "error: found 'OOPS'"),
]

#: (case, step, part of the error message) for steps that write or request topics, assignments and notifications.
MALFORMED = [
    ("topics-list", "create_topics: {}", "create_topics: found {}, expected a list of topics"),
    ("topic-mapping", "create_topics: [1]", "create_topics[0]: found 1, expected a mapping"),
    ("topic-nameless", "create_topics: [{}]", "create_topics[0].name: found None, expected a text"),
    ("topic-field", "create_topics: [{name: a, replicas: 1}]", "replicas: found an unknown field"),
    ("topic-lists", "create_topics: [{name: a, assignments: [1]}]", "assignments[0]: found 1, expected a list of"),
    ("topic-half", "create_topics: [{name: a, partitions: 1.5}]", "partitions: found 1.5, expected a whole number"),
    ("topic-config", "create_topics: [{name: a, config: [1]}]", "config: found [1], expected a mapping"),
    ("growth-mapping", "create_partitions: []", "create_partitions: found [], expected a mapping"),
    ("growth-count", "create_partitions: {topic: t}", "count: found None, expected a whole number"),
    ("growth-lists", "create_partitions: {topic: t, count: 3, assignments: 1}", "assignments: found 1, expected"),
    ("deletion-list", "delete_topics: {}", "delete_topics: found {}, expected a list of topic names"),
    ("deletion-names", "delete_topics: [1]", "delete_topics[0]: found 1, expected a text"),
    ("reassign-mapping", "reassign: []", "reassign: found [], expected a mapping from partitions to replica lists"),
    ("reassign-name", "reassign: {t: [1]}", "reassign.t: found 't', expected a partition"),
    ("reassign-lists", "reassign: {t-0: 1}", "reassign.t-0: found 1, expected a list of broker ids"),
    ("reassign-ids", "reassign: {t-0: [x]}", "reassign.t-0[0]: found 'x', expected a broker id"),
    ("reassign-overflow", "reassign: {t-0: [2147483648]}", "reassign.t-0[0]: found 2147483648, expected a broker id"),
    ("reassign-boolean", "reassign: {t-0: [true]}", "reassign.t-0[0]: found True, expected a broker id"),
    ("create-overflow", "create_topics: [{name: n, assignments: [[2147483648]]}]", "assignments[0][0]: found 21474"),
    ("create-text", "create_topics: [{name: n, assignments: [[x]]}]", "assignments[0][0]: found 'x'"),
    ("isr-overflow", "alter_partition: {t-0: {isr: [2147483648]}}", "t-0.isr[0]: found 2147483648, expected a"),
    ("listing", "list_reassignments: {all: true}", "all: found an unknown field"),
    ("left-cancelled", "reassign_znode: {t-0: null}", "reassign_znode.t-0: found None, expected a list of broker ids"),
    ("preferred-list", "preferred_znode: {}", "preferred_znode: found {}, expected a list of partitions"),
    ("preferred-name", "preferred_znode: [t]", "preferred_znode[0]: found 't', expected a partition"),
    ("isr-mapping", "isr_znode: []", "isr_znode: found [], expected a mapping"),
    ("isr-ids", "isr_znode: {t-0: {isr: [x]}}", "t-0.isr[0]: found 'x', expected a broker id from 0"),
    ("settings", "topic_config: {t: 1}", "topic_config.t: found 1, expected a mapping"),
    ("directory-broker", "log_dir_failure: {broker: x}", "broker: found 'x', expected a whole number"),
    ("directory-name", "log_dir_failure: {broker: 1, partitions: [t]}", "partitions[0]: found 't', expected a"),
]


@pytest.mark.parametrize("old, new, message", [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_damaged_scenario_error_names_location(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as caught:
        ScenarioRunner(parse_scenario(GOOD.replace(old, new, 1), "s.yaml")).play()
    assert message in str(caught.value)
    assert caught.value.where.startswith("s.yaml")


@pytest.mark.parametrize("step, message", [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_step_is_named(step: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        ScenarioRunner(parse_scenario(GOOD.replace("broker_failure: [1]", step), "s.yaml")).play()
    assert str(caught.value).startswith("s.yaml: steps[1].")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "admin, message",
    [
        ("{reassign: {t-0: null}}", "admin.reassign.t-0: found None"),
        ("{reassigned: {}}", "reassigned: found an unknown field"),
        ("{delete_topics: t}", "admin.delete_topics: found 't', expected a list of topic names"),
        ("{preferred: {}}", "admin.preferred: found {}, expected a list of partitions"),
        ("[1]", "admin: found [1], expected a mapping"),
    ],
)
def test_stored_requests_are_checked_before_playing(admin: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        ScenarioRunner(parse_scenario(f"{GOOD}admin: {admin}\n", "s.yaml"))
    assert message in str(caught.value)


@pytest.mark.parametrize("value", ["0", "yes please", "[true]"])
def test_brokers_replicate_or_not(value: str) -> None:
    with pytest.raises(ScenarioError, match=r"brokers_replicate: .* expected true or false"):
        parse_scenario(f"{GOOD}brokers_replicate: {value}\n", "s.yaml")


def test_brokers_replicate_needs_a_plugin_with_broker_models() -> None:
    with pytest.raises(ScenarioError, match="kframe-simulator"):
        ScenarioRunner(parse_scenario(f"{GOOD}brokers_replicate: true\n", "s.yaml"))


def test_records_require_replicating_brokers() -> None:
    with pytest.raises(ScenarioError, match="brokers_replicate: true"):
        ScenarioRunner(parse_scenario(f"{GOOD}  - produce: {{t-0: {{records: 1}}}}\n", "s.yaml")).play()


@pytest.mark.parametrize(
    "key, value, message",
    [
        ("auto.leader.rebalance.enabled", "true", "auto.leader.rebalance.enable"),
        ("min.insync.replicas", "0", "found 0"),
        ("inter.broker.protocol.version", "'four'", "found 'four'"),
    ],
)
def test_bad_configuration_key_or_value_is_named(key: str, value: str, message: str) -> None:
    text = GOOD.replace("auto.leader.rebalance.enable: false", f"{key}: {value}")
    with pytest.raises(ConfigError, match=message):
        ScenarioRunner(parse_scenario(text, "s.yaml"))


@pytest.mark.parametrize(
    "content, message",
    [(None, "No such file"), (b"name: \xff\xfe", "not UTF-8"), (b"", "found None, expected a mapping")],
    ids=["missing", "broken-utf-8", "empty"],
)
def test_unreadable_file_error_names_file(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "s.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_scenario(path)
    assert str(path) in str(caught.value)


def test_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    with path.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    with pytest.raises(ScenarioError, match=f"found {FILE_BYTES_MAX + 1} bytes, expected at most {FILE_BYTES_MAX}"):
        read_scenario(path)


@pytest.mark.parametrize(
    "steps, message",
    [
        ("- broker_failure: [9]", "broker 9"),
        ("- broker_bounce: [9]", "broker 9"),
        ("- broker_startup: [1]", "broker 1"),
        ("- topic_config: {t: {retention.ms: 1}, u: {retention.ms: 1}}", "topic u"),
        ("- isr_znode: {t-0: {isr: [1]}, t-9: {isr: [1]}}", "partition t-9"),
        ("- log_dir_failure: {broker: 9, partitions: [t-0]}", "broker 9"),
        ("- answer: {broker: 9, error: SILENT}", "broker 9"),
    ],
)
def test_step_contradicting_state_is_refused(steps: str, message: str) -> None:
    runner = ScenarioRunner(parse_scenario(GOOD.replace("- broker_failure: [1]", steps), "s.yaml"))
    with pytest.raises(ScenarioError, match=rf"s\.yaml: steps\[1\]\.[a-z_.]+: found {message}, expected "):
        runner.play()
    assert changed(runner.storage.stored()) == []


def changed(cluster: ClusterState) -> list[str]:
    """Return the partitions with a write since the failover. Partition t-1 had no state, and has its first one."""
    return [f"{partition.topic}-{partition.partition}" for partition in cluster if partition.partition_epoch > 0]


@pytest.mark.parametrize(
    "steps",
    [
        "reassign_znode: {nosuch-0: [1]}",
        "preferred_znode: [nosuch-0]",
        "reassign: {nosuch-0: [1]}",
        "elect_leaders: {type: preferred, partitions: [nosuch-0]}",
        "delete_topics: [nosuch]",
        "create_partitions: {topic: nosuch, count: 2}",
        "alter_partition: {nosuch-0: {isr: [9], sender: 9}}",
        "controlled_shutdown: 9",
        "log_dir_failure: {broker: 1, partitions: [nosuch-0]}",
    ],
)
def test_requests_may_name_unknown_partitions(steps: str) -> None:
    """Kafka returns errors to clients, and ignores invalid records of operators (``tests/golden``, such as
    ``nosuch``)."""
    trace = ScenarioRunner(parse_scenario(GOOD.replace("broker_failure: [1]", steps), "s.yaml")).play()
    assert len(trace["steps"]) == 2
