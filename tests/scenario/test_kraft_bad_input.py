"""KRaft scenarios that cannot be read or played: every error names the file and the field."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kframe.errors import ScenarioError
from kframe.scenario.kraft.format import is_kraft, parse_kraft_scenario
from kframe.scenario.kraft.runner import KraftScenarioRunner

BROKERS: Final = [{"id": 1}, {"id": 2}]
TOPIC: Final = {"name": "t", "partitions": [{"partition": 0, "replicas": [1, 2]}]}


def scenario(*steps: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {
        "schema": "kframe.scenario/v1",
        "controller": "kraft",
        "name": "s",
        "brokers": BROKERS,
        "steps": [{"elect": {}}, *steps],
        **others,
    }


MALFORMED: Final = [
    (scenario(topcs=[]), "s.yaml: topcs"),
    (scenario(name=""), "s.yaml: name"),
    (scenario(schema="kframe.scenario/v2"), "s.yaml: schema"),
    (scenario(config={"log.retention.ms": 5}), "s.yaml: config.log.retention.ms"),
    (scenario(brokers=[{"id": "one"}]), "s.yaml: brokers[0].id"),
    (scenario(brokers=[{"id": 1, "directories": "a"}]), "s.yaml: brokers[0].directories"),
    (scenario(brokers=[{"id": 1, "features": {"group.version": [1]}}]), "s.yaml: brokers[0].features.group.version"),
    (scenario(topics=[{"name": "t", "partitions": [{"partition": 1, "replicas": [1]}]}]), "topics[0].partitions[0]"),
    (scenario({"fence": [1], "unfence": [1]}), "s.yaml: steps[1]"),
    (scenario({"explode": [1]}), "s.yaml: steps[1].explode"),
    (scenario({"fence": ["one"]}), "s.yaml: steps[1].fence[0]"),
    (scenario({"elect": {}}), "s.yaml: steps"),
    (scenario({"reassign": {"t": [1]}}), "s.yaml: steps[1].reassign.t"),
    (scenario({"elect_leaders": {"type": "best"}}), "s.yaml: steps[1].elect_leaders.type"),
    (scenario({"create_topics": [{"name": "u", "replicas": 3}]}), "s.yaml: steps[1].create_topics[0].replicas"),
    (scenario({"advance": "long"}), "s.yaml: steps[1].advance"),
    (scenario({"controller_restart": {"lose_batches": -1}}), "s.yaml: steps[1].controller_restart.lose_batches"),
]


@pytest.mark.parametrize(("document", "where"), MALFORMED, ids=[where for _, where in MALFORMED])
def test_malformed_scenario_is_refused(document: dict[str, Any], where: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        parse_kraft_scenario(document, "s.yaml")
    assert where in str(refusal.value)
    assert "expected" in str(refusal.value)


IMPOSSIBLE: Final = [
    (scenario({"request": {"api": "Produce"}}), "the API 'Produce'"),
    (scenario({"request": {"api": "CreateAcls", "body": {}}}), "no field 'creations'"),
    (scenario({"set_config": [{"set": {"retention.ms": 5}}]}), "0 resources"),
    (scenario({"clean_stop": [1]}, topics=[TOPIC], config={"min.insync.replicas": "x"}), "config.min.insync.replicas"),
    (scenario(features={"metadata.version": "soon"}), "features.metadata.version"),
    (scenario(config={"kframe.kraft.release": "soon"}), "config key kframe.kraft.release"),
    (
        scenario(topics=[{"name": "t", "partitions": [{"partition": 0, "replicas": [1, 1]}]}]),
        "topics that Kafka creates",
    ),
    (scenario(topics=[{"name": "t", "partitions": [{"partition": 0, "replicas": [1], "isr": [2]}]}]), "ISRs"),
    (scenario({"controller_restart": {"lose_batches": 999}}), "lose_batches"),
]


@pytest.mark.parametrize(("document", "text"), IMPOSSIBLE, ids=[text for _, text in IMPOSSIBLE])
def test_impossible_scenario_is_refused(document: dict[str, Any], text: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        KraftScenarioRunner(parse_kraft_scenario(document, "s.yaml")).play()
    assert text in str(refusal.value)


def test_mode_of_a_document() -> None:
    assert is_kraft(scenario())
    assert not is_kraft({"schema": "kframe.scenario/v1"})
    assert not is_kraft([])
