"""What is wrong with a scenario is said with its place, and nothing is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from kframe.errors import ConfigError, InputError, ScenarioError
from kframe.scenario.format import FILE_BYTES_MAX, parse_scenario, read_scenario
from kframe.scenario.runner import ScenarioRunner
from tests.scenario.samples import GOOD

#: (case, what stands in GOOD, what stands there instead, what the error must say)
DAMAGE = [
    ("no-schema", "schema: kframe.scenario/v1\n", "", "schema: found None, expected schema: kframe.scenario/v1"),
    ("later-schema", "scenario/v1", "scenario/v2", "schema: found 'kframe.scenario/v2'"),
    ("no-name", "name: sample\n", "", "name: found None, expected a text"),
    ("unknown-field", "name: sample", "name: sample\nbroker: []", "s.yaml: broker: found an unknown field"),
    ("not-a-mapping", GOOD, "[1, 2]", "s.yaml: found [1, 2], expected a mapping"),
    ("not-yaml", "brokers:", "brokers: [", "s.yaml:"),
    ("duplicate-broker", "{id: 2, rack: b}", "{id: 1}", "brokers[1]: found 1 again, expected each one once"),
    ("negative-broker", "{id: 2, rack: b}", "-2", "brokers[1]: found -2"),
    ("overflowing-broker", "{id: 2, rack: b}", "{id: 2147483648}", "brokers[1]: id: found 2147483648"),
    ("nan-broker", "{id: 2, rack: b}", "{id: .nan}", "brokers[1]: id: found nan"),
    ("boolean-broker", "{id: 2, rack: b}", "{id: true}", "brokers[1]: id: found True"),
    ("rack-number", "rack: b", "rack: 3", "brokers[1]: rack: found 3, expected a text"),
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
    ("topic-config", 'enable: "false"', 'enable: "maybe"', "unclean.leader.election.enable: found 'maybe'"),
    ("no-steps", "steps:\n  - elect: {}\n  - broker_failure: [1]\n", "", "expected a list that begins with elect: {}"),
    ("elect-not-first", "  - elect: {}\n", "", "expected a list that begins with elect: {}"),
    ("unknown-step", "broker_failure: [1]", "broker_failed: [1]", "steps[1]: found unknown step 'broker_failed'"),
    ("step-of-two", "- broker_failure: [1]", "- {broker_failure: [1], advance: 1}", "steps[1]: found"),
    ("broker-text", "broker_failure: [1]", "broker_failure: [one]", "steps[1].broker_failure: found ['one']"),
    ("endless-advance", "broker_failure: [1]", "advance: .inf", "steps[1].advance: found inf"),
    ("election-type", "broker_failure: [1]", "elect_leaders: {type: best}", "type: found 'best'"),
    ("partition-name", "broker_failure: [1]", "elect_leaders: {type: unclean, partitions: [t]}", "found 't', expected"),
    ("answer-error", "broker_failure: [1]", "answer: {broker: 1, error: OOPS}", "error: found 'OOPS'"),
]  # fmt: skip

#: Steps of the format that this build refuses by name, with any argument.
UNBUILT = [
    "isr_znode", "create_topics", "create_partitions", "delete_topics", "reassign", "reassign_znode",
    "list_reassignments", "preferred_znode", "topic_config", "log_dir_failure",
]  # fmt: skip


def test_the_sample_plays() -> None:
    trace = ScenarioRunner(parse_scenario(GOOD, "s.yaml")).play()
    assert [list(step["step"]) for step in trace["steps"]] == [["elect"], ["broker_failure"]]
    assert trace["steps"][1]["partitions"]["t-0"]["leader"] == 2


@pytest.mark.parametrize("old, new, said", [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_damage_is_named(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as caught:
        ScenarioRunner(parse_scenario(GOOD.replace(old, new, 1), "s.yaml"))
    assert said in str(caught.value)
    assert caught.value.where.startswith("s.yaml")


@pytest.mark.parametrize("kind", UNBUILT)
def test_a_step_that_is_not_built_is_refused_by_name(kind: str) -> None:
    text = GOOD.replace("broker_failure: [1]", f"{kind}: {{}}")
    with pytest.raises(ScenarioError, match=rf"steps\[1\]: found step '{kind}'.*not built yet"):
        ScenarioRunner(parse_scenario(text, "s.yaml"))


@pytest.mark.parametrize(
    "key, value, said",
    [
        ("auto.leader.rebalance.enabled", "true", "auto.leader.rebalance.enable"),
        ("min.insync.replicas", "0", "found 0"),
        ("inter.broker.protocol.version", "'four'", "found 'four'"),
    ],
)
def test_a_bad_configuration_key_or_value_is_named(key: str, value: str, said: str) -> None:
    text = GOOD.replace("auto.leader.rebalance.enable: false", f"{key}: {value}")
    with pytest.raises(ConfigError, match=said):
        ScenarioRunner(parse_scenario(text, "s.yaml"))


@pytest.mark.parametrize(
    "content, said",
    [(None, "No such file"), (b"name: \xff\xfe", "not UTF-8"), (b"", "found None, expected a mapping")],
    ids=["missing", "broken-utf-8", "empty"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "s.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_scenario(path)
    assert str(path) in str(caught.value)


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    with path.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    with pytest.raises(ScenarioError, match=f"found {FILE_BYTES_MAX + 1} bytes, expected at most {FILE_BYTES_MAX}"):
        read_scenario(path)


@pytest.mark.parametrize(
    "steps, said",
    [
        ("- broker_failure: [9]", "broker 9"),
        ("- broker_bounce: [9]", "broker 9"),
        ("- broker_startup: [1]", "broker 1"),
    ],
)
def test_a_step_that_contradicts_the_moment_says_so(steps: str, said: str) -> None:
    runner = ScenarioRunner(parse_scenario(GOOD.replace("- broker_failure: [1]", steps), "s.yaml"))
    with pytest.raises(ScenarioError, match=rf"steps\[1\].*found {said}"):
        runner.play()
