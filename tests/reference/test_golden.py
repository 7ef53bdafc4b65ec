"""The reference model itself is right: it leaves the traces that Kafka 3.9.1 left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.architecture.source import ROOT
from tests.reference.model import Reference
from tests.reference.pair import Comparison

GOLDEN = ROOT / "tests" / "golden"
#: Assignment by racks, which the model leaves out: ``tests/core/test_placement.py`` holds it against Kafka's.
PLACED = {"create-partitions-racks", "create-some-racks"}
SCENARIOS = [path for path in sorted((GOLDEN / "scenarios").glob("*.yaml")) if path.stem not in PLACED]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_model_does_what_kafka_did(path: Path) -> None:
    golden = json.loads((GOLDEN / "traces" / f"{path.stem}.json").read_text())
    scenario = yaml.safe_load(path.read_text())
    model = Reference(scenario)
    own = {"scenario": golden["scenario"], "steps": [model.take(step) for step in scenario["steps"]]}
    comparison = Comparison(golden, own, strict=True)
    comparison.run()
    assert not comparison.differences, "\n".join(comparison.differences)
